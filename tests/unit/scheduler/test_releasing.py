"""Jobs asked back from workers that are still there, and from those that are not."""

from __future__ import annotations

import pytest

from duetime import Scheduler
from duetime.errors import JobActive
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.scheduler import jobs as releasing
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import LEASE, hire, put, take_one


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Scheduler:
    return Scheduler("sqlite://", clock=clock)


async def test_a_worker_that_does_not_answer_keeps_the_job(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "RELEASE_TIMEOUT", SECOND // 20)
    async with scheduler:
        await hire(scheduler.store, "w1")
        job_id = await put(scheduler.store, delay=SECOND)
        await take_one(scheduler.store, ahead=2 * SECOND)
        with pytest.raises(TimeoutError, match=r"w1 has not given job .* back within 50 milliseconds"):
            await scheduler.jobs.release(job_id)
        (told,) = await scheduler.store.take_commands("w1")
        assert (told.kind, told.job) == ("release_job", job_id)
        assert (await scheduler.jobs.get(job_id)).state is State.RUNNING


async def test_a_job_of_a_worker_without_a_lease_goes_back_at_once(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    async with scheduler:
        await hire(scheduler.store, "w1")
        job_id = await put(scheduler.store, delay=SECOND)
        await take_one(scheduler.store, ahead=2 * SECOND)
        clock.set(clock.now() + LEASE + 1)
        assert await scheduler.jobs.release(job_id) == "released"
        assert (await scheduler.jobs.get(job_id)).state is State.PENDING


async def test_what_has_started_is_not_asked_for(scheduler: Scheduler) -> None:
    async with scheduler:
        await hire(scheduler.store, "w1")
        job_id = await put(scheduler.store)
        await take_one(scheduler.store)
        with pytest.raises(JobActive, match="has started"):
            await scheduler.jobs.release(job_id)
        assert await scheduler.store.take_commands("w1") == []
