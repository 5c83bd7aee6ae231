"""Each reason why a job does not run is made to happen, and the explanation names it."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from duetime import Scheduler
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from tests.integration.kit import Fleet, until
from tests.integration.tasks import App


@pytest_asyncio.fixture
async def app(fleet: Fleet) -> AsyncIterator[App]:
    app = fleet.app()
    async with app.scheduler:
        yield app


async def why(scheduler: Scheduler, job_id: str) -> str:
    """What is so now, in one text."""
    told = await scheduler.jobs.explain(job_id)
    return " ".join(line.text for line in told.lines if line.at is None)


async def says(scheduler: Scheduler, job_id: str, words: str) -> str:
    """Wait until the explanation has these words."""

    async def said() -> str:
        text = await why(scheduler, job_id)
        return text if words in text else ""

    return await until(said, what=f"an explanation with {words!r}")


async def test_a_job_that_is_not_due(app: App, fleet: Fleet) -> None:
    await fleet.start()
    job = await app.note.options(delay="1h").enqueue()
    assert "It is not due until" in await why(app.scheduler, job.id)


@pytest.mark.covers("nothing-to-see")
async def test_no_worker_at_all(app: App) -> None:
    job = await app.note.enqueue()
    assert "No worker is alive" in await why(app.scheduler, job.id)


@pytest.mark.covers("nothing-to-see")
async def test_a_paused_queue(app: App, fleet: Fleet) -> None:
    await fleet.start()
    await app.scheduler.queues.pause("default", reason="deploying")
    job = await app.note.enqueue()
    text = await why(app.scheduler, job.id)
    assert "Queue default is paused since" in text
    assert "deploying" in text


async def test_a_queue_that_no_worker_serves(app: App, fleet: Fleet) -> None:
    await fleet.start()
    job = await app.note.options(queue="reports").enqueue()
    assert "No worker serves queue reports; those that are alive serve default" in await why(
        app.scheduler, job.id
    )


async def test_a_task_that_no_worker_knows(app: App, fleet: Fleet) -> None:
    await fleet.start()
    unknown = NewJob(id=new_job_id(), task="gone.away", payload="{}")
    await app.scheduler.store.enqueue([unknown])
    assert "No worker knows task gone.away" in await why(app.scheduler, unknown.id)


@pytest.mark.covers("nothing-to-see")
async def test_a_worker_that_is_paused(app: App, fleet: Fleet) -> None:
    await fleet.start()
    (worker,) = await app.scheduler.workers.list()
    await app.scheduler.workers.pause(worker.id)
    job = await app.note.enqueue()
    assert f"worker {worker.id}" in await says(
        app.scheduler, job.id, "Every worker that could run it is paused"
    )


async def test_a_limit_that_is_reached_and_a_rate_that_is_used_up(app: App, fleet: Fleet) -> None:
    gate = fleet.gate()
    await app.scheduler.queues.limit("default", 1, rate="1/1h")
    await fleet.start()
    first = await app.wait_for.enqueue(gate.path)
    await fleet.entry("start", job=first.id)
    second = await app.note.enqueue()
    assert "A limit is reached: 1 of 1 of queue default are running" in await why(app.scheduler, second.id)
    gate.open()
    await fleet.ended(app.scheduler.store, [first.id])
    text = await why(app.scheduler, second.id)
    assert "limit is reached" not in text
    assert "queue default may start 1 per 1 hour; the next may start in" in text


async def test_a_limit_on_the_task(app: App, fleet: Fleet) -> None:
    await fleet.start()
    gate = fleet.gate()
    jobs = [await app.serve.enqueue(7, gate.path) for _ in range(2)]
    started = (await fleet.entry("start")).job
    (waiting,) = [job for job in jobs if job.id != started]
    assert "A limit is reached: 1 of 1 of task serve[customer=7] are running" in await why(
        app.scheduler, waiting.id
    )
    gate.open()
    await fleet.ended(app.scheduler.store, [job.id for job in jobs])


async def test_workers_without_a_free_slot(app: App, fleet: Fleet) -> None:
    await fleet.start(concurrency=1, lease="1s")
    gate = fleet.gate()
    first = await app.wait_for.enqueue(gate.path)
    await fleet.entry("start", job=first.id)
    second = await app.note.enqueue()
    await says(app.scheduler, second.id, "Every slot is taken")
    assert "It has been running for" in await why(app.scheduler, first.id)
    gate.open()
    await fleet.ended(app.scheduler.store, [first.id, second.id])
    assert await why(app.scheduler, second.id) == ""


async def test_a_worker_that_is_late_with_its_pulse(app: App, fleet: Fleet) -> None:
    # It says it is on another host, so that nobody can look at its process.
    worker = await fleet.start(host_key="elsewhere", lease="10s")
    job = await app.wait_for.enqueue(fleet.gate().path)
    await fleet.entry("start", job=job.id)
    worker.signal(signal.SIGSTOP)
    assert "last heard of" in await says(app.scheduler, job.id, "late with its pulse")


async def test_the_story_of_a_job_that_ended_by_a_crash(app: App, fleet: Fleet) -> None:
    await fleet.start()
    job = await app.wait_for_once.enqueue(fleet.gate().path)
    await fleet.entry("start", job=job.id)
    fleet.workers[0].kill()
    await fleet.start()
    await fleet.ended(app.scheduler.store, [job.id])
    told = str(await app.scheduler.jobs.explain(job.id))
    assert "Try 1 started on worker" in told
    assert "its worker died, and it is not to be tried again" in told
