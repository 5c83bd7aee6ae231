"""Runs scripts on a SQLite file: a whole script in one hop to its thread."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, Self, TypeVar

from duetime.errors import NotOpen, StoreLost
from duetime.model.time import Clock, Micros
from duetime.stores.base import DoctorCheck, Hint
from duetime.stores.base.hints import HintSubscriber, HintSubscribers
from duetime.stores.sql.driver import (
    CallerTransaction,
    DriverHandlerTransaction,
    Query,
    Script,
    SingleQueryScript,
    script_name,
)
from duetime.stores.sql.sqlite.checks import examine
from duetime.stores.sql.sqlite.commit_watch import commits
from duetime.stores.sql.sqlite.connection import play_at, values_of
from duetime.stores.sql.sqlite.database import Database, require_version
from duetime.stores.sql.sqlite.errors import TranslatedErrors
from duetime.stores.sql.sqlite.transactions import SqliteCallerTransaction, SqliteHandlerTransaction
from duetime.stores.sql.transactions.caller import take_sqlalchemy

T = TypeVar("T")

_WATCH_AGAIN: Final = 1.0


class SqliteDriver:
    """A driver for one database; siblings share its threads."""

    single_writer = True

    def __init__(self, database: Database, *, clock: Clock, shared: HintSubscribers | None = None) -> None:
        self._clock = clock
        self._database = database
        self._translated = TranslatedErrors(database.path)
        self._owner = shared is None
        self._subscribers = shared or HintSubscribers()
        self._listening: dict[HintSubscriber, bool] = {}
        """The listeners, and whether a commit of another process would be told to each."""

    async def open(self) -> None:
        """Start the threads; a sibling uses those of its owner, who has brought the tables up to date."""
        with self._translated:
            if self._owner:
                require_version()
                await self._database.open()
            else:
                await self._database.sort_in_memory()

    async def close(self) -> None:
        """End the threads, when they are ours."""
        if self._owner:
            await self._database.close()

    async def write(
        self,
        script: Callable[[], Script[T]],
        *,
        atomic: bool = True,  # noqa: ARG002 -- it always is
        hint: Hint | None = None,
        rows: int | None = 1,  # noqa: ARG002 -- no network can be silent
        again: Callable[[], Script[T]] | None = None,  # noqa: ARG002 -- nor lose an answer
    ) -> T:
        """Run a script in a transaction, which it may share with others; one that changes nothing writes nothing."""
        name, work, single = self._work(script)
        signal = None if hint is None else self._signal(hint)
        with self._translated:
            answer: T = await self._database.writer.do(
                work, name=name, grouped=True, single=single, then=signal
            )
        if hint is not None:
            self._subscribers.notify(hint)
        return answer

    def write_blocking(self, script: Callable[[], Script[T]], *, hint: Hint | None = None) -> T:
        """Do the same for a thread that may wait, and in that thread if no other one writes."""
        name, work, single = self._work(script)
        signal = None if hint is None else self._signal(hint)
        with self._translated:
            answer: T = self._database.writer.write_blocking(work, name=name, single=single, then=signal)
        if hint is not None:
            self._subscribers.notify(hint)
        return answer

    async def read(self, script: Callable[[], Script[T]], *, rows: int | None = 1) -> T:  # noqa: ARG002
        """Run a script that changes nothing, in another thread than the one that writes."""
        name, work, _ = self._work(script)
        with self._translated:
            answer: T = await self._database.reader.do(work, name=name)
        return answer

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
        return type(self)(self._database, clock=self._clock, shared=self._subscribers)

    def hint(self, hint: Hint) -> None:
        """Tell this process, and others where it is urgent; they also see the commit itself."""
        self._subscribers.notify(hint)
        if (signal := self._signal(hint)) is not None:
            signal()

    async def wakeups(self) -> AsyncIterator[Hint]:
        """Yield our own hints as they are, of other processes new jobs, and their commits as `any`."""
        with self._subscribers.listening() as subscriber:
            watch = asyncio.create_task(self._watch(subscriber))
            try:
                async for hint in subscriber.hints():
                    yield hint
            finally:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch

    @property
    def hears_others(self) -> bool:
        """Whether a commit of another process would be seen from now on; one in memory has no others."""
        listening = tuple(self._listening.values())
        return self._database.path is None or (bool(listening) and all(listening))

    async def doctor(self) -> list[DoctorCheck]:
        """Look at the version, the settings and the file."""
        database = self._database
        with self._translated:
            found: list[DoctorCheck] = await database.writer.do(
                lambda connection: examine(connection, database)
            )
        return found

    def _signal(self, hint: Hint) -> Callable[[], None] | None:
        """Return what tells other processes of a hint, if it is urgent and there are any."""
        signals = self._database.signals
        return None if hint.kind != "jobs" or signals is None else signals.send

    def _work(self, script: Callable[[], Script[T]]) -> tuple[str, Callable[[sqlite3.Connection], T], bool]:
        """Return what a script is called, what it does to the connection, and whether that is one statement."""
        clock = self._clock
        if isinstance(script, SingleQueryScript):
            lone: SingleQueryScript[T] = script  # pyright: ignore[reportUnknownVariableType] -- of what the script returns
            query = lone.query

            def execute(connection: sqlite3.Connection) -> T:
                connection.execute(query.statement.sql, values_of(query, clock.now()))
                return lone.answer

            return lone.verb, execute, True
        return script_name(script()), lambda connection: play_at(connection, script(), clock.now()), False

    async def _watch(self, subscriber: HintSubscriber) -> None:
        path, signals = self._database.path, self._database.signals
        if path is None or signals is None:
            return
        on_touch = signals.heard_by(partial(subscriber.put, Hint("jobs")))
        look = partial(self._data_version, subscriber)
        # Until its first look: a commit from before that is not told to it, whatever another has seen.
        self._listening[subscriber] = False
        try:
            while True:
                try:
                    writes_since = self._database.writer.writes_since
                    async for _ in commits(path, look, on_touch=on_touch, writes_since=writes_since):
                        subscriber.put(Hint("any"))
                except NotOpen:
                    return
                except (sqlite3.Error, StoreLost):
                    self._listening[subscriber] = False
                    # Hints may be lost: workers that rely on them must know, and poll.
                    subscriber.put(Hint("any"))
                    await asyncio.sleep(_WATCH_AGAIN)
        finally:
            del self._listening[subscriber]

    async def _data_version(self, subscriber: HintSubscriber) -> int:
        version: int = await self._database.writer.do(_data_version)
        self._listening[subscriber] = True
        return version


def _data_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection has committed; our own writer's do not count."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
