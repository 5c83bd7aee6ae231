"""Jobs that wait are changed by id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Limit, Scheduler
from duetime.errors import (
    InvalidArguments,
    InvalidDuration,
    InvalidName,
    InvalidOption,
    InvalidTime,
    JobActive,
    JobEnded,
    JobNotFound,
    UnknownTask,
)
from duetime.model.job import JobTerms
from duetime.model.limits import schedule_gate
from duetime.model.time import SECOND
from duetime.scheduler.task import AsyncTask
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import hire, job, put, read, take_one

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
Greet = AsyncTask[..., None]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Scheduler:
    return Scheduler("sqlite://", clock=clock)


@pytest.fixture
def greet(scheduler: Scheduler) -> Greet:
    @scheduler.task(name="greet", limit=Limit(1, by="user"), retries=3)
    async def greet(user: int, text: str = "hi") -> None: ...

    return greet


async def test_what_is_given_changes_and_all_else_stays(scheduler: Scheduler, greet: Greet) -> None:
    async with scheduler:
        handle = await greet.options(delay="1h", priority=7, tags=["a"], key="k").enqueue(1)
        before = await handle.record()
        await scheduler.jobs.edit(handle.id, at=NOON, queue="mail", timeout="5s", retries=1, expires="1h")
        after, stored = await handle.record(), await read(scheduler.store, handle.id)
    assert (after.due_at, after.queue, after.expires_at) == (NOON, "mail", NOON + timedelta(hours=1))
    assert (stored.timeout, stored.retries) == (5 * SECOND, 1)
    for name in ("arguments", "priority", "tags", "key", "state", "created_at"):
        assert getattr(after, name) == getattr(before, name)


async def test_a_delay_counts_from_now(scheduler: Scheduler, greet: Greet, clock: FakeClock) -> None:
    async with scheduler:
        handle = await greet.options(delay="1h").enqueue(1)
        clock.advance("10m")
        await scheduler.jobs.edit(handle.id, delay=0, priority=0)
        stored = await read(scheduler.store, handle.id)
    assert (stored.due_at, stored.priority) == (clock.now(), 0)


async def test_new_arguments_are_checked_and_wait_at_their_own_gate(
    scheduler: Scheduler, greet: Greet
) -> None:
    async with scheduler:
        handle = await greet.options(delay="1h").enqueue(1, "hello")
        await scheduler.jobs.edit(handle.id, args=[2])
        stored = await read(scheduler.store, handle.id)
        assert (stored.payload, stored.gate) == ('{"user":2}', "greet[user=2]")
        with pytest.raises(InvalidArguments, match="user"):
            await scheduler.jobs.edit(handle.id, kwargs={"user": "Ann"}, priority=0)
        assert await read(scheduler.store, handle.id) == stored


async def test_a_job_that_waits_for_its_turn_in_a_schedule_goes_on_waiting_for_it(
    scheduler: Scheduler, greet: Greet
) -> None:
    gate = schedule_gate("nightly")
    async with scheduler:
        (job_id,) = await scheduler.store.enqueue(
            [job(task="greet", schedule="nightly", terms=JobTerms(gate=gate))]
        )
        await scheduler.jobs.edit(job_id, kwargs={"user": 2})
        assert (await read(scheduler.store, job_id)).gate == gate


async def test_new_arguments_of_a_task_that_is_not_known_here_are_refused(scheduler: Scheduler) -> None:
    async with scheduler:
        job_id = await put(scheduler.store, delay=SECOND)
        await scheduler.jobs.edit(job_id, queue="mail")
        with pytest.raises(UnknownTask):
            await scheduler.jobs.edit(job_id, args=[1])


async def test_a_job_is_not_moved_past_its_deadline_unless_that_moves_as_well(
    scheduler: Scheduler, greet: Greet
) -> None:
    async with scheduler:
        handle = await greet.options(expires="5m").enqueue(1)
        before = await handle.record()
        assert before.expires_at is not None
        for late in ({"delay": "5m"}, {"at": before.expires_at}):
            with pytest.raises(InvalidOption, match="give expires=, too"):
                await scheduler.jobs.edit(handle.id, **late)
        assert await handle.record() == before
        await scheduler.jobs.edit(handle.id, delay="4m")
        await scheduler.jobs.edit(handle.id, delay="5m", expires="1m")
        assert (await handle.record()).expires_at == before.due_at + timedelta(minutes=6)
        await scheduler.jobs.edit(handle.id, at=NOON, expires=NOON + timedelta(minutes=1))
        assert (await handle.record()).expires_at == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({}, InvalidOption, "say what to change"),
        ({"colour": "red"}, InvalidOption, "unknown option 'colour'; options are at, delay"),
        ({"key": "k"}, InvalidOption, "unknown option 'key'"),
        ({"at": NOON, "delay": 1}, InvalidOption, "not both"),
        ({"at": NOON.replace(tzinfo=None)}, InvalidTime, "at"),
        ({"delay": -1}, InvalidDuration, "delay"),
        ({"priority": 10}, InvalidOption, "priority"),
        ({"queue": "two words"}, InvalidName, "queue"),
        ({"args": "Ann"}, InvalidArguments, "args must be a list"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    scheduler: Scheduler, greet: Greet, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    async with scheduler:
        handle = await greet.options(delay="1h").enqueue(1)
        before = await handle.record()
        with pytest.raises(error, match=said):
            await scheduler.jobs.edit(handle.id, **given)
        assert await handle.record() == before


async def test_a_job_that_a_worker_has_that_has_ended_or_that_is_not_there_is_refused(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    edit = scheduler.jobs.edit
    async with scheduler:
        with pytest.raises(JobNotFound):
            await edit("nothing", delay=0)
        await hire(scheduler.store, "w1")
        ahead = await put(scheduler.store, delay=SECOND)
        claim = await take_one(scheduler.store, ahead=2 * SECOND)
        assert claim.job_id == ahead
        with pytest.raises(JobActive, match="is with a worker; cancel it, and run it again"):
            await edit(ahead, delay="1h")
        assert (await read(scheduler.store, ahead)).due_at == clock.now() + SECOND
        ended = await put(scheduler.store)
        await scheduler.jobs.cancel(ended)
        with pytest.raises(JobEnded, match="rerun"):
            await edit(ended, delay="1h")
