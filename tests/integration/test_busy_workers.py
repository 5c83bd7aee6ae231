"""Occurrences start at their time beside whatever else a worker is busy with."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import Scheduler
from duetime.model.states import State
from duetime.model.triggers.at import At
from duetime.model.triggers.every import Every
from duetime.runtime.claiming import fetcher as patience
from duetime.runtime.pacing import Interval
from tests.integration.kit import until
from tests.integration.occurrences import NAME, PACE, put, records

LONG = 10
ENOUGH = 5
NOISE = 2_500
"""Enough jobs to keep two slots busy for as long as the test waits."""


@pytest.mark.covers("occurrence-behind-jobs")
async def test_occurrences_run_while_long_jobs_hold_coroutines_and_threads(store_url: str) -> None:
    free, free_thread = asyncio.Event(), threading.Event()
    scheduler = Scheduler(store_url)

    @scheduler.task(name="long")
    async def long() -> None:
        await free.wait()

    @scheduler.task(name="long_in_thread")
    def long_in_thread() -> None:
        free_thread.wait(60)

    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler, scheduler.worker(concurrency=2 * LONG + 1):
        busy = [await long.enqueue() for _ in range(LONG)]
        busy += [await long_in_thread.enqueue() for _ in range(LONG)]
        store = scheduler.store
        await put(scheduler, NAME, "quick", Every(interval=PACE, start=await store.now() + PACE))

        async def ran() -> bool:
            return sum(record.state is State.SUCCEEDED for record in await records(store)) >= ENOUGH

        try:
            await until(ran, what=f"{ENOUGH} runs beside {2 * LONG} long jobs")
            assert {(await job.record()).state for job in busy} == {State.RUNNING}
        finally:
            free.set()
            free_thread.set()


@pytest.mark.covers("occurrence-behind-jobs", "limit-starves")
async def test_jobs_that_run_in_turn_start_at_their_time_though_there_is_always_something_else_to_do(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither a look now and then nor a pulse is to find them.
    rarely = Interval(3600.0, spacing=0.0, longest=3600.0)
    monkeypatch.setattr(patience, "POLL_WITH_HINTS", rarely)
    monkeypatch.setattr(patience, "POLL_WITHOUT_HINTS", rarely)
    scheduler = Scheduler(store_url)

    @scheduler.task(name="noise")
    async def noise() -> None:
        await asyncio.sleep(0.02)

    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler, scheduler.worker(concurrency=2, lease=300):
        await scheduler.enqueue_many([noise.call() for _ in range(NOISE)])
        store = scheduler.store
        now = await store.now()
        moments = tuple(now + n * 3 * PACE for n in (1, 2, 3))
        # Also those that a slow machine lets pass.
        await put(scheduler, NAME, "quick", At(instants=moments), misfire="all", overlap="queue_all")

        async def ran() -> bool:
            found = await records(store)
            return len(found) == 3 and all(record.state is State.SUCCEEDED for record in found)

        await until(ran, what="three runs in turn")
        counts = await scheduler.queues.counts()
    assert counts["default", State.PENDING] > 0, "they have waited for all the others"
