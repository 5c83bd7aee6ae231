"""A dependency of endpoints that enqueues in the session of the request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
import sqlmodel
import sqlmodel.ext.asyncio.session
from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duetime import Scheduler
from tests.integration.callers import of_alchemy


@pytest.fixture
async def scheduler(sql_url: str) -> AsyncIterator[Scheduler]:
    async with Scheduler(sql_url) as scheduler:
        yield scheduler


async def receipt(order: int) -> None: ...


def check_stock(order: int) -> None:
    if order == 13:
        raise HTTPException(409, "sold out")


async def check_orders(scheduler: Scheduler, endpoint: Callable[..., Any]) -> None:
    """Place three orders, of which one is refused, and see that it has left no job."""
    app = FastAPI()
    app.post("/orders/{order}")(endpoint)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        answers = [(await client.post(f"/orders/{order}")).status_code for order in (1, 13, 2)]
    assert answers == [200, 409, 200]
    assert [job.arguments for job in await scheduler.jobs.list()] == [{"order": 2}, {"order": 1}]


@pytest.mark.covers("enqueue-apart")
@pytest.mark.parametrize("kind", [AsyncSession, sqlmodel.ext.asyncio.session.AsyncSession])
async def test_a_job_commits_with_the_async_session_of_the_request(
    scheduler: Scheduler, sql_url: str, kind: type[AsyncSession]
) -> None:
    engine = create_async_engine(of_alchemy(sql_url, asynchronous=True))
    task = scheduler.task(name="receipt")(receipt)

    async def get_session() -> AsyncIterator[Any]:
        async with kind(engine) as session:
            yield session

    def get_enqueue(session: Any = Depends(get_session)) -> Any:
        return partial(scheduler.enqueue, tx=session)

    async def place(
        order: int, session: Any = Depends(get_session), enqueue: Any = Depends(get_enqueue)
    ) -> None:
        await enqueue(task.call(order))
        check_stock(order)
        await session.commit()

    await check_orders(scheduler, place)
    await engine.dispose()


@pytest.mark.covers("enqueue-apart")
@pytest.mark.parametrize("kind", [Session, sqlmodel.Session])
async def test_a_job_commits_with_the_session_of_a_plain_endpoint(
    scheduler: Scheduler, sql_url: str, kind: type[Session]
) -> None:
    engine = sa.create_engine(of_alchemy(sql_url))
    task = scheduler.task(name="receipt")(receipt)

    def get_session() -> Iterator[Any]:
        with kind(engine) as session:
            yield session

    def get_receipts(session: Any = Depends(get_session)) -> Any:
        return task.options(tx=session).sync

    def place(order: int, session: Any = Depends(get_session), receipts: Any = Depends(get_receipts)) -> None:
        receipts.enqueue(order)
        check_stock(order)
        session.commit()

    await check_orders(scheduler, place)
    engine.dispose()
