"""A worker runs classes as it runs functions."""

from __future__ import annotations

from datetime import date

import pytest

from duetime import Job, Scheduler, current_job, every
from duetime.errors import JobFailed
from duetime.model.states import State
from tests.integration.kit import until


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


async def test_async_and_plain_run_methods_are_run_with_their_arguments_rebuilt(scheduler: Scheduler) -> None:
    class Report(Job, scheduler=scheduler, name="report", queue="reports"):
        async def run(self, day: date) -> date:
            return day.replace(year=day.year + 1)

    class Blocking(Report, name="blocking"):
        def run(self, day: date) -> str:  # type: ignore[override]
            return f"{day.isoformat()} in {current_job().task}"

    async with scheduler, scheduler.worker(queues=["reports"]):
        job = await Report.enqueue(date(2030, 1, 2))
        assert await job.result(timeout=20) == date(2031, 1, 2)
        other = await Blocking.options(priority=0).enqueue(date(2030, 1, 2))
        assert await other.result(timeout=20) == "2030-01-02 in blocking"


async def test_each_try_has_an_instance_of_its_own(scheduler: Scheduler) -> None:
    class Fragile(Job, scheduler=scheduler, name="fragile", retries=[0.01]):
        tries = 0

        async def run(self) -> None:
            self.tries += 1
            raise LookupError(f"{self.tries} on this one, {current_job().attempt} in all")

    async with scheduler, scheduler.worker():
        job = await Fragile.enqueue()
        with pytest.raises(JobFailed, match="LookupError: 1 on this one, 2 in all"):
            await job.result(timeout=20)


async def test_a_schedule_on_a_class_makes_jobs_of_it(scheduler: Scheduler) -> None:
    @scheduler.schedule(every("1s"), args=(3,))
    class Tick(Job, scheduler=scheduler, name="tick", queue="ticks"):
        def run(self, number: int) -> int:
            return number * 2

    async with scheduler, scheduler.worker(queues=["ticks"]):
        jobs = await until(
            lambda: scheduler.jobs.list(task=Tick.task.name, state=State.SUCCEEDED), what="a tick"
        )
    assert (jobs[0].result, jobs[0].schedule, jobs[0].queue) == (6, "tick", "ticks")
