"""Models and paths reach tasks of every kind, and come back as results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duetime import Job, Scheduler, every
from duetime.errors import ResultUnreadable
from duetime.testing import assert_enqueued, perform
from tests.integration import model_tasks
from tests.integration.model_tasks import ORDER, Order

SHIPPED = ORDER.model_copy(update={"id": 9})


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    return Scheduler(store_url)


def _as_class(scheduler: Scheduler) -> Any:
    class Ship(Job, scheduler=scheduler, name="ship"):
        def run(self, orders: dict[str, list[Order]], into: Path | None = None) -> tuple[Order, Path | None]:
            return model_tasks.ship(orders, into)

    return Ship.task


KINDS = {
    "in the loop": lambda scheduler: scheduler.task(name="ship")(model_tasks.ship_later),
    "in a thread": lambda scheduler: scheduler.task(name="ship")(model_tasks.ship),
    "in a child process": lambda scheduler: scheduler.task(name="ship", cpu=True)(model_tasks.ship),
    "of a job class": _as_class,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_task_takes_and_returns_models_and_paths(scheduler: Scheduler, kind: str) -> None:
    ship = KINDS[kind](scheduler)
    async with scheduler, scheduler.worker(cpu_children=1):
        job = await ship.enqueue({"today": [ORDER]}, into=Path("out"))
        assert await job.result(timeout=20) == (SHIPPED, Path("out/x"))
        record = await job.record()
    assert record.arguments == {"orders": {"today": [ORDER.model_dump(mode="json")]}, "into": "out"}
    assert record.result == [SHIPPED.model_dump(mode="json"), "out/x"]


async def test_a_schedule_gives_models_to_its_jobs(scheduler: Scheduler) -> None:
    ship = scheduler.task(name="ship")(model_tasks.ship)
    async with scheduler, scheduler.worker():
        await scheduler.schedules.put("daily", every("1d"), ship, kwargs={"orders": {"today": [ORDER]}})
        job = await scheduler.schedules.trigger("daily")
        assert await job.result(timeout=20) == (SHIPPED, None)


async def test_a_job_that_is_run_again_returns_a_model_too(scheduler: Scheduler) -> None:
    ship = scheduler.task(name="ship")(model_tasks.ship)
    async with scheduler, scheduler.worker():
        job = await ship.enqueue({"today": [ORDER]})
        await job.result(timeout=20)
        assert await (await scheduler.jobs.rerun(job.id)).result(timeout=20) == (SHIPPED, None)


async def test_models_are_looked_for_and_passed_on_in_tests(scheduler: Scheduler) -> None:
    ship = scheduler.task(name="ship")(model_tasks.ship)
    async with scheduler:
        await ship.enqueue({"today": [ORDER]}, Path("out"))
    await assert_enqueued(scheduler, ship, {"today": [ORDER]}, into=Path("out"))
    assert await perform(ship, {"today": [ORDER]}) == (SHIPPED, None)


async def test_a_result_that_is_no_valid_model_any_more_says_so(scheduler: Scheduler) -> None:
    @scheduler.task(name="make")
    def make() -> Order:
        return Order.model_construct(id="seven")

    async with scheduler, scheduler.worker():
        with pytest.raises(ResultUnreadable, match="no valid Order: id: Input should be a valid integer"):
            await (await make.enqueue()).result(timeout=20)
