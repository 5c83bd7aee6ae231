"""Hints that are carried by rows: what writes them, and what waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.mariadb.connection import MariaDbConnection
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.pool.hints import ANY_HINT, HintConnection, HintSender, decode_hints
from duetime.stores.sql.statements.loader import load_hints

_SLOTS: Final = 64
"""How many rows there are; processes that share one may overwrite what the other has just said, which is noticed."""
_SPACING: Final = 0.02
"""How long we wait after a hint was heard before we look again, in seconds."""
_BUSY_INTERVAL: Final = 0.01
"""How often the server looks in the seconds after something was heard."""
_QUIET_INTERVAL: Final = 0.05
"""The same when nothing was: each look wakes the server, which is most of what it costs."""
_LONGEST_LOOK: Final = 18.0
"""How long one look may take, in seconds: on the server it takes ten at the most."""
_statements: Final = cache(load_hints)


class HintRowSender(HintSender[MariaDbConnection]):
    """Writes hints into a row: one small commit of its own after that of the verb, at most twenty a second."""

    spacing = 0.05
    longest = 0.05

    async def _tell(self, connection: MariaDbConnection, text: str) -> None:
        if connection.variant.carries_hints:
            values = {"slot": int(self._name, 16) % _SLOTS, "said": text}
            await self._connector.play(connection, _asked(self._namespace, "tell", values), None)


class HintRowWatcher(HintConnection[MariaDbConnection]):
    """One connection on which the server waits for hints."""

    _told: Mapping[int, int] = {}

    async def _hear(self, connection: MariaDbConnection) -> bool:
        if not connection.variant.carries_hints:
            return False
        pace = _QUIET_INTERVAL
        found = await self._look(connection, heard=-1, due=0, pace=pace)
        self._read_rows(found)
        self.report(up=True)
        while True:
            heard, due = sum(self._told.values()), found[0][0]
            found = await self._look(connection, heard=heard, due=due, pace=pace)
            # Not before: the first look does not wait, which some proxies may refuse.
            self.reset_backoff()
            _, falls_due, was_told, *_ = found[0]
            for hint in self._read_rows(found) | ({Hint("jobs"): None} if falls_due else {}):
                self._on_hint(hint)
            pace = _BUSY_INTERVAL if falls_due or was_told else _QUIET_INTERVAL
            if pace == _BUSY_INTERVAL:
                await asyncio.sleep(_SPACING)

    async def _look(self, connection: MariaDbConnection, *, heard: int, due: int, pace: float) -> list[Row]:
        values = {"heard": heard, "due": due, "pace": pace}
        async with asyncio.timeout(_LONGEST_LOOK) as scope:
            # Nothing can be asked on this connection meanwhile, so that a new one is made.
            forget = self._connector.timeouts.interrupt(scope)
            try:
                script = _asked(self._namespace, "watch", values)
                return await self._connector.play(connection, script, self._clock)
            finally:
                forget()

    def _read_rows(self, found: list[Row]) -> dict[Hint, None]:
        """Return what is new."""
        hints: dict[Hint, None] = {}
        if not found[0][2]:
            return hints
        rows = [row[-3:] for row in found if row[-3] is not None]
        for slot, told, said in rows:
            if told == self._told.get(slot, 0):
                continue
            # What was said in between has been overwritten.
            missed = told != self._told.get(slot, 0) + 1
            hints.update(dict.fromkeys([ANY_HINT] if missed else decode_hints(said, own=self._name)))
        # Not those that were there before: a row that was removed would be missed at every look.
        self._told = {slot: told for slot, told, _ in rows}
        return hints


def _asked(namespace: str, name: str, values: Mapping[str, Any]) -> Script[list[Row]]:
    return (yield Query(_statements(MARIADB, namespace)[name], values))
