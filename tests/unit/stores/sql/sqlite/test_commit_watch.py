from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from duetime.model.job import NewJob
from duetime.stores.base import Hint, Store
from duetime.stores.base.local_hints import HintSubscriber, HintSubscribers
from duetime.stores.open import open_store
from duetime.stores.sql.sqlite import commit_watch as watch
from duetime.stores.sql.sqlite.commit_watch import LogFileEvents
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.driver import SqliteDriver

WRITER = """
import random, sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
database.execute("PRAGMA synchronous=NORMAL")
for line in sys.stdin:
    for _ in range(int(line)):
        database.execute("INSERT INTO seen VALUES (1)")
        time.sleep(random.choice((0, 0, 0.0005, 0.003)))
    print("done", flush=True)
"""


class OwnConnection:
    """The watching process's connection, which counts how often its version was looked at."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, timeout=0)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS seen (n)")
        self.looks = 0

    async def data_version(self) -> int:
        self.looks += 1
        version: int = self._database.execute("PRAGMA data_version").fetchone()[0]
        return version

    def rows(self) -> int:
        count: int = self._database.execute("SELECT count(*) FROM seen").fetchone()[0]
        return count

    def insert(self) -> None:
        self._database.execute("INSERT INTO seen VALUES (1)")

    def close(self) -> None:
        self._database.close()


class OtherProcess:
    """Another process that commits as many rows as it is told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def commit(self, times: int) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"%d\n" % times)
        assert await self._process.stdout.readline() == b"done\n"


@contextlib.asynccontextmanager
async def other_process(path: Path) -> AsyncGenerator[OtherProcess]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, path, stdin=pipe, stdout=pipe
    )
    try:
        yield OtherProcess(process)
    finally:
        await process.communicate(b"")


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "watched.db"


@pytest.fixture
def own(path: Path) -> Iterator[OwnConnection]:
    with closing(OwnConnection(path)) as own:
        yield own


def no_inotify(_file: Path, **_: Callable[[], None]) -> None:
    raise OSError


@pytest.fixture(params=["events", "poll"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "poll":
        monkeypatch.setattr(watch, "LogFileEvents", no_inotify)
    elif sys.platform != "linux":
        pytest.skip("inotify is a part of Linux")
    return str(request.param)


def nothing() -> None:
    pass


def touch(log: Path) -> None:
    """Open a file and close it again."""
    with log.open("rb"):
        pass


def replace(log: Path) -> None:
    anew = log.with_name("anew")
    anew.write_bytes(b"frame")
    anew.rename(log)


async def rounds(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def test_a_commit_of_another_process_is_seen(path: Path, own: OwnConnection, way: str) -> None:
    async with other_process(path) as other, aclosing(watch.commits(path, own.data_version)) as commits:
        seen = asyncio.ensure_future(anext(commits))
        await rounds(1)  # A commit from before the first look is not told.
        await other.commit(1)
        await seen
        assert own.rows() == 1


async def test_a_commit_is_seen_through_a_link_to_the_file(path: Path, own: OwnConnection) -> None:
    """SQLite keeps its log beside the file itself."""
    (folder := path.with_name("links")).mkdir()
    (link := folder / "link.db").symlink_to(path)
    async with aclosing(watch.commits(link, own.data_version)) as commits, other_process(path) as other:
        first = asyncio.ensure_future(anext(commits))
        await rounds(10)
        await other.commit(1)
        await asyncio.wait_for(first, 5)


async def test_the_last_of_many_commits_is_seen(path: Path, own: OwnConnection, way: str) -> None:
    async with other_process(path) as other, aclosing(watch.commits(path, own.data_version)) as commits:
        for total in range(200, 1001, 200):
            writing = asyncio.ensure_future(other.commit(200))
            while own.rows() < total:
                await anext(commits)
            await writing


async def test_commits_are_seen_while_this_process_writes_too(
    path: Path, own: OwnConnection, way: str
) -> None:
    async with other_process(path) as other, aclosing(watch.commits(path, own.data_version)) as commits:
        for _ in range(5):
            # In this order: a commit from before the first look is not told.
            seen = asyncio.ensure_future(anext(commits))
            writing = asyncio.ensure_future(other.commit(20))
            while not writing.done():
                with contextlib.suppress(sqlite3.OperationalError):
                    own.insert()
                # Without a gap between its commits this process would keep the other one from the lock.
                await asyncio.sleep(0.001)
            await writing
            await seen


async def test_where_there_is_no_log_the_version_is_polled(path: Path) -> None:
    versions = iter(range(100))

    async def data_version() -> int:
        return next(versions)

    async with aclosing(watch.commits(path, data_version)) as commits:
        await asyncio.wait_for(anext(commits), 5)
        await asyncio.wait_for(anext(commits), 5)


@pytest.mark.parametrize("remove", [Path.unlink, replace], ids=["removed", "replaced"])
async def test_the_end_of_a_log_that_is_open_is_noticed(path: Path, remove: Callable[[Path], None]) -> None:
    log = path.with_name("watched.db-wal")
    noticed = asyncio.Event()
    with log.open("wb"), closing(LogFileEvents(log, on_write=noticed.set, on_touch=nothing)):
        remove(log)
        await asyncio.wait_for(noticed.wait(), 5)


async def test_a_touch_is_told_apart_from_a_write(path: Path) -> None:
    log = path.with_name("watched.db-wal")
    log.write_bytes(b"frame")
    written, touched = asyncio.Event(), asyncio.Event()
    with closing(LogFileEvents(log, on_write=written.set, on_touch=touched.set)):
        touch(log)
        await touched.wait()
        assert not written.is_set()
        touched.clear()
        log.write_bytes(b"frame")
        await written.wait()
        assert not touched.is_set()


async def test_a_change_of_owner_or_mode_is_no_touch(path: Path) -> None:
    log = path.with_name("watched.db-wal")
    log.touch()
    touches: list[None] = []
    touched = asyncio.Event()

    def note() -> None:
        touches.append(None)
        touched.set()

    with closing(LogFileEvents(log, on_write=nothing, on_touch=note)) as events:
        log.chmod(0o600)
        os.chown(log, os.getuid(), os.getgid())
        events._read()
        assert touches == []
        touch(log)
        await touched.wait()
        assert len(touches) == 1


async def test_what_sqlite_does_with_its_log_is_no_touch(path: Path) -> None:
    touches: list[None] = []
    with closing(sqlite3.connect(path)) as ours:
        ours.execute("PRAGMA journal_mode = WAL")
        ours.execute("CREATE TABLE t (n integer)")
        log = path.with_name(f"{path.name}-wal")
        with closing(LogFileEvents(log, on_write=nothing, on_touch=lambda: touches.append(None))) as events:
            with closing(sqlite3.connect(path)) as another, another:
                another.execute("INSERT INTO t SELECT count(*) FROM t")
            events._read()
    assert touches == []


async def test_to_tell_others_of_jobs_leaves_the_times_of_the_log_alone(path: Path) -> None:
    # Enqueuing one by one was measured to be dearer while the times changed.
    database = Database(path)
    await database.open()
    try:
        log = path.with_name(f"{path.name}-wal")
        before = log.stat()
        database.tell(Hint("jobs"))
        after = log.stat()
        assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
        log.unlink()
        database.tell(Hint("jobs"))
        assert not log.exists()
    finally:
        await database.close()


async def test_a_touch_is_heard_by_others_and_not_by_the_process_that_made_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{path}"
    async with opened(url) as store, opened(url) as other:
        heard = asyncio.create_task(hints_up_to(store, Hint("jobs")))
        while not store.hears_others:  # noqa: ASYNC110 - it becomes so in a thread
            await asyncio.sleep(0.001)
        with monkeypatch.context() as patch:
            # What this process tells itself would hide what it hears.
            patch.setattr(HintSubscribers, "notify", lambda *_: None)
            await store.enqueue([NewJob(id="1", task="t", payload="{}")])
            await asyncio.wait({heard}, timeout=0.1)
            assert not heard.done()
            await other.enqueue([NewJob(id="2", task="t", payload="{}")])
            await asyncio.wait_for(heard, 10)


async def first_hint(store: Store) -> Hint:
    return await anext(aiter(store.wakeups()))


async def hints_up_to(store: Store, last: Hint) -> list[Hint]:
    heard: list[Hint] = []
    async for hint in store.wakeups():
        heard.append(hint)
        if hint == last:
            break
    return heard


async def test_jobs_of_another_process_are_heard_of_as_jobs(path: Path, way: str) -> None:
    url = f"sqlite:///{path}"
    async with opened(url) as store, opened(url) as other:
        # Without events all commits are alike.
        wanted = Hint("jobs" if way == "events" else "any")
        heard = asyncio.create_task(hints_up_to(store, wanted))
        while not store.hears_others:  # noqa: ASYNC110 - it becomes so in a thread
            await asyncio.sleep(0.001)
        await other.enqueue([NewJob(id="1", task="t", payload="{}")])
        # A look may see the commit before the touch of the log is heard.
        assert set(await heard) <= {Hint("any"), wanted}


async def test_a_store_that_listens_once_more_hears_nobody_before_its_first_look(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, may_look = asyncio.Event(), asyncio.Event()
    look = SqliteDriver._data_version

    async def hold(driver: SqliteDriver, subscriber: HintSubscriber) -> int:
        looks.set()
        await may_look.wait()
        return await look(driver, subscriber)

    async with opened(f"sqlite:///{path}") as store:
        before = asyncio.create_task(first_hint(store))
        while not store.hears_others:  # noqa: ASYNC110 - it becomes so in a thread
            await asyncio.sleep(0.001)
        before.cancel()
        await asyncio.gather(before, return_exceptions=True)
        assert not store.hears_others, "nobody listens"
        monkeypatch.setattr(SqliteDriver, "_data_version", hold)
        again = asyncio.create_task(first_hint(store))
        await looks.wait()
        assert not store.hears_others
        may_look.set()
        while not store.hears_others:  # noqa: ASYNC110 - it becomes so in a thread
            await asyncio.sleep(0.001)
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)


async def test_own_commits_are_hardly_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LOOKS", (0.0,) * 10)
    monkeypatch.setattr(watch, "_JUST_NOW", 3_600.0)
    looks = events = 0
    look, notice = SqliteDriver._data_version, watch.EventTiming.notice

    async def counted(driver: SqliteDriver, subscriber: HintSubscriber) -> int:
        nonlocal looks
        looks += 1
        return await look(driver, subscriber)

    def noticed(pace: watch.EventTiming) -> None:
        nonlocal events
        events += 1
        notice(pace)

    async def listen(store: Store) -> None:
        async for _ in store.wakeups():
            pass

    monkeypatch.setattr(SqliteDriver, "_data_version", counted)
    monkeypatch.setattr(watch.EventTiming, "notice", noticed)
    async with opened(f"sqlite:///{path}") as store:
        listening = asyncio.create_task(listen(store))
        while not store.hears_others:  # noqa: ASYNC110 - it becomes so in a thread
            await asyncio.sleep(0.001)
        began = looks
        await store.enqueue([NewJob(id="1", task="t", payload="{}")])
        while looks == began:  # noqa: ASYNC110 - the kernel tells, and a thread looks
            await asyncio.sleep(0.001)
        await asyncio.wait({listening}, timeout=0.2)
        listening.cancel()
    # However often the log is seen to be written: each time would be ten looks for another process.
    assert looks - began <= 3 * events
