"""Wherever an id is taken, it may be written with dashes, in capitals, or be a UUID."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from duetime import Scheduler, State
from duetime.errors import InvalidOption, JobNotFound, WorkerNotFound
from duetime.model.ids import GivenId, new_token
from duetime.testing.conformance.kit import hire, take_one

WAYS: dict[str, Callable[[str], GivenId]] = {
    "as stored": str,
    "with dashes": lambda stored: str(UUID(stored)),
    "in capitals": lambda stored: str(UUID(stored)).upper(),
    "as a UUID": UUID,
}


@pytest.fixture(params=WAYS)
def written(request: pytest.FixtureRequest) -> Callable[[str], GivenId]:
    return WAYS[request.param]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("sqlite://")


async def test_every_verb_on_a_job_takes_its_id(
    scheduler: Scheduler, written: Callable[[str], GivenId]
) -> None:
    @scheduler.task(name="greet")
    async def greet() -> None: ...

    async with scheduler:
        jobs, job = scheduler.jobs, await greet.options(delay=60).enqueue()
        given = written(job.id)
        assert (await jobs.get(given)).id == job.id
        assert (await jobs.explain(given)).job_id == job.id
        assert await jobs.attempts(given) == []
        assert await jobs.logs(given) == []
        assert await jobs.release(given) == "waiting"
        assert await jobs.release(given, force=True) == "waiting"
        await jobs.snooze(given, 30)
        await jobs.edit(given, priority=0)
        assert await jobs.cancel_many([given]) == {given: "cancelled"}
        assert await jobs.cancel(given) == "finished"
        assert (await (await jobs.rerun(given)).record()).parent == job.id
        await jobs.delete(given)
        with pytest.raises(JobNotFound, match=f"there is no job {job.id};"):
            await jobs.get(given)


async def test_every_verb_on_a_worker_takes_its_id(
    scheduler: Scheduler, written: Callable[[str], GivenId]
) -> None:
    @scheduler.task(name="greet")
    async def greet() -> None: ...

    async with scheduler:
        workers, worker = scheduler.workers, new_token()
        given = written(worker)
        await hire(scheduler.store, worker)
        job = await greet.enqueue()
        await take_one(scheduler.store, worker=worker, tasks=("greet",))
        assert (await workers.get(given)).id == worker
        await workers.pause(given, wait=0)
        await workers.resume(given, wait=0)
        await workers.stop_job(given, written(job.id), wait=0)
        await workers.stop(given, wait=0)
        told = await workers.commands(given)
        assert [(one.worker, one.kind, one.job) for one in told[::-1]] == [
            (worker, "pause", None),
            (worker, "resume", None),
            (worker, "stop_job", job.id),
            (worker, "stop", None),
        ]
        assert (await workers.explain(given)).worker_id == worker
        with pytest.raises(TimeoutError, match=f"worker {worker} has not answered stacks"):
            await workers.stacks(given, wait=0.01)


async def test_an_id_that_no_one_has_is_shown_as_it_is_stored(scheduler: Scheduler) -> None:
    stranger = new_token()
    async with scheduler:
        with pytest.raises(JobNotFound, match=f"there is no job {stranger};"):
            await scheduler.jobs.cancel(UUID(stranger))
        with pytest.raises(WorkerNotFound, match=f"there is no worker {stranger};"):
            await scheduler.workers.explain(UUID(stranger))
        assert await scheduler.jobs.cancel_many(["nothing", "a-b"]) == {
            "nothing": "unknown",
            "a-b": "unknown",
        }


async def test_what_is_no_id_is_refused(scheduler: Scheduler) -> None:
    async with scheduler:
        with pytest.raises(InvalidOption, match="an id must be text"):
            await scheduler.jobs.get(7)  # type: ignore[arg-type]


def test_blocking_callers_write_ids_in_the_same_ways(
    sqlite_url: str, written: Callable[[str], GivenId]
) -> None:
    scheduler = Scheduler(sqlite_url)
    handle = scheduler.task(name="double")(lambda number: number * 2).options(delay=60).sync.enqueue(4)
    assert scheduler.sync.jobs.get(written(handle.id)).state is State.PENDING
    answers = scheduler.sync.jobs.cancel_many([written(handle.id)])
    assert answers[written(handle.id)] == "cancelled"
    scheduler.sync.close()
