"""The log is copied into the file by us alone, and never while somebody could restart it."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from duetime.errors import StoreUnusable
from duetime.model.time import SystemClock
from duetime.stores.sql.sqlite import checkpoint
from duetime.stores.sql.sqlite.checkpoint import LOG_LIMIT, LONG_LOG, CheckpointProgress
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.driver import SqliteDriver

PATCH = "a" * 100_000

pytestmark = pytest.mark.covers("damaged-file")


@pytest.fixture(autouse=True)
def notes(path: Path) -> None:
    """A table for texts, beside the other one."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def size(path: Path) -> int:
    return log_of(path).stat().st_size


def generation(path: Path) -> bytes:
    """What changes in the head of the log when it is restarted."""
    with log_of(path).open("rb") as log:
        return log.read(24)[16:]


async def write(database: Database, text: str = PATCH) -> None:
    await database.writer.do(
        lambda connection: connection.execute("INSERT INTO notes VALUES (?)", (text,)), grouped=True
    )


async def grow(database: Database, path: Path, to: int) -> None:
    async with asyncio.timeout(20):
        while size(path) <= to:
            await write(database)


async def ended(database: Database) -> None:
    """Return when no checkpoint is under way."""
    while database.checkpoints.busy:  # noqa: ASYNC110 -- other threads do it
        await asyncio.sleep(0.001)


async def shrunk(database: Database, path: Path) -> None:
    """Return when the log was copied, and cut by a later commit."""
    async with asyncio.timeout(20):
        while size(path) > LOG_LIMIT:
            await ended(database)
            await write(database, "")
            await asyncio.sleep(0.01)


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """Somebody who keeps a view of the file."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        view(connection)
        yield connection


def view(connection: sqlite3.Connection) -> None:
    """Begin to read."""
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM notes").fetchall()


@contextmanager
def around(
    monkeypatch: pytest.MonkeyPatch, other: Callable[[], Generator[None]] | None = None
) -> Iterator[list[CheckpointProgress]]:
    """Note what comes of each checkpoint, and have something go on meanwhile."""
    original, done = checkpoint._checkpoint, []

    def noted(copier: sqlite3.Connection) -> CheckpointProgress:
        if other is None:
            done.append(original(copier))
        else:
            with contextmanager(other)():
                done.append(original(copier))
        return done[-1]

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_checkpoint", noted)
        yield done


@contextmanager
def intruding(path: Path) -> Generator[list[bool]]:
    """Somebody who tries all the time to become the writer, and notes whether it could."""
    tries: list[bool] = []
    over = threading.Event()

    def intrude() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
            while not over.is_set():
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    tries.append(False)
                else:
                    tries.append(True)
                    connection.execute("ROLLBACK")

    thread = threading.Thread(target=intrude)
    thread.start()
    try:
        while not tries:
            time.sleep(0)
        yield tries
    finally:
        over.set()
        thread.join()


async def test_nobody_can_become_the_writer_throughout_a_checkpoint(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[bool] = []

    def try_to_write() -> Generator[None]:
        with intruding(path) as tries:
            yield
            before = len(tries)
            while len(tries) == before:
                time.sleep(0)
        refused.extend(not could for could in tries)

    with around(monkeypatch, try_to_write) as done:
        await grow(database, path, LOG_LIMIT)
        await ended(database)
    assert [copied.in_full for copied in done] == [True]
    assert len(refused) > 1
    assert all(refused)
    with intruding(path) as tries:
        assert tries[0]


async def test_the_log_stays_small_under_load_and_its_file_shrinks(database: Database, path: Path) -> None:
    largest = 0
    for _ in range(600):
        await write(database)
        largest = max(largest, size(path))
    assert LOG_LIMIT < largest < 2 * LONG_LOG
    await shrunk(database, path)


async def test_a_log_that_is_short_is_left_alone(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with around(monkeypatch) as done:
        await grow(database, path, LOG_LIMIT - 2 * len(PATCH))
        await ended(database)
    assert done == []


async def test_behind_a_long_reader_tries_become_rare_and_it_is_told_once(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "_LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(checkpoint, "_LONGEST_HOLD", 0)
    with around(monkeypatch) as done, reading(path):
        await grow(database, path, LONG_LOG)
        start = time.monotonic()
        while time.monotonic() - start < 1:
            await write(database)
        assert 1 <= len(done) <= 20
        assert not any(copied.in_full for copied in done)
    assert size(path) > LONG_LOG
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert "a transaction keeps reading" in said[0]
    await shrunk(database, path)


async def test_a_checkpoint_waits_for_a_short_reader(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_FIRST_PAUSE", 1_000)
    monkeypatch.setattr(checkpoint, "_LONGEST_HOLD", 10)
    with reading(path) as reader:

        def end_reading() -> Generator[None]:
            yield
            if reader.in_transaction:
                reader.execute("ROLLBACK")

        with around(monkeypatch, end_reading) as done:
            await grow(database, path, LOG_LIMIT)
            await ended(database)
    assert [copied.in_full for copied in done] == [False, True]


async def test_the_next_checkpoint_waits_for_who_reads_from_the_end_of_the_log(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a reader lets the log be copied in full, but not restarted."""
    monkeypatch.setattr(checkpoint, "_FIRST_HOLD", 0.2)
    monkeypatch.setattr(checkpoint, "_LONGEST_HOLD", 0.2)
    with reading(path) as reader:

        def read_from_the_end() -> Generator[None]:
            if reader.in_transaction:
                reader.execute("ROLLBACK")
            view(reader)
            yield
            if len(done) == 2:
                threading.Timer(0.05, reader.execute, ["ROLLBACK"]).start()

        with around(monkeypatch, read_from_the_end) as done:
            await grow(database, path, LOG_LIMIT)
            await ended(database)
            before = generation(path)
            while generation(path) == before:
                await write(database, "")
    assert [copied.in_full for copied in done] == [True, True]


async def test_others_write_while_most_of_a_long_log_is_copied_and_none_restarts_it(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_LONGEST_PAUSE", 0)
    monkeypatch.setattr(checkpoint, "_LONGEST_HOLD", 0)
    with reading(path):
        await grow(database, path, 2 * LONG_LOG)
        await ended(database)
    writes: list[bool] = []
    before = generation(path)

    def write_once() -> Generator[None]:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("PRAGMA wal_autocheckpoint = 0")
            for moment in range(2):
                try:
                    other.execute("INSERT INTO notes VALUES ('meanwhile')")
                except sqlite3.OperationalError:
                    writes.append(False)
                else:
                    writes.append(True)
                assert generation(path) == before
                if not moment:
                    yield

    with around(monkeypatch, write_once) as done:
        database.checkpoints.notice(size(path))
        await ended(database)
    assert done[-1].in_full
    assert done[0].copied > LONG_LOG // 4096
    # All but the last, which is done with the write lock.
    assert len(done) > 1
    assert writes == [True, True] * (len(done) - 1) + [False, False]
    await write(database, "last")
    assert generation(path) != before


async def test_nothing_is_copied_under_a_view_that_needs_nothing_of_the_log(
    database: Database, path: Path
) -> None:
    """What makes the first part of a copy safe on a log that somebody else has copied in full."""
    await write(database)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as copier,
        closing(sqlite3.connect(path, isolation_level=None)) as guard,
    ):
        assert checkpoint._checkpoint(copier).in_full
        guard.execute("BEGIN")
        guard.execute("SELECT 1 FROM notes").fetchone()
        before = generation(path)
        await write(database)
        assert generation(path) != before
        assert checkpoint._checkpoint(copier).copied == 0


async def test_a_checkpoint_that_fails_is_told_once_and_tried_again(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = 0

    def fail(_: sqlite3.Connection) -> CheckpointProgress:
        nonlocal tried
        tried += 1
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_checkpoint", fail)
        await grow(database, path, LOG_LIMIT)
        while tried < 2:
            await write(database, "")
        await ended(database)
    (said,) = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert "could not be copied into the database: database or disk is full" in said
    await shrunk(database, path)


async def test_a_writer_who_goes_on_for_long_puts_it_off(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "_LONGEST_WAIT", 0.01)
    await grow(database, path, LOG_LIMIT - 2 * len(PATCH))
    with around(monkeypatch) as done, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        database.checkpoints.notice(LOG_LIMIT + 1)
        await ended(database)
        assert done == []
    assert caplog.records == []


async def test_a_database_is_closed_when_its_checkpoint_has_ended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(path)
    await database.open()
    began, go_on = threading.Event(), threading.Event()

    def wait() -> Generator[None]:
        began.set()
        go_on.wait(10)
        yield

    with around(monkeypatch, wait) as done:
        await grow(database, path, LOG_LIMIT)
        began.wait(10)
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        go_on.set()
        await closing
    assert len(done) == 1
    # The last connection has copied all, and removed the log.
    assert not log_of(path).exists()


async def test_a_forked_process_does_not_wait_for_the_checkpoint_of_its_parent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait() -> Generator[None]:
        began.set()
        go_on.wait(10)
        yield

    with around(monkeypatch, wait):
        database.checkpoints.notice(LONG_LOG + 1)
        began.wait(10)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            # In the child that thread is none.
            await asyncio.wait_for(database.checkpoints.ended(), 1)
        go_on.set()
        await database.checkpoints.ended()


async def test_a_forked_process_copies_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        database.checkpoints.notice(LONG_LOG + 1)
        assert not database.checkpoints.busy
    database.checkpoints.notice(LONG_LOG + 1)
    assert database.checkpoints.busy


async def test_what_callers_commit_on_their_own_connections_is_copied_too(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = SqliteDriver(database, clock=SystemClock())
    with around(monkeypatch) as done, closing(sqlite3.connect(path)) as own:
        own.execute("PRAGMA wal_autocheckpoint = 0")
        while size(path) <= LOG_LIMIT:
            with own:
                own.execute("INSERT INTO notes VALUES (?)", (PATCH,))
        assert done == []
        driver.borrow(own)
        await ended(database)
        assert [copied.in_full for copied in done] == [True]


async def test_where_no_thread_can_be_started_the_commit_stands(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        await grow(database, path, LOG_LIMIT)
    await shrunk(database, path)


async def test_doctor_tells_how_large_the_log_is_and_who_holds_it(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = SqliteDriver(database, clock=SystemClock())

    async def found() -> tuple[bool, str, str | None]:
        (log,) = [check for check in await driver.doctor() if check.name == "log"]
        return log.ok, log.detail, log.fix

    assert await found() == (True, "0.0 MB", None)
    with reading(path):
        await grow(database, path, LOG_LIMIT)
        ok, detail, fix = await found()
        assert not ok
        assert "as long as a transaction reads from an old view" in detail
        assert fix == f"end it: process {os.getpid()}"
    with monkeypatch.context() as patch, closing(sqlite3.connect(path, isolation_level=None)) as other:
        patch.setattr(checkpoint, "_LONGEST_WAIT", 0.01)
        other.execute("BEGIN IMMEDIATE")
        ok, _, fix = await found()
        assert (ok, fix) == (False, "end what holds it")
    ok, _, fix = await found()
    assert (ok, fix) == (True, None)


async def test_a_sqlite_with_the_bug_is_used_without_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    driver = SqliteDriver(Database(path), clock=SystemClock())
    await driver.open()
    found = {check.name: check.ok for check in await driver.doctor()}
    await driver.close()
    assert found["version"]
    assert caplog.records == []


async def test_a_sqlite_that_is_too_old_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreUnusable, match=r"use a Python that has SQLite 3\.35"):
        await SqliteDriver(Database(path), clock=SystemClock()).open()
