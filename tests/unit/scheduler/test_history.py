"""What became of jobs: how long it can be read, and how it is removed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime import Scheduler
from duetime.errors import InvalidDuration, InvalidOption, JobFailed, ResultExpired
from duetime.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scheduler(sqlite_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=clock) as opened:
        yield opened


def double(number: int) -> int:
    return number * 2


def fail() -> None:
    raise RuntimeError("boom")


async def test_a_result_is_there_for_its_time_and_then_told_to_be_gone(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    task = scheduler.task(double)
    async with scheduler.worker(concurrency=1):
        job = await task.options(result_ttl="1h").enqueue(4)
        assert await job.result(timeout=20) == 8
    clock.advance("1h10m")
    with pytest.raises(
        ResultExpired, match=f"job {job.id} of .* succeeded, but its result was kept for 1 hour"
    ):
        await job.result(timeout=20)


async def test_a_result_that_is_not_kept_is_told_at_once(scheduler: Scheduler) -> None:
    task = scheduler.task(result_ttl=0)(double)
    async with scheduler.worker(concurrency=1):
        job = await task.enqueue(4)
        with pytest.raises(ResultExpired, match="its result is not kept"):
            await job.result(timeout=20)
        assert (await job.record()).result is None


async def test_a_job_whose_error_is_gone_has_failed_all_the_same(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    task = scheduler.task(failure_ttl="1h")(fail)
    async with scheduler.worker(concurrency=1):
        job = await task.enqueue()
        with pytest.raises(JobFailed, match="boom"):
            await job.result(timeout=20)
    clock.advance("1h10m")
    with pytest.raises(JobFailed, match="its error is not kept") as gone:
        await job.result(timeout=20)
    assert (gone.value.error, gone.value.traceback) == (None, None)


@pytest.mark.covers("retention")
async def test_prune_tells_how_many_records_went(scheduler: Scheduler, clock: FakeClock) -> None:
    task = scheduler.task(double)
    jobs = [await task.enqueue(number) for number in range(3)]
    for job in jobs[:2]:
        await scheduler.jobs.cancel(job.id)
    clock.advance("2d")
    assert await scheduler.prune(older_than="3d") == 0
    assert await scheduler.prune(older_than="1d", dry_run=True) == 2
    assert await scheduler.prune(older_than="1d") == 2
    assert [record.id for record in await scheduler.jobs.list()] == [jobs[2].id]
    assert await scheduler.prune(older_than=0) == 0


async def test_prune_refuses_what_cannot_be_meant(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidDuration, match="older_than"):
        await scheduler.prune(older_than=-1)
    with pytest.raises(InvalidOption, match="keep_per_schedule"):
        await scheduler.prune(keep_per_schedule=-1)
