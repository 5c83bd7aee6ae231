"""Runs scripts on a SQLite file: a whole script in one hop to its thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, Self, TypeVar

from duetime.errors import NotOpen, StoreError
from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.local_hints import HintSubscriber
from duetime.stores.sql.driver import (
    CallerTransaction,
    DriverHandlerTransaction,
    Query,
    Script,
    ScriptMaker,
    SingleQueryScript,
    script_name,
)
from duetime.stores.sql.sqlite.checks import examine
from duetime.stores.sql.sqlite.commit_watch import commits
from duetime.stores.sql.sqlite.connection import run_script
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.transactions import SqliteCallerTransaction, SqliteHandlerTransaction
from duetime.stores.sql.transactions.caller import take_sqlalchemy

T = TypeVar("T")

_WATCH_AGAIN: Final = 1.0


class SqliteDriver:
    """A driver for one database; siblings share its threads."""

    single_writer = True

    def __init__(self, database: Database, *, clock: Clock, is_sibling: bool = False) -> None:
        self._clock = clock
        self._database = database
        self._is_sibling = is_sibling
        self._listening: dict[HintSubscriber, bool] = {}
        """The listeners, and whether a commit of another process would be told to each."""

    async def open(self) -> None:
        """Start the threads; a sibling uses those of its owner, who has brought the tables up to date."""
        if self._is_sibling:
            await self._database.sort_in_memory()
        else:
            await self._database.open()

    async def close(self) -> None:
        """End the threads, when they are ours."""
        if not self._is_sibling:
            await self._database.close()

    async def write(
        self,
        script: ScriptMaker[T],
        *,
        atomic: bool = True,  # noqa: ARG002 -- it always is
        hint: Hint | None = None,
        rows: int | None = 1,  # noqa: ARG002 -- no network can be silent
        again: ScriptMaker[T] | None = None,  # noqa: ARG002 -- nor lose an answer
    ) -> T:
        """Run a script in a transaction, which it may share with others; one that changes nothing writes nothing."""
        work, name = partial(run_script, script=script, clock=self._clock), partial(_name, script)
        single = isinstance(script, SingleQueryScript)
        return await self._database.writer.do(work, name=name, grouped=True, single=single, hint=hint)

    def write_blocking(self, script: ScriptMaker[T], *, hint: Hint | None = None) -> T:
        """Do the same for a thread that may wait, and in that thread if no other one writes."""
        work, name = partial(run_script, script=script, clock=self._clock), partial(_name, script)
        single = isinstance(script, SingleQueryScript)
        answer: T = self._database.writer.write_blocking(work, name=name, single=single, hint=hint)
        return answer

    async def read(self, script: ScriptMaker[T], *, rows: int | None = 1) -> T:  # noqa: ARG002
        """Run a script that changes nothing, in another thread than the one that writes."""
        return await self._database.reader.do(partial(run_script, script=script, clock=self._clock))

    def borrow(self, tx: object) -> CallerTransaction:
        """Take a caller's connection, which is used in the caller's thread."""
        # The commit is the caller's, behind which we cannot look; those before it may have left a long log.
        self._database.look_at_log()
        if isinstance(tx, sqlite3.Connection):
            return SqliteCallerTransaction(tx, clock=self._clock, path=self._database.path)
        return take_sqlalchemy(tx, dialect="sqlite", clock=self._clock, native="a sqlite3.Connection")

    def announcement(self, hint: Hint) -> Query | None:  # noqa: ARG002 -- all hints are alike
        """Say that nothing needs to be said: a commit is seen in the file."""
        return None

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction on a connection of its own."""
        return SqliteHandlerTransaction(self._database, clock=self._clock, timeout=timeout)

    def sibling(self) -> Self:
        """Return a view on the same threads, which serve any event loop."""
        return type(self)(self._database, clock=self._clock, is_sibling=True)

    def hint(self, hint: Hint) -> None:
        """Tell this process, and others where it is urgent; they also see the commit itself."""
        self._database.tell(hint)

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield our own hints as they are, of other processes new jobs, and their commits as `any`."""
        return self._database.subscribers.hints_while(self._watch)

    @property
    def persistent(self) -> bool:
        """Whether there is a file."""
        return self._database.path is not None

    @property
    def hears_others(self) -> bool:
        """Whether a commit of another process would be seen from now on; one in memory has no others."""
        listening = tuple(self._listening.values())
        return self._database.path is None or (bool(listening) and all(listening))

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the version, the settings and the file."""
        database = self._database
        return await database.writer.do(lambda connection: examine(connection, database))

    async def _watch(self, subscriber: HintSubscriber) -> None:
        database = self._database
        if database.path is None:
            return
        known = database.touches

        def touched() -> None:
            nonlocal known
            own, known = database.touches != known, database.touches
            # One of another process that comes together with our own is found by the looks.
            if not own:
                subscriber.put(Hint("jobs"))

        look, writes_since = partial(self._data_version, subscriber), database.writer.writes_since
        # Until its first look: a commit from before that is not told to it, whatever another has seen.
        self._listening[subscriber] = False
        try:
            while True:
                try:
                    async for _ in commits(database.path, look, on_touch=touched, writes_since=writes_since):
                        subscriber.put(Hint("any"))
                except NotOpen:
                    return
                except StoreError:
                    self._listening[subscriber] = False
                    # Hints may be lost: workers that rely on them must know, and poll.
                    subscriber.put(Hint("any"))
                    await asyncio.sleep(_WATCH_AGAIN)
        finally:
            del self._listening[subscriber]

    async def _data_version(self, subscriber: HintSubscriber) -> int:
        """Return a number that changes when another connection has committed; our own writer's do not count."""
        version = await self._database.writer.do(lambda c: c.execute("PRAGMA data_version").fetchone())
        self._listening[subscriber] = True
        return int(version[0])


def _name(script: Callable[[], Script[object]]) -> str:
    return script_name(script())
