"""Jobs that are enqueued in the caller's own transaction live and die with it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from duetime import Scheduler, State, Task
from duetime.errors import InvalidOption, InvalidTransaction
from duetime.stores.base import Hint
from tests.integration.callers import CALLERS, Calling, by_asyncpg, by_sqlite3, of_alchemy
from tests.integration.kit import until
from tools.servers import MariaDb, Postgres


async def double(number: int) -> int:
    return number * 2


@pytest.fixture
def scheduler(sql_url: str) -> Scheduler:
    return Scheduler(sql_url)


@pytest.fixture
def task(scheduler: Scheduler) -> Task[[int], int]:
    return scheduler.task(name="double")(double)


@pytest.fixture(
    params=["native", "begun by hand", "session", "connection", "async session", "async connection"]
)
def calling(request: pytest.FixtureRequest, sql_url: str) -> Calling:
    """Every kind of transaction that can be open on the store's database."""
    return CALLERS[sql_url.partition(":")[0]][request.param]


@pytest.mark.covers("enqueue-apart")
async def test_a_job_is_there_once_its_transaction_commits(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, sql_url: str
) -> None:
    async with scheduler:
        async with calling(sql_url) as caller:
            job = await task.options(tx=caller.tx).enqueue(2)
            many = await scheduler.enqueue_many([task.call(3), task.call(4)], tx=caller.tx)
            assert await scheduler.jobs.list() == []
            await caller.commit()
            assert {record.id for record in await scheduler.jobs.list()} == {job.id, *(j.id for j in many)}
        async with scheduler.worker():
            assert await job.result(timeout=20) == 4


@pytest.mark.covers("enqueue-apart")
async def test_a_job_is_gone_when_its_transaction_is_rolled_back(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, sql_url: str
) -> None:
    async with scheduler, calling(sql_url) as caller:
        await task.options(tx=caller.tx).enqueue(2)
        await caller.rollback()
        assert await scheduler.jobs.list() == []


@pytest.mark.covers("enqueue-apart")
async def test_a_job_commits_together_with_what_the_caller_writes(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, sql_url: str
) -> None:
    async with scheduler:
        async with calling(sql_url) as caller:
            await caller.execute("CREATE TABLE orders (id integer)")
            await caller.commit()
        async with calling(sql_url) as caller:
            await caller.execute("INSERT INTO orders VALUES (1)")
            await task.options(tx=caller.tx, delay=3600).enqueue(2)
            await caller.rollback()
        async with calling(sql_url) as caller:
            await caller.execute("INSERT INTO orders VALUES (2)")
            job = await task.options(tx=caller.tx, delay=3600).enqueue(2)
            await caller.commit()
        [record] = await scheduler.jobs.list()
    assert (record.id, record.state) == (job.id, State.PENDING)


@pytest.mark.covers("enqueue-apart")
async def test_a_refused_request_leaves_the_transaction_usable_and_without_a_job(
    scheduler: Scheduler,
    task: Task[[int], int],
    calling: Calling,
    sql_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scheduler, calling(sql_url) as caller:
        with monkeypatch.context() as patch:
            patch.setattr("duetime.stores.sql.enqueue.insertion", misled)
            with pytest.raises(Misled):
                await task.options(tx=caller.tx).enqueue(1)
        job = await task.options(tx=caller.tx).enqueue(2)
        await caller.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [job.id]


class Misled(Exception):
    pass


def misled(*_: object, **__: object) -> None:
    raise Misled


async def test_workers_are_hinted_by_the_commit_and_not_before(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, sql_url: str
) -> None:
    heard: list[Hint] = []

    async def listen() -> None:
        async for hint in scheduler.store.wakeups():
            heard.append(hint)  # noqa: PERF401 -- there is no end to them

    async with scheduler, calling(sql_url) as caller, asyncio.TaskGroup() as group:
        listening = group.create_task(listen())
        await until(lambda: scheduler.store.hears_others, what="hearing")
        # Hints that were given before the answer to a question are heard before it.
        await scheduler.jobs.list()
        heard.clear()
        await task.options(tx=caller.tx).enqueue(2)
        assert await scheduler.jobs.list() == []
        assert heard == []
        await caller.commit()
        await until(lambda: heard, what="a hint")
        listening.cancel()


async def test_an_open_transaction_of_another_database_is_refused_and_stays_usable(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, sql_url: str, elsewhere: str
) -> None:
    other = Scheduler(elsewhere)
    async with scheduler, other, calling(elsewhere) as caller:
        with pytest.raises(InvalidTransaction, match="another database"):
            await task.options(tx=caller.tx).enqueue(2)
        await caller.execute("CREATE TABLE still_usable (id integer)")
        await caller.commit()
        assert await scheduler.jobs.list() == await other.jobs.list() == []


async def test_a_database_without_our_tables_is_refused_and_its_transaction_stays_usable(
    scheduler: Scheduler, task: Task[[int], int], calling: Calling, elsewhere: str
) -> None:
    async with scheduler, calling(elsewhere) as caller:
        with pytest.raises(InvalidTransaction, match="another database"):
            await task.options(tx=caller.tx).enqueue(2)
        await caller.execute("CREATE TABLE still_usable (id integer)")
        await caller.commit()


@pytest.fixture
def elsewhere(sql_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """The address of another database of the same kind."""
    if sql_url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'elsewhere.db'}"
        return
    server: Postgres | MariaDb = request.getfixturevalue(
        "mariadb" if sql_url.startswith("mariadb") else "postgres"
    )
    name = f"elsewhere_{sql_url.rpartition('/')[2]}"
    server.create_database(name)
    yield server.url(name)
    server.drop_database(name)


async def test_what_is_no_transaction_is_refused_with_what_would_be(
    scheduler: Scheduler, task: Task[[int], int]
) -> None:
    async with scheduler:
        with pytest.raises(
            InvalidTransaction, match=r"(sqlite3\.Connection|asyncpg|asyncmy).*AsyncSession.*not dict"
        ):
            await task.options(tx={}).enqueue(2)


async def test_a_call_with_a_transaction_of_its_own_is_refused(
    scheduler: Scheduler, task: Task[[int], int]
) -> None:
    with pytest.raises(InvalidOption, match="enqueue_many"):
        task.options(tx=object()).call(2)


async def test_a_connection_that_commits_every_statement_is_refused(
    scheduler: Scheduler, task: Task[[int], int], sql_url: str
) -> None:
    blocking = sa.create_engine(of_alchemy(sql_url), isolation_level="AUTOCOMMIT")
    looping = create_async_engine(of_alchemy(sql_url, asynchronous=True), isolation_level="AUTOCOMMIT")
    async with scheduler:
        with blocking.connect() as connection, pytest.raises(InvalidTransaction, match="no transaction open"):
            await task.options(tx=connection).enqueue(2)
        async with looping.connect() as async_connection:
            with pytest.raises(InvalidTransaction, match="no transaction open"):
                await task.options(tx=async_connection).enqueue(2)
        assert await scheduler.jobs.list() == []
    blocking.dispose()
    await looping.dispose()


async def test_a_closed_connection_of_sqlalchemy_is_refused(
    scheduler: Scheduler, task: Task[[int], int], sql_url: str
) -> None:
    engine = sa.create_engine(of_alchemy(sql_url))
    with engine.connect() as connection:
        """Closed with the block."""
    async with scheduler:
        with pytest.raises(InvalidTransaction, match="closed"):
            await task.options(tx=connection).enqueue(2)
        with pytest.raises(InvalidTransaction, match="not Engine"):
            await task.options(tx=engine).enqueue(2)
    engine.dispose()


async def test_a_closed_async_connection_of_sqlalchemy_is_refused(
    scheduler: Scheduler, task: Task[[int], int], sql_url: str
) -> None:
    engine = create_async_engine(of_alchemy(sql_url, asynchronous=True))
    async with engine.connect() as connection:
        """Closed with the block."""
    async with scheduler:
        with pytest.raises(InvalidTransaction, match="cannot be used"):
            await task.options(tx=connection).enqueue(2)
        with pytest.raises(InvalidTransaction, match="not AsyncEngine"):
            await task.options(tx=engine).enqueue(2)
    await engine.dispose()


async def test_a_scoped_session_stands_for_its_session(
    scheduler: Scheduler, task: Task[[int], int], sql_url: str
) -> None:
    engine = sa.create_engine(of_alchemy(sql_url))
    sessions = scoped_session(sessionmaker(engine))
    async with scheduler:
        job = await task.options(tx=sessions).enqueue(2)
        sessions.commit()
        assert [record.id for record in await scheduler.jobs.list()] == [job.id]
    sessions.remove()
    engine.dispose()


async def test_a_sqlite_connection_without_a_transaction_is_refused(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    task = scheduler.task(name="double")(double)
    async with scheduler, by_sqlite3(sqlite_url) as caller:
        assert isinstance(caller.tx, sqlite3.Connection)
        caller.tx.isolation_level = None
        with pytest.raises(InvalidTransaction, match="no transaction open"):
            await task.options(tx=caller.tx).enqueue(2)
        caller.tx.close()
        with pytest.raises(InvalidTransaction, match="closed"):
            await task.options(tx=caller.tx).enqueue(2)


async def test_a_sqlite_connection_of_another_thread_is_refused(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    task = scheduler.task(name="double")(double)
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    async with scheduler:
        with pytest.raises(InvalidTransaction, match="thread"):
            await asyncio.to_thread(task.options(tx=connection).sync.enqueue, 2)
    connection.close()


async def test_a_store_in_memory_is_no_other_connections_database() -> None:
    scheduler = Scheduler("sqlite://")
    task = scheduler.task(name="double")(double)
    with sqlite3.connect(":memory:") as connection:
        async with scheduler:
            with pytest.raises(InvalidTransaction, match="another database"):
                await task.options(tx=connection).enqueue(2)
    connection.close()


async def test_an_asyncpg_connection_without_a_transaction_is_refused(postgres_url: str) -> None:
    scheduler = Scheduler(postgres_url)
    task = scheduler.task(name="double")(double)
    async with scheduler, by_asyncpg(postgres_url) as caller:
        await caller.rollback()
        with pytest.raises(InvalidTransaction, match="no transaction open"):
            await task.options(tx=caller.tx).enqueue(2)
    async with scheduler:
        with pytest.raises(InvalidTransaction, match="closed"):
            await task.options(tx=caller.tx).enqueue(2)
        async with asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool:
            async with pool.acquire() as connection:
                """Given back with the block."""
            with pytest.raises(InvalidTransaction, match="pool"):
                await task.options(tx=connection).enqueue(2)


async def test_a_connection_is_asked_with_one_statement_which_database_it_is(postgres_url: str) -> None:
    scheduler = Scheduler(postgres_url)
    task = scheduler.task(name="double")(double)
    asked: list[str] = []
    async with scheduler, by_asyncpg(postgres_url) as caller:
        assert isinstance(caller.tx, asyncpg.Connection)
        with caller.tx.query_logger(lambda record: asked.append(record.query)):
            await task.options(tx=caller.tx, delay=3600).enqueue(1)
    assert [query.split()[0] for query in asked] == ["SAVEPOINT", "SELECT", "WITH", "RELEASE"]


def test_a_blocking_caller_enqueues_in_its_own_thread(sql_url: str) -> None:
    scheduler = Scheduler(sql_url)
    task = scheduler.task(name="double")(double)
    engine = sa.create_engine(of_alchemy(sql_url))
    assert scheduler.sync.jobs.list() == []
    with Session(engine) as session, session.begin():
        job = task.options(tx=session).sync.enqueue(2)
        [other] = scheduler.sync.enqueue_many([task.call(3)], tx=session)
        assert scheduler.sync.jobs.list() == []
    assert {record.id for record in scheduler.sync.jobs.list()} == {job.id, other.id}
    with Session(engine) as session:
        task.options(tx=session).sync.enqueue(2)
        session.rollback()
    assert len(scheduler.sync.jobs.list()) == 2
    engine.dispose()
    scheduler.sync.close()


def test_a_blocking_caller_uses_its_sqlite_connection_where_it_was_made(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    task = scheduler.task(name="double")(double)
    assert scheduler.sync.jobs.list() == []
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        job = task.options(tx=connection).sync.enqueue(2)
    assert [record.id for record in scheduler.sync.jobs.list()] == [job.id]
    connection.close()
    scheduler.sync.close()


async def test_a_blocking_call_refuses_a_connection_that_needs_its_loop(
    scheduler: Scheduler, task: Task[[int], int], sql_url: str
) -> None:
    async with scheduler, CALLERS[sql_url.partition(":")[0]]["async session"](sql_url) as caller:
        with pytest.raises(InvalidTransaction, match=r"await task\.options"):
            await asyncio.to_thread(task.options(tx=caller.tx).sync.enqueue, 2)
