"""A job that goes back to its queue in the moment in which its schedule is paused does not run."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    declare,
    delete,
    firing,
    hire,
    pause,
    read,
    read_schedule,
    take_one,
)
from duetime.testing.conformance.schedules import MINUTE, declared
from tests.integration.kit import until

WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
RELEASE = "UPDATE duetime_jobs SET state = 'pending', worker = NULL WHERE id = $1"


@pytest.mark.parametrize("verb", [pause, delete])
async def test_a_claim_that_is_released_meanwhile_is_withdrawn(postgres_url: str, verb: object) -> None:
    clock = FakeClock()
    store = open_store(postgres_url, clock=clock)
    await store.open()
    watcher, worker = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    try:
        await hire(store, "w1")
        await declare(store, declared(clock))
        await store.fire([firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)])
        claim = await take_one(store, ahead=SECOND)
        releasing = worker.transaction()
        await releasing.start()
        await worker.execute(RELEASE, claim.job_id)
        withdrawing = asyncio.ensure_future((pause if verb is pause else delete)(store, "s"))
        await until(lambda: watcher.fetch(WAITING), what="the wait for the job")
        await releasing.commit()
        assert await withdrawing
        assert (await read(store, claim.job_id)).state is State.CANCELLED
    finally:
        await watcher.close()
        await worker.close()
        await store.close()
