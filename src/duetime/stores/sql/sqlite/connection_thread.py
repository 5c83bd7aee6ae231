"""A thread that owns one connection, and answers requests from other threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import os
import queue
import sqlite3
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from duetime.errors import NotOpen, StoreLost, StoreUnavailable
from duetime.failpoints import failpoint
from duetime.stores.sql.sqlite.connection import become_writer, wait_to_write

ConnectionWork: TypeAlias = Callable[[sqlite3.Connection], Any]

_MOST_SCRIPTS: Final = 64
_MOST_CHANGES: Final = 2_000
"""A group takes in no more scripts from here on, so that the first one does not wait long for its answer."""
_LONGEST_WAIT: Final = 10.0
"""How long other processes may keep us from writing before we give up, in seconds."""


@dataclass(slots=True, eq=False)
class ConnectionRequest:
    """Something to do on the connection, and the future of the caller who waits for it."""

    work: ConnectionWork
    """Runs again from the start when a neighbour has failed."""
    name: str
    grouped: bool
    """Whether it runs in a writing transaction, together with its neighbours."""
    single: bool = False
    """Whether it is one statement, which needs no BEGIN and COMMIT if it has no neighbours."""
    then: Callable[[], None] | None = None
    """What follows its commit, in the same thread; once if all requests of a group have it in common."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop in which it is answered; None if any thread will do."""
    future: asyncio.Future[Any] | concurrent.futures.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Do it."""
        self.result = self.work(connection)


_LENIENT_TEXT: Final = partial(str, encoding="utf-8", errors="replace")
"""Reads bytes that are no text with replacements; every text takes longer to read this way."""


def _met_no_text(error: BaseException | None) -> bool:
    """Whether an error was that bytes are no text."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)


class ConnectionThread:
    """Serves requests one after another in a thread of its own; usable from any thread of this process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        name: str,
        look: Callable[[], object] | None = None,
    ) -> None:
        """`look` is called after each commit or read, and before the answer; if it raises `StoreLost`, that is the answer."""
        self._connect = connect
        self._look = look
        self._pid = os.getpid()
        self._queue: queue.SimpleQueue[ConnectionRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        # The thread that holds it may take it again: a signal handler that stores a job comes at any moment.
        self._lock = threading.RLock()
        self._closed = False
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
        """Start the thread, which makes the connection, and raise what that raises."""
        self._thread.start()
        await self.do(lambda _: None)

    def do(
        self,
        work: ConnectionWork,
        *,
        name: str = "",
        grouped: bool = False,
        single: bool = False,
        then: Callable[[], None] | None = None,
    ) -> asyncio.Future[Any]:
        """Run work on the connection; the answer is what it returns."""
        self._check_process()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._put(ConnectionRequest(work, name, grouped, single, then, loop, future))
        return future

    def write_blocking(
        self,
        work: ConnectionWork,
        *,
        name: str = "",
        single: bool = False,
        then: Callable[[], None] | None = None,
    ) -> Any:
        """Run work in a writing transaction for a thread that may wait.

        If no other thread is about to use the connection, the caller's thread does, since a change of threads takes
        as long as half a commit. Otherwise it joins the others, and shares their commit.
        """
        self._check_process()
        me = threading.get_ident()
        if me in self._callers:
            raise StoreUnavailable(
                "a signal handler has interrupted this thread while it stored a job, and would wait for itself; "
                "note what happened there, and enqueue where the handler has returned to"
            )
        request = ConnectionRequest(work, name, grouped=True, single=single, then=then)
        if not self._is_taken() and self._write_for(me, request):
            if request.error is not None:
                raise request.error
            if then is not None:
                then()
            return request.result
        request.future = concurrent.futures.Future()
        self._put(request)
        return request.future.result()

    def later(self, work: ConnectionWork) -> None:
        """Run work on the connection after what was asked for before, outside of any transaction; its answer is dropped."""
        with contextlib.suppress(NotOpen):
            self._put(ConnectionRequest(work, "", grouped=False))

    def writes_since(self, moment: float) -> bool:
        """Whether it writes, or has written since a moment of the monotonic clock."""
        return self._writing or self._wrote_at > moment

    async def close(self) -> None:
        """Finish what was asked for before, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if os.getpid() == self._pid and self._thread.ident is not None:
            # Not joined in yet another thread: at the end of the process none can be started any more.
            await asyncio.wrap_future(self._over)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise NotOpen(
                "this process was forked after the store was opened; a database connection does not survive "
                "that: open the scheduler in the child"
            )

    def _put(self, request: ConnectionRequest) -> None:
        with self._lock:
            if self._closed:
                raise NotOpen("the store is closed; use it inside `async with scheduler`")
            self._queue.put(request)

    def _is_taken(self) -> bool:
        """Whether a thread uses the connection or is about to."""
        return self._wanted or self._in_use.locked() or not self._queue.empty()

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
            self._serve()
        finally:
            self._over.set_result(None)

    def _serve(self) -> None:
        try:
            # Kept in an attribute, too: in a forked child, which lacks this thread, it must never be closed.
            connection = self._connection = self._connect()
        except BaseException as error:  # noqa: BLE001 -- raised to each caller
            self._refuse(error)
            return
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
            _answer(done)
            _follow(done)
            # Freed here, so that nothing is kept alive while the thread waits.
            del request, done

    def _perform(
        self,
        connection: sqlite3.Connection,
        request: ConnectionRequest,
        backlog: deque[ConnectionRequest | None],
    ) -> list[ConnectionRequest]:
        """Run a request, with those of the backlog that may share its transaction, and return them."""
        done = self._write(connection, request, backlog) if request.grouped else _read(connection, request)
        if connection.text_factory is str and (failed := [one for one in done if _met_no_text(one.error)]):
            # A row with bytes that are no text must not keep us from reading other rows. What has failed is undone.
            connection.text_factory = _LENIENT_TEXT
            for one in failed:
                one.error = None
                self._perform(connection, one, deque())
        if self._look is not None:
            try:
                self._look()
            except StoreLost as error:
                for one in done:
                    one.error = error
        return done

    def _write(
        self,
        connection: sqlite3.Connection,
        first: ConnectionRequest,
        backlog: deque[ConnectionRequest | None],
    ) -> list[ConnectionRequest]:
        """Run a request in a transaction, with those of the backlog that may share it, and return them."""
        self._writing = True
        try:
            # In a transaction that could not be rolled back, a single statement would never be committed.
            if first.single and not backlog and not connection.in_transaction:
                return _write_single(connection, first)
            return _write_group(connection, first, _group(connection, first, backlog))
        finally:
            self._wrote_at = time.monotonic()
            self._writing = False

    def _refuse(self, error: BaseException) -> None:
        while (request := self._queue.get()) is not None:
            request.error = error
            _answer([request])


def _group(
    connection: sqlite3.Connection, first: ConnectionRequest, backlog: deque[ConnectionRequest | None]
) -> Iterator[ConnectionRequest]:
    """Yield a request and those that may share its transaction, as long as it stays small."""
    before = connection.total_changes
    yield first
    for _ in range(_MOST_SCRIPTS - 1):
        if connection.total_changes - before >= _MOST_CHANGES:
            return
        if not backlog or (request := backlog[0]) is None or not request.grouped:
            return
        backlog.popleft()
        yield request


def _write_single(connection: sqlite3.Connection, request: ConnectionRequest) -> list[ConnectionRequest]:
    """Run one statement that is a transaction by itself."""
    try:
        failpoint(f"before:{request.name}")
        wait_to_write(partial(request.run, connection), timeout=_LONGEST_WAIT)
        failpoint(f"after:{request.name}")
    except BaseException as error:  # noqa: BLE001 -- raised to the caller
        request.error = error
    return [request]


def _write_group(
    connection: sqlite3.Connection, first: ConnectionRequest, requests: Iterator[ConnectionRequest]
) -> list[ConnectionRequest]:
    """Run requests, of which `first` is the first, in one transaction."""
    group: list[ConnectionRequest] = []
    try:
        become_writer(connection, timeout=_LONGEST_WAIT)
        try:
            for request in requests:
                group.append(request)
                request.run(connection)
        except BaseException:
            # Some errors, such as a full disk, end the whole transaction.
            if len(group) == 1 or not connection.in_transaction:
                raise
            connection.execute("ROLLBACK")
            become_writer(connection, timeout=_LONGEST_WAIT)
            _run_apart(connection, group)
        for request in group:
            failpoint(f"before:{request.name}")
        connection.execute("COMMIT")
        for request in group:
            failpoint(f"after:{request.name}")
    except BaseException as error:  # noqa: BLE001 -- raised to the callers
        if connection.in_transaction:
            # A rollback that fails as well is reported by the next BEGIN, not by the end of this thread.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        for request in group or [first]:
            request.error = request.error or error
    return group or [first]


def _run_apart(connection: sqlite3.Connection, group: list[ConnectionRequest]) -> None:
    """Run requests so that one that fails does so alone.

    Only for a group in which one has failed: to set a savepoint before each takes a quarter of its time.
    """
    for request in group:
        connection.execute("SAVEPOINT request")
        try:
            request.run(connection)
        except BaseException as error:
            if not connection.in_transaction:
                raise
            request.error = error
            connection.execute("ROLLBACK TO request")
        connection.execute("RELEASE request")


def _read(connection: sqlite3.Connection, request: ConnectionRequest) -> list[ConnectionRequest]:
    try:
        request.run(connection)
    except BaseException as error:  # noqa: BLE001 -- raised to the caller
        request.error = error
    return [request]


def _answer(done: list[ConnectionRequest]) -> None:
    """Hand out the answers with one wake-up for each event loop."""
    by_loop: defaultdict[asyncio.AbstractEventLoop | None, list[ConnectionRequest]] = defaultdict(list)
    for request in done:
        by_loop[request.loop].append(request)
    for loop, requests in by_loop.items():
        if loop is None:
            _resolve(requests)
        else:
            # A loop that was closed has no one left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, requests)


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


def _follow(group: list[ConnectionRequest]) -> None:
    """Do what follows the commit of requests, after their callers were answered."""
    for then in {request.then for request in group if request.then is not None and request.error is None}:
        then()
