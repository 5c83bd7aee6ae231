"""Hints that are carried by rows: what writes them, and what waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from duetime.errors import DuetimeError
from duetime.model.time import Clock
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.mariadb.connection import MariaDbConnection, MariaDbConnector
from duetime.stores.sql.pool.connection_pool import ConnectionPool
from duetime.stores.sql.pool.hints import ANY_HINT, HintListener, HintSender, decode_hints

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


class HintRowSender(HintSender):
    """Writes hints into a row: one small commit of its own after that of the verb, at most twenty a second."""

    spacing = 0.05
    longest = 0.05

    def __init__(
        self,
        pool: ConnectionPool[MariaDbConnection],
        connector: MariaDbConnector,
        tell: Statement,
        *,
        sender: str,
    ) -> None:
        super().__init__(sender)
        self._pool = pool
        self._connector = connector
        self._tell = tell
        self._slot = int(sender, 16) % _SLOTS

    async def _deliver(self, text: str) -> bool:
        try:
            connection = await self._pool.acquire()
        except DuetimeError:
            return False
        keep = False
        try:
            if connection.variant.carries_hints:
                values = {"slot": self._slot, "said": text}
                async with self._connector.timeouts.one_try(repeatable=True):
                    await self._connector.play(connection, _asked(self._tell, values), None)
            keep = True
        except TimeoutError:
            self._connector.timeouts.lose()
        except Exception as error:  # noqa: BLE001 -- no one waits for an answer; hints may be lost
            keep = self._connector.errors.spares_connection(error)
        finally:
            self._pool.release(connection, keep=keep)
        return keep


class HintRowWatcher(HintListener):
    """One connection on which the server waits for hints."""

    def __init__(
        self,
        connector: MariaDbConnector,
        watch: Statement,
        *,
        sender: str,
        clock: Clock | None,
        on_hint: Callable[[Hint], None],
    ) -> None:
        super().__init__(on_hint)
        self._connector = connector
        self._watch = watch
        self._sender = sender
        self._clock = clock
        self._told: dict[int, int] = {}

    async def _listen(self) -> bool:
        with self._connector.errors:
            connection = await self._connector.connect()
            try:
                if not connection.variant.carries_hints:
                    return False
                await self._watch_rows(connection)
            finally:
                connection.terminate()

    async def _watch_rows(self, connection: MariaDbConnection) -> NoReturn:
        pace = _QUIET_INTERVAL
        found = await self._look(connection, heard=-1, due=0, pace=pace)
        self._read_rows(found)
        self.report(up=True)
        while True:
            heard, due = sum(self._told.values()), found[0][0]
            found = await self._look(connection, heard=heard, due=due, pace=pace)
            # Not before: the first look does not wait, which some proxies may refuse.
            self.restart_delays()
            pace = _BUSY_INTERVAL if self._pass_on(found) else _QUIET_INTERVAL
            if pace == _BUSY_INTERVAL:
                await asyncio.sleep(_SPACING)

    async def _look(self, connection: MariaDbConnection, *, heard: int, due: int, pace: float) -> list[Row]:
        values = {"heard": heard, "due": due, "pace": pace}
        async with asyncio.timeout(_LONGEST_LOOK) as scope:
            # Nothing can be asked on this connection meanwhile, so that a new one is made.
            forget = self._connector.timeouts.interrupt(scope)
            try:
                return await self._connector.play(connection, _asked(self._watch, values), self._clock)
            finally:
                forget()

    def _pass_on(self, found: list[Row]) -> bool:
        """Pass on what is new; False when there is nothing."""
        hints = self._read_rows(found)
        _, falls_due, was_told, *_ = found[0]
        if falls_due:
            hints[Hint("jobs")] = None
        for hint in hints:
            self._on_hint(hint)
        return bool(falls_due or was_told)

    def _read_rows(self, found: list[Row]) -> dict[Hint, None]:
        hints: dict[Hint, None] = {}
        if not found[0][2]:
            return hints
        rows = [row[-3:] for row in found if row[-3] is not None]
        for slot, told, said in rows:
            if told == self._told.get(slot, 0):
                continue
            # What was said in between has been overwritten.
            missed = told != self._told.get(slot, 0) + 1
            hints.update(dict.fromkeys([ANY_HINT] if missed else decode_hints(said, own=self._sender)))
        # Not those that were there before: a row that was removed would be missed at every look.
        self._told = {slot: told for slot, told, _ in rows}
        return hints


def _asked(statement: Statement, values: Mapping[str, Any]) -> Script[list[Row]]:
    return (yield Query(statement, values))
