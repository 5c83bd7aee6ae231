"""Hints that are carried by rows: who waits for them, and who writes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic

from duetime.errors import DuetimeError, StoreError
from duetime.model.time import Clock
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.pool.connection import C, LendingConnector
from duetime.stores.sql.pool.connection_pool import ConnectionPool, reconnect_delays
from duetime.stores.sql.pool.hints import ANY_HINT, HintSender, decode_hints

_SLOTS: Final = 64
"""How many rows there are; processes that share one may overwrite what the other has just said, which is noticed."""
_SPACING: Final = 0.02
"""How long nobody looks again after something was heard, in seconds."""
_BUSY_INTERVAL: Final = 0.01
"""How often the server looks in the seconds after something was heard."""
_QUIET_INTERVAL: Final = 0.05
"""The same when nothing was: each look wakes the server, which is most of what it costs."""
_LONGEST_LOOK: Final = 18.0
"""How long one look may take, in seconds: on the server it takes ten at the most."""


class HintRowWriter(HintSender, Generic[C]):
    """Writes hints into a row: one small commit of its own behind that of the verb, some twenty a second at the most."""

    spacing = 0.05
    longest = 0.05

    def __init__(
        self, pool: ConnectionPool[C], connector: LendingConnector[C], tell: Statement, *, sender: str
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
            if self._connector.carries_hints(connection):
                values = {"slot": self._slot, "said": text}
                async with self._connector.patience.one_try(repeatable=True):
                    await self._connector.play(connection, _asked(self._tell, values), None)
            keep = True
        except TimeoutError:
            self._connector.patience.lose()
        except Exception as error:  # noqa: BLE001 -- nobody waits for an answer; hints may be lost
            keep = self._connector.judge.spares_connection(error)
        finally:
            self._pool.release(connection, keep=keep)
        return keep


class HintRowWatcher(Generic[C]):
    """One connection on which the server waits for hints, made anew whenever it is lost."""

    def __init__(
        self,
        connector: LendingConnector[C],
        watch: Statement,
        *,
        sender: str,
        clock: Clock | None,
        on_hint: Callable[[Hint], None],
    ) -> None:
        self._connector = connector
        self._watch = watch
        self._sender = sender
        self._clock = clock
        self._on_hint = on_hint
        self._pauses = reconnect_delays()
        self._told: dict[int, int] = {}
        self.up = False
        """Whether hints of others arrive at present."""

    async def run(self) -> None:
        """Wait until cancelled, or return at once where the server cannot wait.

        Gives the hint `any` whenever listening begins or breaks off: something may have been missed, and
        whoever relied on hearing must know that it does not.
        """
        listens = True
        while listens:
            with contextlib.suppress(StoreError), self._connector.errors():
                listens = await self._listen()
            await asyncio.sleep(next(self._pauses))

    async def _listen(self) -> bool:
        connection = await self._connector.connect()
        try:
            if not self._connector.carries_hints(connection):
                return False
            found = await self._look(connection, heard=-1, due=0, pace=_QUIET_INTERVAL)
            self._hear(found)
            self._turn(up=True)
            pace = _QUIET_INTERVAL
            while True:
                heard, due = sum(self._told.values()), found[0][0]
                found = await self._look(connection, heard=heard, due=due, pace=pace)
                # Not before: the first look does not wait, which some proxies may refuse.
                self._pauses = reconnect_delays()
                pace = _BUSY_INTERVAL if self._heed(found) else _QUIET_INTERVAL
                if pace == _BUSY_INTERVAL:
                    await asyncio.sleep(_SPACING)
        finally:
            if self.up:
                self._turn(up=False)
            connection.terminate()

    async def _look(self, connection: C, *, heard: int, due: int, pace: float) -> list[Row]:
        values = {"heard": heard, "due": due, "pace": pace}
        async with asyncio.timeout(_LONGEST_LOOK) as scope:
            # Nothing can be asked on this connection meanwhile, so that a new one is made.
            forget = self._connector.patience.interrupt(scope)
            try:
                return await self._connector.play(connection, _asked(self._watch, values), self._clock)
            finally:
                forget()

    def _heed(self, found: list[Row]) -> bool:
        """Pass on what is new; False when there is nothing."""
        hints = self._hear(found)
        _, falls_due, was_told, *_ = found[0]
        if falls_due:
            hints[Hint("jobs")] = None
        for hint in hints:
            self._on_hint(hint)
        return bool(falls_due or was_told)

    def _hear(self, found: list[Row]) -> dict[Hint, None]:
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
        # Not those that were there before: a row that somebody has removed would be missed at every look.
        self._told = {slot: told for slot, told, _ in rows}
        return hints

    def _turn(self, *, up: bool) -> None:
        self.up = up
        self._on_hint(ANY_HINT)


def _asked(statement: Statement, values: Mapping[str, Any]) -> Script[list[Row]]:
    return (yield Query(statement, values))
