"""A thread that owns one connection, and the futures of those who wait for it."""

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
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from duetime.errors import NotOpen, StoreLost, StoreUnavailable
from duetime.failpoints import failpoint
from duetime.stores.sql.sqlite.connection import become_writer, wait_to_write
from duetime.stores.sql.sqlite.errors import is_busy

ConnectionWork: TypeAlias = Callable[[sqlite3.Connection], Any]

_MOST_SCRIPTS: Final = 64
_MOST_CHANGES: Final = 2_000
"""A group stops taking in scripts here, so that the first of it does not wait long for its answer."""
_LONGEST_WAIT: Final = 10.0
"""How long other processes may keep us from writing before we give up, in seconds."""
_LENIENT_TEXT: Final = partial(str, encoding="utf-8", errors="replace")
"""Reads bytes that are no text with replacements."""


@dataclass(slots=True, eq=False)
class ConnectionRequest:
    """Something to do on the connection, and who waits for it."""

    work: ConnectionWork
    """Runs again from the start when a neighbour has failed."""
    name: str
    grouped: bool
    """Whether it runs in a writing transaction, together with its neighbours."""
    single: bool = False
    """Whether it is one statement, which is such a transaction by itself where it has no neighbours."""
    then: Callable[[], None] | None = None
    """What follows its commit, in the same thread; once for all tasks of a group that have it in common."""
    loop: asyncio.AbstractEventLoop | None = None
    """Whose thread it is answered in; without one, in whatever thread."""
    future: asyncio.Future[Any] | concurrent.futures.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Do it."""
        self.result = self.work(connection)

    def resolve(self) -> None:
        """Give the answer to the one who waits, if there is one."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class ConnectionThread:
    """Runs tasks one after another in a thread of its own; usable from any thread of this process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        name: str,
        look: Callable[[], object] | None = None,
    ) -> None:
        """Call `look` after each commit or read, and before the answer; if it raises `StoreLost`, that is the answer."""
        self._connect = connect
        self._look = look
        self._pid = os.getpid()
        self._queue: queue.SimpleQueue[ConnectionRequest | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        # May be taken again by the thread that holds it: a signal handler that stores a job comes at any moment.
        self._lock = threading.RLock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._in_use = threading.Lock()
        """Held by the thread that uses the connection."""
        self._wanted = False
        """Whether our own thread waits for it; whoever comes now waits behind."""
        self._callers: set[int] = set()
        """The threads of blocking callers that use it or wait for it; what interrupts one must not wait for it."""
        self._writing = False
        self._wrote_at = -math.inf
        self._over: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Whoever is cancelled while it waits for the end must not take it from the others.
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

        Where nobody else is about to use the connection it is that thread which does, since a change of threads takes
        as long as half a commit. Otherwise it joins the others, and shares their commit.
        """
        self._check_process()
        me = threading.get_ident()
        if me in self._callers:
            raise StoreUnavailable(
                "a signal handler has interrupted this thread while it stored a job, and would wait for itself; "
                "note what happened there, and enqueue where the handler has returned to"
            )
        task = ConnectionRequest(work, name, True, single, then)  # noqa: FBT003 -- by place, as names take longer
        if not self._is_taken() and self._write_for(me, task):
            if task.error is not None:
                raise task.error
            if then is not None:
                then()
            return task.result
        task.future = concurrent.futures.Future()
        self._put(task)
        return task.future.result()

    def later(self, work: ConnectionWork) -> None:
        """Run work on the connection when its turn comes, outside of any transaction; its answer is dropped."""
        with contextlib.suppress(NotOpen):
            self._put(ConnectionRequest(work, "", grouped=False))

    def reads_any_text(self, error: sqlite3.Error) -> bool:
        """Whether an error was that bytes are no text, and from now on they are read with replacements.

        What is no text must not take the rows beside it along. From the start this would cost every row a little time.
        """
        connection = self._connection
        if (
            connection is None
            or "decode to UTF-8" not in str(error)
            or connection.text_factory is _LENIENT_TEXT
        ):
            return False
        connection.text_factory = _LENIENT_TEXT
        return True

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

    def _put(self, task: ConnectionRequest) -> None:
        with self._lock:
            if self._closed:
                raise NotOpen("the store is closed; use it inside `async with scheduler`")
            self._queue.put(task)

    def _is_taken(self) -> bool:
        """Whether somebody uses the connection or is about to."""
        return self._wanted or self._in_use.locked() or not self._queue.empty()

    def _write_for(self, caller: int, task: ConnectionRequest) -> bool:
        """Write in the thread of a caller, unless the connection is closed by now."""
        try:
            # Before the lock is taken until after it is free: a signal handler may come between any two calls.
            self._callers.add(caller)
            # Whoever came first in between is done soon. To try, and to see then, would leave the lock held where an
            # interrupt comes between the two.
            with self._in_use:
                if self._connection is None:
                    return False
                self._checked(self._write(self._connection, task))
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
            # Kept here as well: in a forked child, where this thread is none any more, it must never be closed.
            connection = self._connection = self._connect()
        except BaseException as error:  # noqa: BLE001 -- whoever asks gets it
            self._refuse(error)
            return
        backlog: deque[ConnectionRequest | None] = deque()
        while True:
            if not backlog:
                backlog.append(self._queue.get())
            task = backlog.popleft()
            self._wanted = True
            with self._in_use:
                self._wanted = False
                if task is None:
                    self._connection = None
                    connection.close()
                    return
                done = self._checked(self._do(connection, task, backlog))
            _answer(done)
            _follow(done)
            # Freed here, so that nothing is kept alive while the thread waits.
            del task, done

    def _do(
        self,
        connection: sqlite3.Connection,
        task: ConnectionRequest,
        backlog: deque[ConnectionRequest | None],
    ) -> list[ConnectionRequest]:
        if not task.grouped:
            return _read(connection, task)
        # Nobody else takes from it; to be told by an exception that it is empty would take longer.
        while len(backlog) < _MOST_SCRIPTS and not self._queue.empty():
            backlog.append(self._queue.get_nowait())
        return self._write(
            connection, task, _requests_of_group(connection, task, backlog) if backlog else None
        )

    def _write(
        self,
        connection: sqlite3.Connection,
        first: ConnectionRequest,
        tasks: Iterator[ConnectionRequest] | None = None,
    ) -> list[ConnectionRequest]:
        self._writing = True
        try:
            return _write_alone(connection, first) if tasks is None else _write(connection, first, tasks)
        finally:
            self._wrote_at = time.monotonic()
            self._writing = False

    def _checked(self, done: list[ConnectionRequest]) -> list[ConnectionRequest]:
        """Make what went into a file that is gone fail."""
        if self._look is not None:
            try:
                self._look()
            except StoreLost as error:
                for task in done:
                    task.error = error
        return done

    def _refuse(self, error: BaseException) -> None:
        while (task := self._queue.get()) is not None:
            task.error = error
            _answer([task])


def _requests_of_group(
    connection: sqlite3.Connection, first: ConnectionRequest, backlog: deque[ConnectionRequest | None]
) -> Iterator[ConnectionRequest]:
    """Yield a task and those that may share its transaction, as long as it stays small."""
    before = connection.total_changes
    yield first
    for _ in range(_MOST_SCRIPTS - 1):
        if connection.total_changes - before >= _MOST_CHANGES:
            return
        if not backlog or (task := backlog[0]) is None or not task.grouped:
            return
        backlog.popleft()
        yield task


def _write_alone(connection: sqlite3.Connection, task: ConnectionRequest) -> list[ConnectionRequest]:
    """Run a task that shares its transaction with nobody."""
    # One that could not be rolled back would take the statement in, and never be committed.
    if not task.single or connection.in_transaction:
        return _write(connection, task, iter((task,)))
    try:
        failpoint(f"before:{task.name}")
        try:
            # Nearly always nobody is in the way.
            task.run(connection)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            wait_to_write(partial(task.run, connection), patience=_LONGEST_WAIT)
        failpoint(f"after:{task.name}")
    except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
        task.error = error
    return [task]


def _write(
    connection: sqlite3.Connection, first: ConnectionRequest, tasks: Iterator[ConnectionRequest]
) -> list[ConnectionRequest]:
    """Run tasks, of which this is the first, in one transaction, and commit them together."""
    group: list[ConnectionRequest] = []
    try:
        become_writer(connection, patience=_LONGEST_WAIT)
        try:
            for task in tasks:
                group.append(task)
                task.run(connection)
        except BaseException:
            # Some errors, such as a full disk, end the whole transaction.
            if len(group) == 1 or not connection.in_transaction:
                raise
            connection.execute("ROLLBACK")
            become_writer(connection, patience=_LONGEST_WAIT)
            _run_apart(connection, group)
        _commit(connection, group)
    except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
        if connection.in_transaction:
            # A rollback that fails as well is told by the next BEGIN, not by the end of this thread.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        for task in group or [first]:
            task.error = task.error or error
    return group or [first]


def _run_apart(connection: sqlite3.Connection, group: list[ConnectionRequest]) -> None:
    """Run tasks so that one that fails does so alone.

    Only for a group in which one has failed: to set a mark before each task takes a quarter of its time.
    """
    for task in group:
        connection.execute("SAVEPOINT task")
        try:
            task.run(connection)
        except BaseException as error:
            if not connection.in_transaction:
                raise
            task.error = error
            connection.execute("ROLLBACK TO task")
        connection.execute("RELEASE task")


def _commit(connection: sqlite3.Connection, group: list[ConnectionRequest]) -> None:
    for task in group:
        failpoint(f"before:{task.name}")
    connection.execute("COMMIT")
    for task in group:
        failpoint(f"after:{task.name}")


def _follow(group: list[ConnectionRequest]) -> None:
    """Do what follows the commit of tasks; others can wait for that longer than those who are answered by then."""
    for then in {task.then for task in group if task.then is not None and task.error is None}:
        then()


def _read(connection: sqlite3.Connection, task: ConnectionRequest) -> list[ConnectionRequest]:
    try:
        task.run(connection)
    except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
        task.error = error
    return [task]


def _answer(done: list[ConnectionRequest]) -> None:
    """Hand out the answers with one wake-up for each event loop."""
    if len(done) == 1:
        _hand_out(done[0].loop, done[0].resolve)
        return
    by_loop: dict[asyncio.AbstractEventLoop | None, list[ConnectionRequest]] = {}
    for task in done:
        by_loop.setdefault(task.loop, []).append(task)
    for loop, tasks in by_loop.items():
        _hand_out(loop, partial(_resolve, tasks))


def _hand_out(loop: asyncio.AbstractEventLoop | None, resolve: Callable[[], None]) -> None:
    if loop is None:
        resolve()
        return
    try:  # noqa: SIM105 -- done for every commit, and `suppress` takes as long as the rest
        loop.call_soon_threadsafe(resolve)
    except RuntimeError:
        pass  # A loop that was closed has nobody left who waits.


def _resolve(tasks: list[ConnectionRequest]) -> None:
    for task in tasks:
        task.resolve()
