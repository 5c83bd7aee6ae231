"""Asserting what was enqueued, and what the failure shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import pytest

from duetime import Job, Scheduler
from duetime.errors import InvalidArguments
from duetime.testing import FakeClock, assert_enqueued, blocking, drain, refute_enqueued

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=FakeClock(START)) as opened:
        yield opened


def send(user: int, text: str = "hello", *, on: date | None = None) -> None: ...


async def test_arguments_that_are_left_out_may_be_anything(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    job = await task.enqueue(1, "hi", on=date(2030, 1, 2))
    for found in (
        await assert_enqueued(scheduler, task),
        await assert_enqueued(scheduler, task, 1),
        await assert_enqueued(scheduler, task, 1, "hi"),
        await assert_enqueued(scheduler, task, text="hi"),
        await assert_enqueued(scheduler, task, on=date(2030, 1, 2)),
    ):
        assert [record.id for record in found] == [job.id]
    await refute_enqueued(scheduler, task, 2)
    await refute_enqueued(scheduler, task, 1, "hello")
    with pytest.raises(AssertionError):
        await assert_enqueued(scheduler, task, 1, on=date(2030, 1, 3))


async def test_a_default_that_was_not_passed_counts_as_passed(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    await task.enqueue(1)
    await assert_enqueued(scheduler, task, 1, "hello", on=None)


async def test_queue_key_priority_tags_and_due_time_are_looked_at_if_given(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send", tags=["mail"])(send)
    await task.options(queue="mail", key="welcome:1", priority=2, tags=["new", "b"], delay="1h").enqueue(1)
    due = START + timedelta(hours=1)
    await assert_enqueued(
        scheduler, task, 1, queue="mail", key="welcome:1", priority=2, tags=["new", "mail"], due_at=due
    )
    await refute_enqueued(scheduler, task, queue="default")
    await refute_enqueued(scheduler, task, key="welcome:2")
    await refute_enqueued(scheduler, task, priority=5)
    await refute_enqueued(scheduler, task, tags=["new", "other"])
    await refute_enqueued(scheduler, task, due_at=START)


async def test_how_often_is_exact_if_given_and_jobs_come_oldest_first(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    jobs = await scheduler.enqueue_many([task.call(1), task.call(2), task.call(1)])
    assert [job.id for job in await assert_enqueued(scheduler, task)] == [job.id for job in jobs]
    assert len(await assert_enqueued(scheduler, task, 1, times=2)) == 2
    await assert_enqueued(scheduler, task, 3, times=0)
    with pytest.raises(AssertionError, match=r"send\(user=1\) was enqueued 2 times, not 1"):
        await assert_enqueued(scheduler, task, 1, times=1)


async def test_jobs_that_have_run_count(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    await task.enqueue(1)
    await drain(scheduler)
    await assert_enqueued(scheduler, task, 1)


async def test_the_failure_shows_what_was_enqueued(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    other = scheduler.task(name="other")(send)
    await task.options(key="k", tags=["t"]).enqueue(2, "ho")
    await scheduler.enqueue_many([other.call(1), other.call(1)])
    with pytest.raises(AssertionError) as caught:
        await assert_enqueued(scheduler, task, 1, queue="mail")
    assert str(caught.value) == (
        "send(user=1), queue='mail' was not enqueued; of this task there is 1 job\n"
        "  (user=2, text='ho'), queue='default', priority=5, key='k', tags=['t'], "
        "due 2030-01-01T00:00:00+00:00, pending\n"
        "of others: other (2)"
    )
    with pytest.raises(AssertionError, match=r"send\(\), tags=\['t'\] was enqueued; of this task there is 1"):
        await refute_enqueued(scheduler, task, tags=["t"])


async def test_the_oldest_of_many_jobs_is_found(scheduler: Scheduler) -> None:
    task, other = scheduler.task(name="send")(send), scheduler.task(name="other")(send)
    await scheduler.enqueue_many([each.call(number) for number in range(1_100) for each in (task, other)])
    assert len(await assert_enqueued(scheduler, task, 0)) == 1
    assert len(await assert_enqueued(scheduler, task, times=1_100)) == 1_100
    with pytest.raises(AssertionError, match="was enqueued; of this task there are 1100 jobs"):
        await refute_enqueued(scheduler, task, 0)


async def test_a_long_list_is_cut(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    await scheduler.enqueue_many([task.call(number) for number in range(12)])
    with pytest.raises(AssertionError, match=r"there are 12 jobs\n  … 2 older ones, and\n  \(user=2\)"):
        await assert_enqueued(scheduler, task, 99)


async def test_arguments_that_the_task_does_not_have_are_refused(scheduler: Scheduler) -> None:
    task = scheduler.task(name="send")(send)
    with pytest.raises(InvalidArguments, match="txet"):
        await assert_enqueued(scheduler, task, txet="hi")
    with pytest.raises(InvalidArguments, match="unsupported"):
        await refute_enqueued(scheduler, task, object())


async def test_job_classes_are_looked_for_too(scheduler: Scheduler) -> None:
    class Report(Job, scheduler=scheduler, name="report"):
        def run(self, day: date) -> None: ...

    await Report.enqueue(date(2030, 1, 1))
    await assert_enqueued(scheduler, Report, date(2030, 1, 1))
    await refute_enqueued(scheduler, Report, date(2030, 1, 2))


def test_they_serve_blocking_callers_too(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url, clock=FakeClock(START))
    task = scheduler.task(name="send")(send)
    task.options(delay="1h", key="k", tags=["t"]).sync.enqueue(1)
    assert blocking.drain(scheduler) == []
    due = START + timedelta(hours=1)
    blocking.assert_enqueued(
        scheduler, task, 1, queue="default", key="k", priority=5, tags=["t"], due_at=due, times=1, on=None
    )
    for unlike in (
        {"queue": "x"},
        {"key": "x"},
        {"priority": 1},
        {"tags": ["x"]},
        {"due_at": START},
        {"user": 2},
    ):
        blocking.refute_enqueued(scheduler, task, **unlike)
    assert [job.task for job in blocking.drain(scheduler, until="2h")] == ["send"]
    scheduler.sync.close()
