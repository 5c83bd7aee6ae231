"""Jobs that are run again, changed, put off, or taken away from their workers."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial
from signal import SIGCONT, SIGSTOP

import pytest

from duetime import Scheduler
from duetime.errors import InvalidDuration, InvalidOption, JobActive, JobEnded, JobNotFound
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.scheduler import jobs as releasing
from tests.integration.kit import Fleet, until
from tests.integration.test_claim_ahead import held_before, note_at


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


@pytest.mark.covers("no-way-to-interfere")
async def test_a_job_runs_again_as_a_new_one_although_its_task_is_not_known_here(
    scheduler: Scheduler, store_url: str
) -> None:
    @scheduler.task(name="double", tags=["maths"])
    async def double(number: int) -> int:
        return number * 2

    stranger = Scheduler(store_url)
    async with scheduler, stranger, scheduler.worker():
        old = await double.options(priority=1).enqueue(21)
        await old.result(timeout=20)
        new = await stranger.jobs.rerun(old.id)
        assert await new.result(timeout=20) == 42
        record = await new.record()

    assert (record.parent, record.arguments, record.priority) == (old.id, {"number": 21}, 1)
    assert (record.tags, record.id != old.id) == (("maths",), True)


async def test_running_a_job_again_twice_under_one_key_tells_of_the_first(scheduler: Scheduler) -> None:
    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler:
        old = await quick.enqueue()
        await scheduler.jobs.cancel(old.id)
        first = await scheduler.jobs.rerun(old.id, key="k")
        second = await scheduler.jobs.rerun(old.id, key="k")
    assert (first.existing, second.existing, second.id) == (False, True, first.id)


@pytest.mark.covers("no-way-to-interfere")
async def test_bad_requests_have_their_answers(scheduler: Scheduler) -> None:
    @scheduler.task(name="endless")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()
    jobs = scheduler.jobs
    async with scheduler:
        waiting = await endless.options(delay="1h").enqueue()
        with pytest.raises(JobActive, match="pending"):
            await jobs.rerun(waiting.id)
        with pytest.raises(InvalidOption, match="colour"):
            await jobs.rerun(waiting.id, colour="red")  # type: ignore[call-arg]
        with pytest.raises(InvalidOption, match="tx="):
            await jobs.rerun(waiting.id, tx=object())
        with pytest.raises(InvalidDuration):
            await jobs.snooze(waiting.id, -1)
        assert await jobs.release(waiting.id) == "waiting"
        for verb in (jobs.rerun("x"), jobs.snooze("x", 1), jobs.release("x"), jobs.cancel("x")):
            with pytest.raises(JobNotFound, match="there is no job x"):
                await verb
        await jobs.cancel(waiting.id)
        for verb in (jobs.snooze(waiting.id, 1), jobs.release(waiting.id, force=True)):
            with pytest.raises(JobEnded, match="has ended"):
                await verb
        async with scheduler.worker():
            running = await endless.enqueue()
            await asyncio.wait_for(begun.wait(), 20)
            for verb in (jobs.rerun(running.id), jobs.snooze(running.id, 1), jobs.release(running.id)):
                with pytest.raises(JobActive):
                    await verb
            await jobs.cancel(running.id)


async def test_a_job_that_was_put_off_waits(scheduler: Scheduler) -> None:
    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler:
        job = await quick.options(delay="1h").enqueue()
        due = (await job.record()).due_at
        await scheduler.jobs.snooze(job.id, "30m")
        assert (await job.record()).due_at == due + timedelta(minutes=30)


async def test_a_job_that_is_to_run_sooner_runs_then_as_it_was_changed(
    scheduler: Scheduler, store_url: str
) -> None:
    @scheduler.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    client = Scheduler(store_url)
    client.task(name="double")(double.handler.function)
    async with client, scheduler, scheduler.worker(queues=["default", "mail"]):
        job = await double.options(delay="1h").enqueue(1)
        await client.jobs.edit(job.id, delay=0.01, args=[21], queue="mail")
        assert await job.result(timeout=20) == 42
        assert (await job.record()).queue == "mail"


async def test_an_unstarted_job_of_a_frozen_worker_is_given_to_another_by_force(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = fleet.app()
    async with app.scheduler:
        frozen = await fleet.start(window="60s")
        [job_id] = await held_before(app.scheduler.store, partial(note_at, app))
        frozen.signal(SIGSTOP)
        monkeypatch.setattr(releasing, "RELEASE_TIMEOUT", SECOND // 2)
        with pytest.raises(TimeoutError, match="force=True"):
            await app.scheduler.jobs.release(job_id)
        assert await app.scheduler.jobs.release(job_id, force=True) == "released"
        heir = await fleet.start()
        await fleet.ended(app.scheduler.store, [job_id])
        [entry] = fleet.ledger.entries("start", job=job_id)
        assert entry.pid == heir.pid
        frozen.signal(SIGCONT)
        record = (await app.scheduler.store.get([job_id]))[0]
    assert (record.state, record.crashes, record.failures) == (State.SUCCEEDED, 0, 0)


@pytest.mark.covers("released-while-it-starts")
async def test_released_jobs_run_once_however_close_they_were_to_their_start(scheduler: Scheduler) -> None:
    @scheduler.task(name="count")
    async def count(number: int) -> None:
        counted.append(number)

    counted: list[int] = []
    tries: list[list[str]] = []
    async with scheduler, scheduler.worker(window="20s"), scheduler.worker(window="20s"):
        # On a busy machine all of them may have started before they can be released.
        for lead in (0.3, 1, 3, 6, 12):
            jobs = await scheduler.enqueue_many(
                [count.options(delay=lead + number / 100).call(number) for number in range(20)]
            )
            await until(partial(claimed, scheduler, jobs[-1].id), what="the last job to be claimed ahead")
            tries.append(await asyncio.gather(*(released(scheduler, job.id) for job in jobs)))
            for job in jobs:
                await job.result(timeout=20)
            if "released" in tries[-1]:
                break

    assert "released" in tries[-1], tries
    assert sorted(counted) == sorted([*range(20)] * len(tries))


@pytest.mark.covers("released-while-it-starts")
async def test_a_job_that_has_just_started_is_not_taken_for_an_unstarted_one(scheduler: Scheduler) -> None:
    @scheduler.task(name="linger")
    async def linger() -> None:
        begun.set()
        await go_on.wait()

    begun, go_on = asyncio.Event(), asyncio.Event()
    async with scheduler, scheduler.worker():
        job = await linger.options(delay=0.3).enqueue()
        await asyncio.wait_for(begun.wait(), 20)
        with pytest.raises(JobActive, match="has started"):
            await scheduler.jobs.release(job.id)
        go_on.set()
        await job.result(timeout=20)


async def claimed(scheduler: Scheduler, job_id: str) -> bool:
    return (await scheduler.jobs.get(job_id)).state is not State.PENDING


async def released(scheduler: Scheduler, job_id: str) -> str:
    try:
        return await scheduler.jobs.release(job_id)
    except (JobActive, JobEnded) as refused:
        return type(refused).__name__


async def test_a_worker_that_lost_an_unstarted_job_does_not_start_it(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        store = app.scheduler.store
        await fleet.start(window="60s", queues=["default", "other"])

        async def plant(due: datetime) -> list[JobId]:
            later = due + timedelta(seconds=0.1)
            return await note_at(app, due) + await note_at(app, later, queue="other")

        job_id, after = await held_before(store, plant)
        await app.scheduler.queues.pause("default")
        assert await app.scheduler.jobs.release(job_id) == "released"
        await fleet.ended(store, [after])
        assert (await store.get([job_id]))[0].state is State.PENDING

    assert fleet.ledger.entries("start", job=job_id) == []


@pytest.mark.covers("no-way-to-interfere")
async def test_by_force_a_running_job_goes_to_another_worker_and_the_old_run_records_nothing(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        stuck = await fleet.start()
        job = await app.wait_in_thread.enqueue(gate.path)
        await fleet.entry("start", job=job.id, pid=stuck.pid)
        heir = await fleet.start()
        stuck.signal(SIGSTOP)
        assert await app.scheduler.jobs.release(job.id, force=True) == "released"
        await fleet.entry("start", job=job.id, pid=heir.pid)
        stuck.signal(SIGCONT)
        gate.open()
        assert await job.result(timeout=20) == heir.pid
        await until(lambda: "was refused" in stuck.log, what=lambda: stuck.log)
        [tried] = await store.attempts(job.id)

    assert (tried.outcome, tried.error) == ("interrupted", None)
