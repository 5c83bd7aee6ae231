"""A worker whose database takes no changes says so, keeps what it has to write, and goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import asyncmy
import asyncpg
import pytest
from redis.asyncio import Redis

from duetime import Scheduler
from duetime.errors import StoreUnavailable, StoreUnusable
from duetime.model.states import State
from duetime.runtime import service
from duetime.stores.base.backoff import backoff
from tests.integration.kit import until

LONG = "x" * 100_000
"""A result that needs room of its own."""

FILL_POSTGRES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON duetime_jobs EXECUTE FUNCTION refuse()
"""

FILL_MARIADB = """
CREATE TRIGGER refuse_{0} BEFORE {0} ON duetime_jobs FOR EACH ROW
SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'No space left on device'
"""


@asynccontextmanager
async def full_sqlite(scheduler: Scheduler) -> AsyncIterator[None]:
    writer = scheduler.store._driver._database.writer  # type: ignore[attr-defined]
    await writer.do(lambda connection: connection.execute("PRAGMA max_page_count = 1"))
    yield
    await writer.do(lambda connection: connection.execute("PRAGMA max_page_count = 1000000"))


@asynccontextmanager
async def full_postgres(scheduler: Scheduler) -> AsyncIterator[None]:
    connection = await asyncpg.connect(scheduler.url)
    try:
        await connection.execute(FILL_POSTGRES)
        yield
        await connection.execute("DROP FUNCTION refuse CASCADE")
    finally:
        await connection.close()


@asynccontextmanager
async def full_mariadb(scheduler: Scheduler) -> AsyncIterator[None]:
    parts = urlsplit(scheduler.url)
    connection: Any = await asyncmy.connect(
        host=parts.hostname, port=parts.port, user=parts.username, db=parts.path[1:]
    )
    for change in ("insert", "update"):
        await connection.query(FILL_MARIADB.format(change))
    yield
    for change in ("insert", "update"):
        await connection.query(f"DROP TRIGGER refuse_{change}")
    await connection.ensure_closed()


@asynccontextmanager
async def forbidden_redis(scheduler: Scheduler) -> AsyncIterator[None]:
    async with Redis.from_url(scheduler.url) as client:
        await client.acl_setuser("default", enabled=True, commands=["-fcall"])
        try:
            yield
        finally:
            await client.acl_setuser("default", enabled=True, commands=["+fcall"])


class Trouble(NamedTuple):
    """A way in which a database takes no changes, and how it is told."""

    lasts: Callable[[Scheduler], AbstractAsyncContextManager[None]]
    said: str


TROUBLES = {
    "sqlite": Trouble(full_sqlite, "is full"),
    "postgresql": Trouble(full_postgres, "is full"),
    "mariadb": Trouble(full_mariadb, "is full"),
    "redis": Trouble(forbidden_redis, "ACL GETUSER"),
}


@pytest.mark.covers("one-error-ends-all", "unexplained-database")
async def test_a_worker_whose_database_takes_no_changes_is_unwell_and_writes_its_outcomes_later(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service, "backoff", partial(backoff, longest=0.1))
    caplog.set_level("INFO", logger="duetime.worker")
    trouble = TROUBLES[store_url.partition(":")[0]]
    scheduler = Scheduler(store_url)
    ends = asyncio.Event()

    @scheduler.task(name="wait")
    async def wait(text: str) -> str:
        await ends.wait()
        return text

    async with scheduler, scheduler.worker() as worker:
        job = await wait.enqueue(LONG)
        await until(lambda: worker.stats().running, what="a start")
        async with trouble.lasts(scheduler):
            ends.set()
            with pytest.raises((StoreUnavailable, StoreUnusable), match=trouble.said):
                await wait.enqueue(2 * LONG)
            await until(lambda: "settler" in worker.health.failing, what="a word about it")
            assert not worker.health.healthy
            assert trouble.said in worker.health.failing["settler"]
            assert (await scheduler.jobs.get(job.id)).state is State.RUNNING
        assert await job.result(timeout=20) == LONG
        await until(lambda: worker.health.healthy, what="recovery")
        record = await scheduler.jobs.get(job.id)

    assert record.attempt == 1
    assert "settler waits for the database" in caplog.text
    assert "settler goes on" in caplog.text
    assert trouble.said in str(worker.stats().last_error)
