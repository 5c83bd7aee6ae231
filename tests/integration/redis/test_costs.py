"""What a verb costs inside the server does not grow with what is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from duetime.model.job import Claim, JobTerms
from duetime.model.time import SECOND
from duetime.stores.base import CancelAnswer, ClaimRequest, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import TASK, hire, job, take, take_one

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


async def test_a_claim_reads_no_more_jobs_than_it_hands_out_however_many_tasks_have_some(
    redis_url: str,
) -> None:
    store = open_store(redis_url)
    await store.open()
    tasks = [f"task-{number}" for number in range(20)]
    due = await store.now() - SECOND
    try:
        async with Redis.from_url(redis_url) as client:
            await hire(store, "w1")
            for place, task in enumerate(tasks):
                await store.enqueue([job(task=task, due_at=due + 20 * n + place) for n in range(MANY // 100)])
            claims: list[Claim] = []

            async def claim() -> None:
                claims.extend(await take(store, tasks=tuple(tasks)))

            cost = await commands(client, claim)
            assert cost["cmdstat_hmget"] == len(claims) == 100
            assert [claim.due_at for claim in claims] == list(range(due, due + 100))
    finally:
        await store.close()


async def test_a_look_at_the_gate_of_a_schedule_takes_as_long_whatever_waits_there(redis_url: str) -> None:
    store = open_store(redis_url)
    await store.open()
    terms = JobTerms(gate="[schedule:s]")
    demand = ClaimRequest(worker="w1", claim_id="c", queues=(("default", 1),), limit=1, tasks=(TASK,))
    due = await store.now() - SECOND
    costs = []
    try:
        async with Redis.from_url(redis_url) as client:
            await hire(store, "w1")
            for first, count in ((0, 200), (200, MANY)):
                new = [
                    job(schedule="s", occurrence=first + n + 1, due_at=due, terms=terms) for n in range(count)
                ]
                await store.enqueue(new)
                await store.claim_limited(demand)
                costs.append(await commands(client, lambda: store.claim_limited(demand)))
    finally:
        await store.close()
    assert costs[1] == costs[0]
