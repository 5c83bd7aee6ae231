"""Draining: everything that is due runs to its end, here, by the real parts of a worker."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Depends, Ended, JobContext, Retry, Scheduler, Snooze, cron, current_job, every
from duetime.errors import InvalidOption
from duetime.model.states import State
from duetime.model.triggers.base import Trigger
from duetime.testing import FakeClock, drain

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
async def scheduler(store_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    async with Scheduler(store_url, clock=clock) as opened:
        yield opened


async def test_what_is_due_runs_and_what_is_not_stays(scheduler: Scheduler, clock: FakeClock) -> None:
    @scheduler.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    due, later = await double.enqueue(3), await double.options(delay="1h").enqueue(4)
    ran = await drain(scheduler)
    assert [(job.id, job.state, job.result) for job in ran] == [(due.id, State.SUCCEEDED, 6)]
    assert (await later.record()).state is State.PENDING

    clock.advance("1h")
    assert [job.id for job in await drain(scheduler)] == [later.id]
    assert await later.result(timeout=1) == 8
    assert await drain(scheduler) == []


async def test_jobs_that_jobs_enqueue_run_too_in_whatever_queue(scheduler: Scheduler) -> None:
    @scheduler.task(name="chain")
    def chain(left: int) -> None:
        if left:
            chain.options(queue=f"odd-{left}").sync.enqueue(left - 1)

    await chain.enqueue(3)
    ran = await drain(scheduler)
    assert [job.arguments["left"] for job in ran] == [3, 2, 1, 0]
    assert [job.queue for job in ran] == ["default", "odd-3", "odd-2", "odd-1"]


async def test_callbacks_middleware_and_events_are_as_in_a_worker(scheduler: Scheduler) -> None:
    seen: list[str] = []

    @scheduler.middleware
    async def note(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        seen.append(f"around {job.task}")
        return await call()

    @scheduler.task(name="told")
    async def told(ended: Ended) -> None:
        seen.append(f"{ended.task} {ended.state}")

    @scheduler.task(name="work", on_success=told)
    async def work() -> None: ...

    scheduler.events.subscribe(lambda event: seen.append(event.kind), "job.succeeded")
    await work.enqueue()
    await drain(scheduler)
    assert seen == ["around work", "job.succeeded", "around told", "work succeeded", "job.succeeded"]


async def test_a_job_may_wait_for_another(scheduler: Scheduler) -> None:
    @scheduler.task(name="inner")
    def inner() -> str:
        return "inside"

    @scheduler.task(name="outer")
    async def outer() -> str:
        return await (await inner.enqueue()).result(timeout=5)

    job = await outer.enqueue()
    assert [ran.task for ran in await drain(scheduler)] == ["outer", "inner"]
    assert await job.result(timeout=1) == "inside"


async def test_a_job_whose_dependency_raises_is_told_too(scheduler: Scheduler) -> None:
    def refuse() -> None:
        raise PermissionError("not now")

    @scheduler.task(name="refused")
    async def refused(nothing: None = Depends(refuse)) -> None: ...

    await refused.enqueue()
    [job] = await drain(scheduler)
    assert (job.state, job.error) == (State.FAILED, "PermissionError: not now")


async def test_one_at_a_time_if_asked_for(scheduler: Scheduler) -> None:
    events: list[str] = []

    @scheduler.task(name="step")
    async def step(name: str) -> None:
        events.append(f"{name} begins")
        await asyncio.sleep(0)
        events.append(f"{name} ends")

    await scheduler.enqueue_many([step.call("a"), step.call("b")])
    await drain(scheduler, concurrency=1)
    assert events == ["a begins", "a ends", "b begins", "b ends"]


async def test_retries_run_when_their_time_has_come_and_the_job_is_told_once(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    times: list[datetime] = []

    @scheduler.task(name="fail", retries=[60, 600])
    async def fail() -> None:
        times.append(current_job().started_at)
        raise LookupError("no")

    await fail.enqueue()
    (job,) = await drain(scheduler)
    assert (job.state, job.failures) == (State.PENDING, 1)
    (job,) = await drain(scheduler, until="1h")
    assert (job.state, job.failures, job.error) == (State.FAILED, 3, "LookupError: no")
    assert [moment - START for moment in times] == [timedelta(seconds=wait) for wait in (0, 60, 660)]
    assert clock.now() == FakeClock(START).advance("1h")


async def test_until_runs_each_job_and_schedule_at_its_own_time(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    story: list[tuple[str, timedelta]] = []

    @scheduler.schedule(every(minutes=20))
    @scheduler.task(name="tick")
    async def tick() -> None:
        story.append(("tick", current_job().started_at - START))

    @scheduler.task(name="late")
    async def late() -> None:
        story.append(("late", current_job().started_at - START))

    await late.options(delay="30m").enqueue()
    ran = await drain(scheduler, until=START + timedelta(hours=1))
    minutes = [("tick", 20), ("late", 30), ("tick", 40), ("tick", 60)]
    assert story == [(name, timedelta(minutes=minute)) for name, minute in minutes]
    assert [job.task for job in ran] == [name for name, _ in minutes]
    assert {job.lateness for job in ran} == {timedelta(0)}
    assert await drain(scheduler, until="1h", schedules=False) == []


async def test_a_jump_of_the_clock_shows_what_a_pause_of_that_length_would(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    @scheduler.schedule(every(minutes=20))
    @scheduler.task(name="tick")
    async def tick() -> None: ...

    assert await drain(scheduler) == []
    clock.advance("1h")
    (ran,) = await drain(scheduler)
    assert ran.occurrence == START + timedelta(hours=1)
    assert [job.state for job in await scheduler.jobs.list()] == [State.SUCCEEDED, State.SKIPPED]


async def test_signals_mean_what_they_mean_in_a_worker(scheduler: Scheduler) -> None:
    @scheduler.task(name="moody", retries=1)
    async def moody() -> str:
        match current_job().fence:
            case 1:
                raise Snooze("10m")
            case 2:
                raise Retry("20m")
        return "at last"

    job = await moody.enqueue()
    await drain(scheduler, until="1h")
    record = await job.record()
    assert (record.result, record.failures) == ("at last", 1)
    assert record.started_at == START + timedelta(minutes=30)


async def test_a_running_job_can_be_cancelled_by_another(scheduler: Scheduler) -> None:
    @scheduler.task(name="endless")
    async def endless() -> None:
        await asyncio.Event().wait()

    @scheduler.task(name="killer")
    async def killer(job_id: str) -> None:
        await scheduler.jobs.cancel(job_id)

    job = await endless.enqueue()
    await killer.enqueue(job.id)
    await drain(scheduler)
    assert (await job.record()).state is State.CANCELLED


async def test_jobs_in_paused_queues_and_of_unknown_tasks_do_not_hold_it_up(scheduler: Scheduler) -> None:
    @scheduler.task(name="paused", queue="paused")
    async def paused() -> None: ...

    @scheduler.task(name="gone")
    async def gone() -> None: ...

    await scheduler.enqueue_many([paused.call(), gone.call()])
    await scheduler.queues.pause("paused")
    del scheduler._registry.handlers["gone"]
    assert await drain(scheduler, until="365d") == []


async def test_jobs_without_end_are_an_error_and_not_a_hang(scheduler: Scheduler) -> None:
    @scheduler.task(name="again")
    async def again() -> None:
        await again.enqueue()

    await again.enqueue()
    with pytest.raises(AssertionError, match="without end"):
        await drain(scheduler, most=20)


async def test_a_plain_function_runs_in_a_thread(scheduler: Scheduler) -> None:
    @scheduler.task(name="where")
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    job = await where.enqueue()
    await drain(scheduler)
    assert await job.result(timeout=1) is False


def pid() -> int:
    return os.getpid()


async def test_a_task_for_child_processes_runs_in_this_one(scheduler: Scheduler) -> None:
    job = await scheduler.task(name="pid", cpu=True)(pid).enqueue()
    await drain(scheduler)
    assert await job.result(timeout=1) == os.getpid()


async def test_it_leaves_no_worker_behind(scheduler: Scheduler) -> None:
    @scheduler.task(name="quick")
    async def quick() -> None: ...

    await quick.enqueue()
    await drain(scheduler)
    assert {worker.state for worker in await scheduler.store.workers()} == {"stopped"}


async def test_without_a_clock_of_its_own_it_runs_what_is_due_by_the_databases(store_url: str) -> None:
    scheduler = Scheduler(store_url)

    @scheduler.task(name="quick")
    async def quick() -> None: ...

    async with scheduler:
        job = await quick.enqueue()
        await quick.options(delay="1h").enqueue()
        assert [ran.id for ran in await drain(scheduler)] == [job.id]
        with pytest.raises(InvalidOption, match="FakeClock"):
            await drain(scheduler, until="1h")


async def test_a_schedule_that_has_much_to_account_for_is_done_with_it_after_a_jump_of_the_clock(
    scheduler: Scheduler, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task(name="work")
    async def work() -> None: ...

    # A trigger that cannot count is walked, so many occurrences at a time.
    monkeypatch.setattr("duetime.model.schedule.occurrences.MOST_WALKED", 10)
    monkeypatch.setattr("duetime.model.triggers.combined.Intersection.count", Trigger.count)
    await scheduler.schedules.put("s", cron("* * * * *") & cron("*/2 * * * *"), "work")
    clock.advance("2h")
    assert [job.occurrence for job in await drain(scheduler)] == [START + timedelta(hours=2)]


async def test_jobs_of_one_lock_run_one_after_the_other(scheduler: Scheduler) -> None:
    running = 0

    @scheduler.task(name="reindex", lock="reindex:{tenant}")
    async def reindex(tenant: str) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0.01)
        running -= 1

    jobs = [await reindex.enqueue("a") for _ in range(5)]
    ran = await drain(scheduler)
    assert {job.id for job in ran} == {job.id for job in jobs}
    assert {job.state for job in ran} == {State.SUCCEEDED}


async def test_a_job_whose_lock_someone_else_holds_stays_until_the_deadline(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    @scheduler.task(name="reindex", lock="reindex")
    async def reindex() -> None: ...

    assert await scheduler.lock("reindex", ttl=30).acquire(renew=False)
    await reindex.enqueue()
    assert await drain(scheduler) == []
    clock.advance(31)
    assert [job.state for job in await drain(scheduler)] == [State.SUCCEEDED]
