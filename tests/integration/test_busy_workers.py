"""Occurrences start at their time beside whatever else a worker is busy with."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import Scheduler
from duetime.model.states import State
from duetime.model.triggers import Every
from tests.integration.kit import until
from tests.integration.occurrences import NAME, PACE, put, records

LONG = 10
ENOUGH = 5


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
