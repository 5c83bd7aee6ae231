"""Handlers whose jobs are completed in a SQLAlchemy session of their own."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from duetime import Depends, Scheduler, Snooze, State, current_job
from duetime.errors import ClaimLost, JobFailed
from tests.integration.callers import of_alchemy
from tests.integration.kit import until


class Base(DeclarativeBase): ...


class Effect(Base):
    __tablename__ = "effects"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


@pytest.fixture
async def scheduler(sql_url: str) -> AsyncIterator[Scheduler]:
    engine = sa.create_engine(of_alchemy(sql_url))
    async with Scheduler(sql_url) as opened:
        Base.metadata.create_all(engine)
        yield opened
    engine.dispose()


@pytest.fixture
def engine(sql_url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(of_alchemy(sql_url))
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(sql_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(of_alchemy(sql_url, asynchronous=True))
    yield engine
    await engine.dispose()


def effects(engine: sa.Engine) -> list[int]:
    with Session(engine) as session:
        return list(session.scalars(sa.select(Effect.id).order_by(Effect.id)))


async def test_its_writes_and_the_end_of_the_job_are_one_commit_in_a_thread(
    scheduler: Scheduler, engine: sa.Engine
) -> None:
    @scheduler.task(name="effect")
    def effect() -> str:
        with Session(engine) as session, current_job().transaction(tx=session) as tx:
            assert tx.connection is session
            session.add(Effect(id=1))
            tx.result = "done"
        raise LookupError("too late to matter")

    async with scheduler.worker():
        job = await effect.enqueue()
        assert await job.result(timeout=20) == "done"
    assert await asyncio.to_thread(effects, engine) == [1]


async def test_and_in_the_loop_also_through_a_connection(
    scheduler: Scheduler, engine: sa.Engine, async_engine: AsyncEngine
) -> None:
    @scheduler.task(name="by_session")
    async def by_session() -> None:
        async with AsyncSession(async_engine) as session, current_job().transaction(tx=session):
            session.add(Effect(id=1))

    @scheduler.task(name="by_connection")
    async def by_connection() -> None:
        async with async_engine.connect() as connection, current_job().transaction(tx=connection):
            await connection.execute(sa.insert(Effect).values(id=2))

    @scheduler.task(name="by_blocking_session")
    async def by_blocking_session() -> None:
        with Session(engine) as session:
            async with current_job().transaction(tx=session):
                session.add(Effect(id=3))

    async with scheduler.worker():
        for task in (by_session, by_connection, by_blocking_session):
            await (await task.enqueue()).result(timeout=20)
    assert await asyncio.to_thread(effects, engine) == [1, 2, 3]


async def test_an_error_rolls_back_and_is_the_failure(scheduler: Scheduler, engine: sa.Engine) -> None:
    @scheduler.task(name="effect")
    def effect() -> None:
        with Session(engine) as session, current_job().transaction(tx=session):
            session.add(Effect(id=1))
            session.flush()
            raise LookupError("nothing here")

    async with scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="LookupError: nothing here"):
            await job.result(timeout=20)
    assert await asyncio.to_thread(effects, engine) == []


async def test_an_error_of_the_last_writes_is_the_failure(scheduler: Scheduler, engine: sa.Engine) -> None:
    @scheduler.task(name="effect", retries=[0])
    def effect() -> None:
        with Session(engine) as session, current_job().transaction(tx=session):
            # On its first try it collides with itself.
            session.add_all([Effect(id=1), Effect(id=current_job().attempt)])

    async with scheduler.worker():
        job = await effect.enqueue()
        await job.result(timeout=20)
        [attempt, _] = await scheduler.jobs.attempts(job.id)
    assert IntegrityError.__name__ in str(attempt.error)
    assert await asyncio.to_thread(effects, engine) == [1, 2]


async def test_a_job_enqueued_in_it_shares_its_fate(scheduler: Scheduler, engine: sa.Engine) -> None:
    @scheduler.task(name="follow")
    def follow() -> None: ...

    @scheduler.task(name="effect")
    def effect(fails: bool) -> None:
        with Session(engine) as session, current_job().transaction(tx=session) as tx:
            follow.options(tx=tx).sync.enqueue()
            if fails:
                raise LookupError("nothing here")

    async with scheduler.worker():
        for fails in (True, False):
            job = await effect.enqueue(fails)
            with pytest.raises(JobFailed) if fails else nullcontext():
                await job.result(timeout=20)
        assert len(await scheduler.jobs.list(task="follow")) == 1


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("raises", [False, True])
async def test_one_that_was_ended_by_the_handler_fails_for_good(
    scheduler: Scheduler, engine: sa.Engine, by_hand: bool, raises: bool
) -> None:
    @scheduler.task(name="effect", retries=3)
    def effect() -> None:
        with Session(engine) as session, current_job().transaction(tx=session):
            session.add(Effect(id=1))
            session.flush()
            if by_hand:
                session.execute(sa.text("COMMIT"))
            else:
                session.commit()
            if raises:
                raise LookupError("nothing here")

    async with scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="TransactionMisused: the handler has committed"):
            await job.result(timeout=20)


async def test_the_end_of_the_job_is_the_last_statement(scheduler: Scheduler, engine: sa.Engine) -> None:
    ran: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *of: ran.append(of[2]))

    @scheduler.task(name="effect")
    def effect() -> None:
        with Session(engine) as session, current_job().transaction(tx=session):
            session.add(Effect(id=1))

    async with scheduler.worker():
        await (await effect.enqueue()).result(timeout=20)
    *_, last = [sql for sql in ran if "SAVEPOINT" not in sql]
    assert "duetime_jobs" in last
    assert any("INSERT INTO effects" in sql for sql in ran)


async def test_one_that_takes_too_long_is_rolled_back(scheduler: Scheduler, engine: sa.Engine) -> None:
    @scheduler.task(name="effect")
    def effect() -> None:
        with Session(engine) as session, current_job().transaction(tx=session, timeout="1ms"):
            session.add(Effect(id=1))
            session.flush()
            time.sleep(0.01)

    async with scheduler.worker():
        job = await effect.enqueue()
        with pytest.raises(JobFailed, match="was open for longer than 1 millisecond"):
            await job.result(timeout=20)
    assert await asyncio.to_thread(effects, engine) == []


async def test_a_run_that_has_lost_its_job_writes_nothing(scheduler: Scheduler, engine: sa.Engine) -> None:
    refused: list[str] = []

    @scheduler.task(name="effect")
    async def effect() -> None:
        if current_job().attempt > 1:
            return
        await asyncio.to_thread(lose_claims, engine)
        try:
            with Session(engine) as session:
                async with current_job().transaction(tx=session):
                    session.add(Effect(id=1))
        except ClaimLost as error:
            refused.append(str(error))
            raise

    async with scheduler.worker():
        await effect.enqueue()
        await until(lambda: refused, what="a refusal")
    assert "was given to another worker or is gone" in refused[0]
    assert await asyncio.to_thread(effects, engine) == []


def lose_claims(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE duetime_jobs SET fence = fence + 1"))


async def test_a_dependency_commits_with_the_job_and_what_the_handler_returns_is_the_result(
    scheduler: Scheduler, engine: sa.Engine, async_engine: AsyncEngine
) -> None:
    async def job_session() -> AsyncIterator[AsyncSession]:
        async with AsyncSession(async_engine) as session, current_job().transaction(tx=session):
            yield session

    @scheduler.task(name="effect")
    async def effect(number: int, session: AsyncSession = Depends(job_session)) -> int:
        session.add(Effect(id=number))
        if number > 1:
            raise LookupError("nothing here")
        return number * 10

    async with scheduler.worker():
        assert await (await effect.enqueue(1)).result(timeout=20) == 10
        with pytest.raises(JobFailed, match="LookupError: nothing here"):
            await (await effect.enqueue(2)).result(timeout=20)
    assert await asyncio.to_thread(effects, engine) == [1]


async def test_a_job_that_puts_itself_off_does_not_commit(scheduler: Scheduler, engine: sa.Engine) -> None:
    def job_session() -> Iterator[Session]:
        with Session(engine) as session, current_job().transaction(tx=session):
            yield session

    @scheduler.task(name="effect")
    def effect(session: Session = Depends(job_session)) -> Any:
        session.add(Effect(id=1))
        return Snooze("1h")

    async with scheduler, scheduler.worker():
        job = await effect.enqueue()

        async def put_off() -> bool:
            return (await job.record()).state is State.PENDING and bool(await scheduler.jobs.attempts(job.id))

        await until(put_off, what="a job that was put off")
    assert await asyncio.to_thread(effects, engine) == []


async def test_a_transaction_of_another_database_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    scheduler, other = Scheduler(sqlite_url), Scheduler(f"sqlite:///{tmp_path / 'other.db'}")
    engine = sa.create_engine(other.url)
    file = sqlite3.connect(":memory:")

    @scheduler.task(name="effect")
    async def effect(native: bool) -> None:
        with Session(engine) as session:
            async with current_job().transaction(tx=file if native else session):
                raise AssertionError("entered")

    async with other, scheduler, scheduler.worker():
        with pytest.raises(JobFailed, match="InvalidTransaction: tx is a transaction of another database"):
            await (await effect.enqueue(native=False)).result(timeout=20)
        with pytest.raises(
            JobFailed, match=r"InvalidTransaction: transaction\(\) takes a SQLAlchemy Session,"
        ):
            await (await effect.enqueue(native=True)).result(timeout=20)
    engine.dispose()
    file.close()


async def test_an_async_session_needs_an_async_function(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    engine = create_async_engine(of_alchemy(sqlite_url, asynchronous=True))

    @scheduler.task(name="effect")
    def effect() -> None:
        with current_job().transaction(tx=AsyncSession(engine)):
            raise AssertionError("entered")

    async with scheduler, scheduler.worker():
        with pytest.raises(JobFailed, match="Unsupported: this connection works only in the event loop"):
            await (await effect.enqueue()).result(timeout=20)
    await engine.dispose()
