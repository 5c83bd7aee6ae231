"""Jobs deleted one by one, and by what they have in common."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import InvalidArguments, InvalidCursor, InvalidOption, JobActive, JobNotFound
from duetime.model.states import State
from duetime.scheduler import jobs as deleting
from duetime.scheduler.task import AsyncTask
from duetime.stores.base import JobFilter
from duetime.testing.conformance.kit import hire, take
from tests.unit.scheduler.test_sync import double

Greet = AsyncTask[..., None]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("sqlite://")


@pytest.fixture(autouse=True)
def greet(scheduler: Scheduler) -> Greet:
    @scheduler.task(name="greet")
    async def greet(user: int | str, day: date | None = None) -> None: ...

    return greet


async def enqueue(greet: Greet, *args: Any, **options: Any) -> str:
    return (await greet.options(**options).enqueue(*args)).id


async def test_a_job_is_deleted_and_whoever_waits_for_it_is_told(scheduler: Scheduler, greet: Greet) -> None:
    async with scheduler:
        job = await greet.enqueue(1)
        await scheduler.jobs.delete(job.id)
        for verb in (job.record(), job.result(timeout=20), scheduler.jobs.delete(job.id)):
            with pytest.raises(JobNotFound, match=job.id):
                await verb


async def test_a_job_that_a_worker_has_is_deleted_when_it_has_ended(
    scheduler: Scheduler, greet: Greet
) -> None:
    async with scheduler:
        job_id = await enqueue(greet, 1)
        await hire(scheduler.store, "w1")
        await take(scheduler.store)
        with pytest.raises(JobActive, match="cancel it first"):
            await scheduler.jobs.delete(job_id)
        assert (await scheduler.jobs.get(job_id)).state is State.RUNNING


async def left(scheduler: Scheduler) -> set[str]:
    return {job.id for job in await scheduler.store.find(JobFilter(limit=1_000))}


async def test_jobs_that_meet_all_criteria_are_deleted_step_by_step(
    scheduler: Scheduler, greet: Greet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "_DELETED_AT_ONCE", 2)
    async with scheduler:
        kept = [await enqueue(greet, 1), await enqueue(greet, 2, tags=["b"])]
        for user in range(5):
            await enqueue(greet, user, tags=["a", "b"])
        other = await enqueue(greet, 1, tags=["a"], queue="other")
        counted = await scheduler.jobs.delete_many(tag="a", queue="default", dry_run=True)
        assert counted == (5, 0)
        assert len(await left(scheduler)) == 8
        assert await scheduler.jobs.delete_many(tag="a", queue="default") == (5, 0)
        assert await left(scheduler) == {*kept, other}
        assert await scheduler.jobs.delete_many(since="1h") == (3, 0)


async def test_what_workers_have_stays_and_is_counted(scheduler: Scheduler, greet: Greet) -> None:
    async with scheduler:
        running = await enqueue(greet, 1, priority=0)
        await enqueue(greet, 1)
        await hire(scheduler.store, "w1")
        await take(scheduler.store, limit=1, tasks=("greet",))
        assert await scheduler.jobs.delete_many(task="greet", dry_run=True) == (1, 1)
        assert await scheduler.jobs.delete_many(task="greet") == (1, 1)
        assert await left(scheduler) == {running}


async def test_what_is_enqueued_meanwhile_stays(
    scheduler: Scheduler, greet: Greet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "_DELETED_AT_ONCE", 2)
    new: list[str] = []
    async with scheduler:
        for user in range(5):
            await enqueue(greet, user)
        store = scheduler.store
        delete = store.delete

        async def delete_beside_a_producer(ids: list[str], **more: Any) -> Any:
            new.append(await enqueue(greet, 9))
            return await delete(ids, **more)

        monkeypatch.setattr(store, "delete", delete_beside_a_producer)
        assert (await scheduler.jobs.delete_many(task="greet")).deleted == 5
        assert await left(scheduler) == {*new}


async def test_jobs_are_found_by_their_arguments(scheduler: Scheduler, greet: Greet) -> None:
    async with scheduler:
        by_number, by_text = await enqueue(greet, 1), await enqueue(greet, "1")
        dated = await enqueue(greet, 1, date(2030, 1, 31))
        await scheduler.task(double).enqueue(1)
        jobs = scheduler.jobs
        assert await jobs.delete_many(arguments={"user": True}) == (0, 0)
        assert await jobs.delete_many(arguments={"user": 1, "day": date(2030, 1, 31)}) == (1, 0)
        assert dated not in await left(scheduler)
        assert await jobs.delete_many(arguments={"user": 1}, task="other") == (0, 0)
        assert await jobs.delete_many(arguments={"user": "1"}) == (1, 0)
        assert by_text not in await left(scheduler)
        assert await jobs.delete_many(arguments={"user": 1}) == (1, 0)
        assert by_number not in await left(scheduler)
        assert len(await left(scheduler)) == 1


@pytest.mark.parametrize(
    ("criteria", "error", "said"),
    [
        ({}, InvalidOption, "say which jobs to delete"),
        ({"tag": None, "arguments": {}}, InvalidOption, "say which jobs to delete"),
        ({"tag": ""}, InvalidOption, "tag is empty; leave it out"),
        ({"key": 17}, InvalidOption, "key must be text, not 17"),
        ({"state": "gone"}, InvalidOption, "state must be one of"),
        ({"limit": 5}, InvalidOption, "unknown option 'limit'"),
        ({"tags": ["a"]}, InvalidOption, "unknown option 'tags'"),
        ({"arguments": {"user": object()}}, InvalidArguments, "cannot be written as JSON"),
        ({"arguments": ["user"]}, InvalidArguments, "arguments must be a dict"),
    ],
)
async def test_what_says_no_job_or_none_that_there_can_be_is_refused_and_deletes_nothing(
    scheduler: Scheduler, greet: Greet, criteria: dict[str, Any], error: type[Exception], said: str
) -> None:
    async with scheduler:
        job_id = await enqueue(greet, 1, tags=["a"])
        with pytest.raises(error, match=said):
            await scheduler.jobs.delete_many(**criteria)
        assert await left(scheduler) == {job_id}


async def test_an_empty_criterion_is_refused_in_a_list_as_well(scheduler: Scheduler) -> None:
    async with scheduler:
        with pytest.raises(InvalidOption, match="task is empty"):
            await scheduler.jobs.list(task="")
        with pytest.raises(InvalidCursor):
            await scheduler.jobs.list(cursor="")
        assert await scheduler.jobs.list(since=datetime(2100, 1, 1, tzinfo=UTC)) == []
