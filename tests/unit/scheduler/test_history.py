"""What became of jobs: how long it can be read, and how it is removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from duetime import Scheduler, fixed
from duetime.errors import (
    InvalidCursor,
    InvalidDuration,
    InvalidOption,
    InvalidTime,
    JobFailed,
    JobNotFound,
    ResultExpired,
)
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


@pytest.fixture
async def jobs(scheduler: Scheduler) -> list[str]:
    """The ids of five jobs, newest first."""
    task = scheduler.task(double)
    return [handle.id for handle in await scheduler.enqueue_many([task.call(n) for n in range(5)])][::-1]


async def test_pages_follow_each_other_newest_first_until_there_is_no_cursor(
    scheduler: Scheduler, jobs: list[str]
) -> None:
    first = await scheduler.jobs.list(limit=2)
    second = await scheduler.jobs.list(limit=2, cursor=first.cursor)
    last = await scheduler.jobs.list(limit=2, cursor=second.cursor)
    assert [record.id for record in (*first, *second, *last)] == jobs
    assert last.cursor is None


async def test_a_page_that_is_just_full_is_the_last(scheduler: Scheduler, jobs: list[str]) -> None:
    assert (await scheduler.jobs.list(limit=len(jobs))).cursor is None


async def test_since_is_a_moment_or_a_time_that_counts_back(scheduler: Scheduler, clock: FakeClock) -> None:
    task = scheduler.task(double)
    await task.enqueue(1)
    clock.advance("1h")
    latest = await task.enqueue(2)
    moment = (await latest.record()).created_at
    for since in ("30m", 1800, timedelta(minutes=30), moment):
        assert [record.id for record in await scheduler.jobs.list(since=since)] == [latest.id]
    assert len(await scheduler.jobs.list(since="2h")) == 2


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        ({"limit": 0}, InvalidOption, "limit must be a whole number from 1 to 1,000"),
        ({"limit": 1_001}, InvalidOption, "not 1001"),
        ({"limit": True}, InvalidOption, "not True"),
        ({"state": "lost"}, InvalidOption, "state must be one of pending, running"),
        ({"registry": "lost"}, InvalidOption, "registry must be one of scheduled, queued"),
        ({"kind": "odd"}, InvalidOption, "kind must be one of scheduled, one_off, not 'odd'"),
        ({"since": "soon"}, InvalidDuration, "since"),
        ({"since": datetime(2030, 1, 1)}, InvalidTime, "since"),  # noqa: DTZ001 - that is the point
        ({"colour": "red"}, InvalidOption, "unknown option 'colour'"),
        ({"cursor": ""}, InvalidCursor, "not a cursor"),
        ({"cursor": "nonsense"}, InvalidCursor, "'nonsense' is not a cursor"),
        ({"cursor": "0198c5a07d3e7c429a576a1f6d4f2b10"}, InvalidCursor, "as it is"),
        ({"cursor": "ä"}, InvalidCursor, "not a cursor"),
        ({"cursor": "am9iczr_"}, InvalidCursor, "not a cursor"),
        ({"cursor": 7}, InvalidCursor, "7 is not a cursor"),
    ],
)
async def test_a_list_refuses_what_it_cannot_do(
    scheduler: Scheduler, bad: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        await scheduler.jobs.list(**bad)


@pytest.mark.covers("run-record")
async def test_every_try_of_a_job_is_told_the_last_one_included(scheduler: Scheduler) -> None:
    task = scheduler.task(retries=fixed(1, 0))(fail)
    async with scheduler.worker(concurrency=1):
        job = await task.enqueue()
        with pytest.raises(JobFailed):
            await job.result(timeout=20)
        record = await job.record()
    first, last = await scheduler.jobs.attempts(job.id)
    assert (first.outcome, last.outcome) == ("error", "failed")
    assert first.fence < last.fence
    for attempt in (first, last):
        assert attempt.error == "RuntimeError: boom"
        assert "in fail" in str(attempt.traceback)
        assert attempt.worker == record.worker
        assert attempt.started_at is not None
        assert attempt.ended_at is not None
        assert attempt.due_at <= attempt.started_at <= attempt.ended_at
    assert (last.started_at, last.ended_at) == (record.started_at, record.finished_at)


async def test_a_job_that_never_began_has_no_tries(scheduler: Scheduler) -> None:
    job = await scheduler.task(double).options(delay=60).enqueue(1)
    assert await scheduler.jobs.attempts(job.id) == []
    await scheduler.jobs.cancel(job.id)
    assert await scheduler.jobs.attempts(job.id) == []
    with pytest.raises(JobNotFound):
        await scheduler.jobs.attempts("0" * 32)
