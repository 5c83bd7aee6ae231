"""Schedules that vanish from the code are parked, and come back with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, State, cron
from duetime.model.schedule.parking import UNDECLARED_GRACE
from duetime.runtime.upkeep.firing import ScheduleFirer, ScheduleParker
from duetime.testing.clock import FakeClock
from tests.unit.runtime.kit import NoHealth

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Deployment:
    """Versions of one program at work on one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = FakeClock(NOON)

    async def gone(self, *names: str) -> None:
        """A version that was up, longer ago than anybody waits for it."""
        async with self.running(*names):
            pass
        self.clock.advance(timedelta(microseconds=UNDECLARED_GRACE))

    def version(self, *names: str, tasks: tuple[str, ...] = ("work",)) -> Scheduler:
        """A version whose code declares these schedules."""
        scheduler = Scheduler(self.url, clock=self.clock)
        for task in tasks:

            @scheduler.task(name=task)
            async def work() -> None: ...

        for name in names:
            scheduler.schedule(cron("0 * * * *"), name=name)(work)
        return scheduler

    @asynccontextmanager
    async def running(self, *names: str) -> AsyncIterator[Scheduler]:
        """A version that has started."""
        scheduler = self.version(*names)
        async with scheduler, scheduler.worker(jobs=False):
            yield scheduler


async def look(scheduler: Scheduler, *, times: int = 2) -> None:
    parker = ScheduleParker(scheduler.store, NoHealth(), declared=scheduler.declared, tasks=scheduler.tasks)
    for _ in range(times):
        await parker.round()


async def states(scheduler: Scheduler) -> dict[str, str]:
    return {found.name: found.state for found in await scheduler.schedules.list()}


@pytest.fixture
def deployment(store_url: str) -> Deployment:
    return Deployment(store_url)


@pytest.mark.covers("vanished-schedule")
async def test_a_schedule_that_has_vanished_from_the_code_is_parked_and_shown(deployment: Deployment) -> None:
    await deployment.gone("old", "both")
    async with deployment.running("both", "new") as scheduler:
        await look(scheduler)
        assert await states(scheduler) == {"both": "active", "new": "active", "old": "parked"}
        old = await scheduler.schedules.get("old")
        assert (old.parked, old.parked_at, old.next_at) == (
            True,
            NOON + timedelta(microseconds=UNDECLARED_GRACE),
            None,
        )
        [change, *_] = await scheduler.schedules.history("old")
        assert (change.verb, change.who) == ("park", "duetime")


async def test_what_another_living_worker_declares_stays(deployment: Deployment) -> None:
    async with deployment.running("old"), deployment.running("new") as scheduler:
        await look(scheduler)
        assert await states(scheduler) == {"new": "active", "old": "active"}


async def test_it_takes_two_looks_so_that_a_worker_that_is_about_to_start_is_not_overlooked(
    deployment: Deployment,
) -> None:
    await deployment.gone("old")
    async with deployment.running("new") as scheduler:
        await look(scheduler, times=1)
        assert (await states(scheduler))["old"] == "active"


@pytest.mark.covers("emptied-store")
async def test_what_was_deleted_stays_so_until_a_worker_begins_anew(deployment: Deployment) -> None:
    async with deployment.running("mine") as scheduler:
        await scheduler.schedules.delete("mine")
        parker = ScheduleParker(
            scheduler.store, NoHealth(), declared=scheduler.declared, tasks=scheduler.tasks
        )
        await parker.round()
        assert await states(scheduler) == {}
        parker.declare_again()
        await parker.round()
        assert await states(scheduler) == {"mine": "active"}
        await scheduler.schedules.delete("mine")
        await parker.round()
        assert await states(scheduler) == {}


@pytest.mark.covers("vanished-schedule")
async def test_schedules_that_were_put_and_those_of_unknown_tasks_keep_their_place(
    deployment: Deployment,
) -> None:
    other = deployment.version("foreign", tasks=("elsewhere",))
    async with other:
        await other.put_declared()
    async with deployment.running("mine") as scheduler:
        await scheduler.schedules.put("put", cron("0 * * * *"), "work")
        await look(scheduler)
        assert await states(scheduler) == {"foreign": "active", "mine": "active", "put": "active"}


@pytest.mark.covers("vanished-schedule")
async def test_one_record_tells_what_did_not_run_until_the_code_came_back(deployment: Deployment) -> None:
    await deployment.gone("old")
    async with deployment.running("new") as scheduler:
        await look(scheduler)
    deployment.clock.advance("3h20m")
    async with deployment.running("old") as scheduler:
        old = await scheduler.schedules.get("old")
        assert (old.state, old.next_at) == ("active", NOON + timedelta(hours=4))
        [record] = await scheduler.jobs.list(schedule="old")
        assert (record.state, record.reason, record.occurrences) == (State.SKIPPED, "parked", 3)


async def test_a_program_that_is_down_for_a_deployment_keeps_its_schedules(deployment: Deployment) -> None:
    async with deployment.running("old"):
        pass
    deployment.clock.advance("9m")
    async with deployment.running("new") as scheduler:
        await look(scheduler)
        assert (await states(scheduler))["old"] == "active"


async def test_an_occurrence_that_fell_due_while_its_schedule_was_parked_for_a_short_time_runs(
    deployment: Deployment,
) -> None:
    await deployment.gone("old")
    deployment.clock.advance("49m")
    async with deployment.running("new") as scheduler:
        await look(scheduler)
    deployment.clock.advance("5m")
    scheduler = deployment.version("old")
    async with scheduler:
        await scheduler.put_declared()
        await ScheduleFirer(scheduler.store, NoHealth()).round()
        [record] = await scheduler.jobs.list(schedule="old")
        assert (record.state, record.occurrence) == (State.PENDING, NOON + timedelta(hours=1))


async def test_what_was_parked_while_its_worker_started_is_declared_again(deployment: Deployment) -> None:
    late = deployment.version("old")
    async with late:
        # It has declared its schedules, but nobody knows yet that it lives.
        await late.put_declared()
        async with deployment.running("new") as scheduler:
            await look(scheduler)
            assert (await states(scheduler))["old"] == "parked"
            await look(late, times=1)
            assert (await states(scheduler))["old"] == "active"


async def test_putting_a_parked_schedule_takes_it_over(deployment: Deployment) -> None:
    await deployment.gone("old")
    async with deployment.running("new") as scheduler:
        await look(scheduler)
        assert await scheduler.schedules.put("old", cron("0 * * * *"), "work") == "changed"
        await look(scheduler)
        old = await scheduler.schedules.get("old")
        assert (old.state, old.owner, old.next_at) == ("active", "user", NOON + timedelta(hours=1))


async def test_a_worker_says_which_schedules_it_declares(deployment: Deployment) -> None:
    scheduler = deployment.version("a", "b")
    async with scheduler, scheduler.worker(), scheduler.worker(schedules=False):
        found = {worker.fires: worker.declares for worker in await scheduler.store.workers()}
    assert found == {True: ("a", "b"), False: ()}


async def test_a_worker_that_leaves_schedules_alone_declares_none(deployment: Deployment) -> None:
    scheduler = deployment.version("a")
    async with scheduler, scheduler.worker(schedules=False):
        assert await scheduler.schedules.list() == []


async def test_a_process_that_only_fires_schedules_runs_nothing(deployment: Deployment) -> None:
    scheduler = deployment.version("a")
    async with scheduler, scheduler.worker(jobs=False) as worker:
        await scheduler.schedules.trigger("a")
        [found] = await scheduler.store.workers()
        assert (found.tasks, found.queues, found.slots, found.fires) == ((), (), 0, True)
    [job] = await late_jobs(scheduler)
    assert (job, worker.stats().done) == (State.PENDING, 0)


async def late_jobs(scheduler: Scheduler) -> list[State]:
    async with scheduler:
        return [job.state for job in await scheduler.jobs.list()]
