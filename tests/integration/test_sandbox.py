"""A sandbox in a database of the user's own, whatever else is in there."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duetime import Scheduler
from duetime.errors import ConfigError, StoreUnavailable
from duetime.scheduler.task import AsyncTask
from duetime.stores.open import open_store
from duetime.testing import FakeClock, assert_enqueued, blocking, drain, refute_enqueued, sandbox, sandboxes
from tests.integration.callers import of_alchemy


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("postgresql://nobody@127.0.0.1:1/nowhere", auto_migrate=False)


@pytest.fixture
def receipt(scheduler: Scheduler) -> AsyncTask[[int], str]:
    @scheduler.task(name="receipt")
    async def receipt(order: int) -> str:
        return f"receipt for {order}"

    return receipt


async def version(url: str, namespace: str) -> int:
    """That of the tables of a namespace; 0 if there are none."""
    store = open_store(url, namespace=namespace, auto_migrate=False)
    await store.open(check=False)
    try:
        return (await store.schema_status()).found
    finally:
        await store.close()


async def test_it_is_empty_runs_by_the_tests_clock_leaves_nothing_and_touches_nothing(
    store_url: str, scheduler: Scheduler, receipt: AsyncTask[[int], str]
) -> None:
    application = Scheduler(store_url)
    kept = application.task(name="receipt")(receipt.handler.function)
    async with application:
        job = await kept.options(delay=0).enqueue(1)

    clock = FakeClock()
    for _ in range(2):
        with sandbox(scheduler, clock=clock, url=store_url):
            namespace = scheduler.namespace
            async with scheduler:
                await refute_enqueued(scheduler, receipt)
                await receipt.options(delay="1h").enqueue(2)
                assert await drain(scheduler) == []
                clock.advance("1h")
                assert [record.result for record in await drain(scheduler)] == ["receipt for 2"]
            assert await version(store_url, namespace) > 0
        assert await version(store_url, namespace) == 0

    assert (scheduler.url, scheduler.namespace) == ("postgresql://nobody@127.0.0.1:1/nowhere", "duetime")
    assert not scheduler.auto_migrate
    async with application:
        assert [record.id for record in await application.jobs.list(state="pending")] == [job.id]


@pytest.fixture(params=["sqlite_url", "postgres_url", "mariadb_url"])
def url(request: pytest.FixtureRequest) -> str:
    """A database with a table of the application's own."""
    url: str = request.getfixturevalue(request.param)
    engine = sa.create_engine(of_alchemy(url))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (id integer)"))
    engine.dispose()
    return url


async def test_a_job_of_an_async_session_is_there_when_that_commits(
    url: str, scheduler: Scheduler, receipt: AsyncTask[[int], str]
) -> None:
    engine = create_async_engine(of_alchemy(url, asynchronous=True))
    with sandbox(scheduler, url=url):
        async with scheduler:
            async with AsyncSession(engine) as session, session.begin():
                await session.execute(sa.text("INSERT INTO orders VALUES (1)"))
                await receipt.options(tx=session).enqueue(1)
                await refute_enqueued(scheduler, receipt)
            await assert_enqueued(scheduler, receipt, 1)
            assert [job.result for job in await drain(scheduler)] == ["receipt for 1"]
    await engine.dispose()


def test_a_job_of_a_session_without_a_loop_is_gone_when_that_rolls_back(
    url: str, scheduler: Scheduler, receipt: AsyncTask[[int], str]
) -> None:
    engine = sa.create_engine(of_alchemy(url))
    with sandbox(scheduler, url=url):
        blocking.refute_enqueued(scheduler, receipt)
        with Session(engine) as session:
            session.execute(sa.text("INSERT INTO orders VALUES (1)"))
            receipt.options(tx=session).sync.enqueue(1)
            session.rollback()
        assert blocking.drain(scheduler) == []
    with engine.connect() as connection:
        tables = sa.inspect(connection).get_table_names()
        assert [name for name in tables if name.startswith("duetime_test")] == []
        assert connection.execute(sa.text("SELECT count(*) FROM orders")).scalar() == 0
    engine.dispose()


def test_a_transaction_that_is_open_at_the_end_is_told_of_and_not_waited_for(
    postgres_url: str,
    scheduler: Scheduler,
    receipt: AsyncTask[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandboxes, "_PATIENCE", 1.0)
    engine = sa.create_engine(of_alchemy(postgres_url))
    with Session(engine) as session:
        place = sandbox(scheduler, url=postgres_url)
        place.__enter__()
        blocking.refute_enqueued(scheduler, receipt)
        receipt.options(tx=session).sync.enqueue(1)
        with pytest.raises(StoreUnavailable, match="end your transactions"):
            place.__exit__(None, None, None)
        session.rollback()
    engine.dispose()
    assert scheduler.namespace == "duetime"


def test_one_that_was_not_used_makes_no_file(tmp_path: Path, scheduler: Scheduler) -> None:
    with sandbox(scheduler, url=f"sqlite:///{tmp_path / 'new.db'}"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_url_that_cannot_work_is_refused_and_changes_nothing(scheduler: Scheduler) -> None:
    with pytest.raises(ConfigError, match="not a database we know"), sandbox(scheduler, url="oracle://host"):
        pass
    assert scheduler.url.startswith("postgresql://")
    assert scheduler.clock is None
