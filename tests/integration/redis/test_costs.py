"""What a verb costs inside the server does not grow with what is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from duetime.stores.base import CancelAnswer, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import hire, job, take_one

FEW, MANY = 10, 5_000


async def commands(client: Redis, verb: Callable[[], Awaitable[object]]) -> dict[str, int]:
    """How often each command of the server was run by a verb, inside of functions as well."""
    await client.config_resetstat()
    await verb()
    return {name: told["calls"] for name, told in (await client.info("commandstats")).items()}


async def cancelling(client: Redis, store: Store, *, others: int) -> list[dict[str, int]]:
    """What it takes to cancel one job that waits, one that runs, one that has been cancelled, and one that is not there."""
    for _ in range(0, others, 1_000):
        await store.enqueue([job(delay=3_600_000_000) for _ in range(min(others, 1_000))])
    (waiting,) = await store.enqueue([job(delay=7_200_000_000)])
    await store.enqueue([job()])
    running = (await take_one(store)).job_id
    told: list[CancelAnswer] = []
    costs = []
    for job_id in (waiting, running, waiting, "nothing"):

        async def cancel(job_id: str = job_id) -> None:
            told.append((await store.cancel([job_id], reason="off"))[job_id])

        costs.append(await commands(client, cancel))
    assert told == [
        CancelAnswer.CANCELLED,
        CancelAnswer.REQUESTED,
        CancelAnswer.FINISHED,
        CancelAnswer.UNKNOWN,
    ]
    return costs


@pytest.mark.covers("cancel-searches")
async def test_to_cancel_a_job_takes_as_many_steps_among_few_jobs_as_among_many(redis_url: str) -> None:
    store = open_store(redis_url)
    await store.open()
    try:
        async with Redis.from_url(redis_url) as client:
            await hire(store, "w1")
            few = await cancelling(client, store, others=FEW)
            assert await cancelling(client, store, others=MANY) == few
    finally:
        await store.close()
