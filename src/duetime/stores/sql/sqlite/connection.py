"""A connection to SQLite: how a script runs on it, how it waits for others who write, and the thread that owns it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import os
import queue
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeAlias, TypeVar

from duetime import failpoints
from duetime.errors import NotOpen, StoreLost, StoreUnavailable
from duetime.model.time import Clock, Instant
from duetime.stores.base import Hint
from duetime.stores.sql.driver import (
    FORKED,
    NOT_OPEN,
    Query,
    Row,
    ScriptMaker,
    SingleQueryScript,
    Statement,
    play,
)
from duetime.stores.sql.sqlite.errors import StrPath, has_moved_on, is_busy, met_no_text, translate
from duetime.stores.sql.sqlite.lock_holders import warn_of_own_transaction

T = TypeVar("T")

ConnectionWork: TypeAlias = Callable[[sqlite3.Connection], Any]

_SHORTEST_PAUSE: Final = 0.0002
_LONGEST_PAUSE: Final = 0.001
_LONGEST_WAIT: Final = 10.0
"""How long others may keep us from writing before we give up, in seconds."""
_BEFORE_LOOK: Final = 0.9
"""Seconds of waiting after which to look whether it is this process that keeps us from writing."""
_MOST_SCRIPTS: Final = 64
_MOST_CHANGES: Final = 2_000
"""A group takes in no more scripts from here on, so that the first one does not wait long for its answer."""
_LENIENT_TEXT: Final = partial(str, encoding="utf-8", errors="replace")
"""Reads bytes that are no text with replacements; every text takes longer to read this way."""


def run_script(connection: sqlite3.Connection, script: ScriptMaker[T], clock: Clock) -> T:
    """Run a script to its end, all of it at one moment of the store's clock."""
    now = clock.now()
    # Closed also behind an error: a statement that was left half way would keep the connection at an old view.
    with contextlib.closing(plain_cursor(connection)) as cursor:
        if isinstance(script, SingleQueryScript):
            single: SingleQueryScript[T] = script  # pyright: ignore[reportUnknownVariableType] -- of what it returns
            return single.answer(_execute(cursor, now, single.query))
        return play(script(), partial(_execute, cursor, now))


def _execute(cursor: sqlite3.Cursor, now: Instant, query: Query) -> list[Row]:
    """Return the rows of a query; a statement that returns none answers how many it has changed."""
    statement = query.statement
    if statement.columns:
        batch: Any = query.params["rows"]
        values_with = by_row(statement, {**query.params, "now": now})
        return [row for row in batch if cursor.execute(statement.sql, values_with(row)).rowcount]
    cursor.execute(statement.sql, values_of(query, now))
    return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()


def values_of(query: Query, now: Instant | None) -> tuple[Any, ...]:
    """Return the values of a query in the order of its parameters."""
    return tuple(map({**query.params, "now": now}.__getitem__, query.statement.params))


def by_row(statement: Statement, values: Mapping[str, Any]) -> Callable[[Row], tuple[Any, ...]]:
    """Return what puts a row of the batch and the values that all rows share in the order of the parameters."""
    shared = tuple(dict.fromkeys(name for name in statement.params if name not in statement.columns))
    names, rest = (*statement.columns, *shared), [values[name] for name in shared]
    in_order = itemgetter(*map(names.index, statement.params))
    return lambda row: in_order((*row, *rest))


def plain_cursor(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """Return a cursor whose rows are tuples, whatever the owner of the connection likes to read."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor


def become_writer(
    connection: sqlite3.Connection, *, timeout: float, look: Callable[[], object] = lambda: None
) -> None:
    """Begin a transaction that is the one writer, or raise `StoreUnavailable`."""
    wait_to_write(partial(connection.execute, "BEGIN IMMEDIATE"), timeout=timeout, look=look)


def wait_to_write(
    execute: Callable[[], T], *, timeout: float, look: Callable[[], object] = lambda: None
) -> T:
    """Do something as soon as no other connection is in the way; raise `StoreUnavailable` after a time.

    `look` is called once, when it has waited for about a second.
    """
    began = time.monotonic()
    look_at = began + _BEFORE_LOOK
    while True:
        try:
            return execute()
        except sqlite3.OperationalError as error:
            time.sleep(pause_for_writers(error, began=began, timeout=timeout))
            if time.monotonic() > look_at:
                look()
                look_at = math.inf


def pause_for_writers(error: sqlite3.OperationalError, *, began: float, timeout: float) -> float:
    """Return how long to wait before the next try, where another connection was in the way.

    SQLite's own way of waiting starves connections that come late; short even waits are fair. Raises the error where
    waiting is in vain, and `StoreUnavailable` when the time is up.
    """
    if not is_busy(error) or has_moved_on(error):
        raise error
    if time.monotonic() - began > timeout:
        raise StoreUnavailable(
            f"another transaction, of this process or another one, has kept the database locked for {timeout:.0f} "
            "seconds (to store a job in it, use options(tx=...)); end what holds it"
        ) from error
    return random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)


@dataclass(slots=True, eq=False)
class ConnectionRequest:
    """Something to do on the connection, and the future of the caller who waits for it."""

    work: ConnectionWork
    """Runs again from the start when a neighbour has failed."""
    name: Callable[[], str] = str
    """Returns the name of its failpoints."""
    grouped: bool = False
    """Whether it runs in a writing transaction, together with its neighbours."""
    single: bool = False
    """Whether it is one statement, which needs no BEGIN and COMMIT if it has no neighbours."""
    hint: Hint | None = None
    """What to tell once it is committed; once if requests of a group have it in common."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop in which it is answered; None if any thread will do."""
    future: asyncio.Future[Any] | concurrent.futures.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None


class ConnectionThread:
    """Serves requests one after another in a thread of its own; usable from any thread of this process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        name: str,
        path: StrPath | None,
        look: Callable[[], object],
        tell: Callable[[Hint], None],
    ) -> None:
        """`look` is called before each answer; if it raises `StoreLost`, that is the answer. `tell` gives hints."""
        self._connect = connect
        self._path = path
        self._warn: Callable[[], object] = (
            (lambda: None) if path is None else partial(warn_of_own_transaction, path)
        )
        self._look = look
        self._tell = tell
        self._pid = os.getpid()
        self._queue: queue.SimpleQueue[ConnectionRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        # The thread that holds it may take it again: a signal handler that stores a job comes at any moment.
        self._lock = threading.RLock()
        self._open = False
        self._connection: sqlite3.Connection | None = None
        self._in_use = threading.Lock()
        """Held by the thread that uses the connection."""
        self._wanted = False
        """Whether our own thread waits for the connection; blocking callers then wait behind it."""
        self._callers: set[int] = set()
        """The threads of blocking callers that use it or wait for it; what interrupts one must not wait for it."""
        self._writing = False
        self._wrote_at = -math.inf
        self._over: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A caller that is cancelled while it waits for the end must not cancel it for the others.
        self._over.set_running_or_notify_cancel()

    async def start(self) -> None:
        """Start the thread, which makes the connection, and raise what that raises; safe to call twice."""
        if self._thread.ident is None:
            self._open = True
            self._thread.start()
        await self.do(lambda _: None)

    def do(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        name: Callable[[], str] = str,
        grouped: bool = False,
        single: bool = False,
        hint: Hint | None = None,
    ) -> asyncio.Future[T]:
        """Run work on the connection; the answer is what it returns. Errors of SQLite come as our own."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(ConnectionRequest(work, name, grouped, single, hint, loop, future))
        return future

    def write_blocking(
        self,
        work: ConnectionWork,
        *,
        name: Callable[[], str] = str,
        single: bool = False,
        hint: Hint | None = None,
    ) -> Any:
        """Run work in a writing transaction for a thread that may wait.

        If no other thread is about to use the connection, the caller's thread does, since a change of threads takes
        as long as half a commit. Otherwise it joins the others, and shares their commit.
        """
        if os.getpid() != self._pid:
            raise NotOpen(FORKED)
        me = threading.get_ident()
        if me in self._callers:
            raise StoreUnavailable(
                "a signal handler has interrupted this thread while it stored a job, and would wait for itself; "
                "note what happened there, and enqueue where the handler has returned to"
            )
        request = ConnectionRequest(work, name, grouped=True, single=single, hint=hint)
        is_taken = self._wanted or self._in_use.locked() or not self._queue.empty()
        if not is_taken and self._write_for(me, request):
            if request.error is not None:
                raise request.error
            if hint is not None:
                self._tell(hint)
            return request.result
        request.future = concurrent.futures.Future()
        self._put(request)
        return request.future.result()

    def later(self, work: ConnectionWork) -> None:
        """Run work on the connection after what was asked for before, outside of any transaction; its answer is dropped."""
        with contextlib.suppress(NotOpen):
            self._put(ConnectionRequest(work))

    def writes_since(self, moment: float) -> bool:
        """Whether it writes, or has written since a moment of the monotonic clock."""
        return self._writing or self._wrote_at > moment

    async def close(self) -> None:
        """Finish what was asked for before, then end the thread."""
        with self._lock:
            if self._open:
                self._open = False
                self._queue.put(None)
        if os.getpid() == self._pid and self._thread.ident is not None:
            # Not joined in yet another thread: at the end of the process none can be started any more.
            await asyncio.wrap_future(self._over)

    def _put(self, request: ConnectionRequest) -> None:
        if os.getpid() != self._pid:
            raise NotOpen(FORKED)
        with self._lock:
            if not self._open:
                raise NotOpen(NOT_OPEN)
            self._queue.put(request)

    def _write_for(self, caller: int, request: ConnectionRequest) -> bool:
        """Write in the thread of a caller, unless the connection is closed by now."""
        try:
            # Before the lock is taken until after it is free: a signal handler may come between any two calls.
            self._callers.add(caller)
            # A thread that came first in between is done soon. To try for the lock without waiting would leave it held
            # if an interrupt comes between the try and the test of its answer.
            with self._in_use:
                if self._connection is None:
                    return False
                self._perform(self._connection, request, deque())
        finally:
            self._callers.discard(caller)
        return True

    def _run(self) -> None:
        try:
            # Kept in an attribute, too: in a forked child, which lacks this thread, it must never be closed.
            connection = self._connection = self._connect()
        except BaseException as error:  # noqa: BLE001 -- raised to each caller
            while (request := self._queue.get()) is not None:
                request.error = translate(error, self._path)
                self._answer([request])
        else:
            self._serve(connection)
        finally:
            self._over.set_result(None)

    def _serve(self, connection: sqlite3.Connection) -> None:
        backlog: deque[ConnectionRequest | None] = deque()
        while True:
            if not backlog:
                backlog.append(self._queue.get())
            request = backlog.popleft()
            self._wanted = True
            with self._in_use:
                self._wanted = False
                if request is None:
                    self._connection = None
                    connection.close()
                    return
                while len(backlog) < _MOST_SCRIPTS and not self._queue.empty():
                    backlog.append(self._queue.get_nowait())
                done = self._perform(connection, request, backlog)
            self._answer(done)
            # Freed here, so that nothing is kept alive while the thread waits.
            del request, done

    def _perform(
        self,
        connection: sqlite3.Connection,
        request: ConnectionRequest,
        backlog: deque[ConnectionRequest | None],
    ) -> list[ConnectionRequest]:
        """Run a request, with those of the backlog that may share its transaction, and return them."""
        # In a transaction that could not be rolled back, a single statement would never be committed.
        alone = not request.grouped or (request.single and not backlog and not connection.in_transaction)
        done = [request]
        self._writing = request.grouped
        try:
            if alone:
                _run_alone(connection, request, self._warn)
            else:
                _run_group(connection, done, backlog, self._warn)
        finally:
            if request.grouped:
                self._wrote_at = time.monotonic()
                self._writing = False
        strict = connection.text_factory is str
        for one in done:
            if one.error is None:
                continue
            if strict and met_no_text(one.error):
                # A row with bytes that are no text must not keep us from reading other rows. What has failed is undone.
                connection.text_factory, one.error = _LENIENT_TEXT, None
                self._perform(connection, one, deque())
            else:
                one.error = translate(one.error, self._path)
        try:
            self._look()
        except StoreLost as error:
            for one in done:
                one.error = error
        return done

    def _answer(self, done: list[ConnectionRequest]) -> None:
        """Hand out the answers with one wake-up for each event loop, then tell of what was committed."""
        by_loop: dict[asyncio.AbstractEventLoop | None, list[ConnectionRequest]] = {}
        hints: dict[Hint, None] = {}
        for request in done:
            by_loop.setdefault(request.loop, []).append(request)
            if request.hint is not None and request.error is None:
                hints[request.hint] = None
        for loop, requests in by_loop.items():
            if loop is None:
                _resolve(requests)
            else:
                # A loop that was closed has no one left who waits.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(_resolve, requests)
        for hint in hints:
            self._tell(hint)


def _run_alone(
    connection: sqlite3.Connection, request: ConnectionRequest, warn: Callable[[], object]
) -> None:
    """Run what only reads, or one statement that is a transaction by itself."""
    try:
        _visit("before", [request])
        work = partial(request.work, connection)
        request.result = wait_to_write(work, timeout=_LONGEST_WAIT, look=warn)
        _visit("after", [request])
    except BaseException as error:  # noqa: BLE001 -- raised to the caller
        request.error = error


def _run_group(
    connection: sqlite3.Connection,
    group: list[ConnectionRequest],
    backlog: deque[ConnectionRequest | None],
    warn: Callable[[], object],
) -> None:
    """Run a group of one request in a transaction, and add those of the backlog that may share it while it is small."""
    try:
        become_writer(connection, timeout=_LONGEST_WAIT, look=warn)
        before, request = connection.total_changes, group[0]
        try:
            request.result = request.work(connection)
            while connection.total_changes - before < _MOST_CHANGES:
                if not backlog or (behind := backlog[0]) is None or not behind.grouped:
                    break
                group.append(behind)
                backlog.popleft()
                behind.result = behind.work(connection)
        except BaseException:
            # Some errors, such as a full disk, end the whole transaction.
            if len(group) == 1 or not connection.in_transaction:
                raise
            # Each in a transaction of its own, so that one that fails does so alone.
            connection.execute("ROLLBACK")
            for request in group:
                _run_group(connection, [request], deque(), warn)
            return
        _visit("before", group)
        connection.execute("COMMIT")
        _visit("after", group)
    except BaseException as error:  # noqa: BLE001 -- raised to the callers
        if connection.in_transaction:
            # A rollback that fails as well is reported by the next BEGIN, not by the end of this thread.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        for request in group:
            request.error = request.error or error


def _visit(moment: str, group: list[ConnectionRequest]) -> None:
    """Visit the failpoints of requests; their names are worked out only where a test has armed one."""
    if failpoints.armed is not None:
        for request in group:
            failpoints.failpoint(f"{moment}:{request.name()}")


def _resolve(requests: list[ConnectionRequest]) -> None:
    """Give the answers to the callers that still wait."""
    for request in requests:
        future = request.future
        if future is None or future.done():
            continue
        if request.error is not None:
            future.set_exception(request.error)
        else:
            future.set_result(request.result)
