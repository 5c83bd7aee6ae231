"""A caller's transaction on SQLite takes its turn with the other writers of the file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from duetime import Scheduler, Task
from duetime.errors import InvalidTransaction, StoreUnavailable
from tests.integration.callers import (
    Caller,
    Calling,
    by_async_connection,
    by_async_session,
    by_connection,
    by_session,
    by_sqlite3,
    of_alchemy,
)


@asynccontextmanager
async def by_sqlite3_deferred(url: str) -> AsyncGenerator[Caller]:
    async with by_sqlite3(url) as caller:
        assert isinstance(caller.tx, sqlite3.Connection)
        caller.tx.isolation_level = None
        caller.tx.execute("BEGIN")
        yield caller


LOOPING: dict[str, Calling] = {
    "native": by_sqlite3,
    "begun by hand": by_sqlite3_deferred,
    "async session": by_async_session,
    "async connection": by_async_connection,
}
CALLINGS: dict[str, Calling] = {**LOOPING, "session": by_session, "connection": by_connection}


@pytest.fixture
def scheduler(sqlite_url: str) -> Scheduler:
    return Scheduler(sqlite_url)


@pytest.fixture
def task(scheduler: Scheduler) -> Task[[int], int]:
    @scheduler.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    return double


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


@contextmanager
def writer(url: str) -> Generator[sqlite3.Connection]:
    """Another connection that is writing."""
    with closing(
        sqlite3.connect(path_of(url), timeout=0, isolation_level=None, check_same_thread=False)
    ) as file:
        file.execute("BEGIN IMMEDIATE")
        file.execute("CREATE TABLE theirs (id integer)")
        yield file


@contextmanager
def writer_for_a_moment(url: str) -> Generator[None]:
    with writer(url) as file:
        commit = threading.Timer(0.2, file.execute, ["COMMIT"])
        commit.start()
        try:
            yield
        finally:
            commit.join()


@pytest.mark.covers("enqueue-apart")
@pytest.mark.parametrize("kind", CALLINGS)
async def test_a_caller_waits_for_whoever_is_writing(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str, kind: str
) -> None:
    async with scheduler, CALLINGS[kind](sqlite_url) as caller:
        with writer_for_a_moment(sqlite_url):
            job = await task.options(tx=caller.tx).enqueue(2)
        await caller.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [job.id]


@pytest.mark.parametrize("kind", LOOPING)
async def test_the_event_loop_goes_on_while_a_caller_waits(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str, kind: str
) -> None:
    async with scheduler, LOOPING[kind](sqlite_url) as caller:
        with writer(sqlite_url) as other:
            asyncio.get_running_loop().call_later(0.1, other.execute, "COMMIT")
            await task.options(tx=caller.tx, key="k").enqueue(2)
        await caller.commit()
        assert len(await scheduler.jobs.list()) == 1


def test_a_blocking_caller_waits_for_whoever_is_writing(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str
) -> None:
    assert scheduler.sync.jobs.list() == []
    with (
        writer_for_a_moment(sqlite_url),
        closing(sqlite3.connect(path_of(sqlite_url))) as connection,
        connection,
    ):
        job = task.options(tx=connection).sync.enqueue(2)
    assert [record.id for record in scheduler.sync.jobs.list()] == [job.id]
    scheduler.sync.close()


async def test_a_caller_waits_no_longer_than_its_connection_would(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str
) -> None:
    engine = sa.create_engine(of_alchemy(sqlite_url), connect_args={"timeout": 0.05})
    async with scheduler:
        with (
            writer(sqlite_url),
            closing(sqlite3.connect(path_of(sqlite_url), timeout=0.05)) as connection,
            Session(engine) as session,
        ):
            for tx in (connection, session):
                with pytest.raises(StoreUnavailable, match="locked"):
                    await task.options(tx=tx).enqueue(2)
            assert connection.execute("PRAGMA busy_timeout").fetchone() == (50,)
            assert not connection.in_transaction
    engine.dispose()


@pytest.mark.parametrize("kind", CALLINGS)
async def test_a_caller_that_has_read_what_others_have_changed_since_is_told_how_to_begin(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str, kind: str
) -> None:
    async with scheduler, CALLINGS[kind](sqlite_url) as caller:
        if kind != "begun by hand":
            await caller.execute("BEGIN")
        await caller.execute("SELECT count(*) FROM duetime_jobs")
        with writer(sqlite_url) as other:
            other.execute("COMMIT")
        with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE"):
            await task.options(tx=caller.tx).enqueue(2)


@pytest.mark.parametrize("kind", [kind for kind in CALLINGS if kind != "begun by hand"])
async def test_a_transaction_that_is_refused_keeps_nobody_from_writing(
    scheduler: Scheduler, task: Task[[int], int], tmp_path: Path, kind: str
) -> None:
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    async with scheduler, CALLINGS[kind](elsewhere) as caller:
        with pytest.raises(InvalidTransaction, match="another database"):
            await task.options(tx=caller.tx).enqueue(2)
        with writer(elsewhere) as other:
            other.execute("COMMIT")


async def test_a_callers_way_of_reading_rows_is_its_own(
    scheduler: Scheduler, task: Task[[int], int], sqlite_url: str
) -> None:
    async with scheduler:
        with closing(sqlite3.connect(path_of(sqlite_url))) as connection:
            connection.row_factory = lambda cursor, row: dict(
                zip([column[0] for column in cursor.description], row, strict=True)
            )
            with connection:
                await task.options(tx=connection, key="k").enqueue(2)
                await task.options(tx=connection, key="k").enqueue(2)
        assert len(await scheduler.jobs.list()) == 1
