"""Performing: one call as a worker would make it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date

import pytest

from duetime import Cancel, Depends, Job, Scheduler, Snooze, current_job
from duetime.errors import BlockingCallInLoop, InvalidArguments, JobError, JobFailed, ResultNotStored
from duetime.runtime.running.run import current_run
from duetime.testing import blocking, perform

scheduler = Scheduler("postgresql://nobody@127.0.0.1:1/nowhere")


@dataclass
class Point:
    x: int


@scheduler.task
async def move(point: Point, by: int = 1) -> Point:
    return Point(point.x + by)


@scheduler.task(queue="reports")
def whoami() -> list[object]:
    job = current_job()
    return [job.task, job.attempt, len(job.id) > 0]


@scheduler.task(retries=5)
async def fail() -> None:
    raise LookupError("no")


@scheduler.task
async def opaque() -> object:
    return object()


@scheduler.task(timeout=0.01, retries=3)
async def slow() -> None:
    await asyncio.Event().wait()


@scheduler.task
async def moody(mood: str) -> object:
    if mood == "cancel":
        raise Cancel("no")
    return Snooze("1h")


class Report(Job, scheduler=scheduler):
    async def run(self, day: date) -> date:
        return day.replace(year=day.year + 1)


async def test_arguments_and_result_go_through_json_without_the_schedulers_database() -> None:
    given = Point(1)
    assert await perform(move, given, by=2) == Point(3)
    assert await perform(Report.task, date(2030, 1, 1)) == date(2031, 1, 1)


async def test_the_task_runs_inside_a_job_also_with_options() -> None:
    assert await perform(whoami) == [whoami.name, 1, True]
    assert await perform(whoami.options(delay="1h", queue="other")) == [whoami.name, 1, True]


async def test_the_test_itself_is_in_no_job_afterwards() -> None:
    before = current_run.get(None)
    await perform(move, Point(1))
    assert current_run.get(None) is before


async def test_what_it_raises_is_raised_here_at_the_first_try() -> None:
    with pytest.raises(LookupError, match="no") as caught:
        await perform(fail)
    assert any(entry.name == "fail" for entry in caught.traceback)


async def test_what_would_break_in_production_breaks() -> None:
    with pytest.raises(InvalidArguments, match="point"):
        await perform(move, "here")  # type: ignore[arg-type]
    with pytest.raises(ResultNotStored, match="as JSON"):
        await perform(opaque)
    with pytest.raises(JobFailed, match="timed out"):
        await perform(slow)


async def test_signals_come_out() -> None:
    with pytest.raises(Cancel):
        await perform(moody, "cancel")
    with pytest.raises(JobError, match="put its job back"):
        await perform(moody, "snooze")


def test_it_serves_blocking_callers_too() -> None:
    assert blocking.perform(move, Point(1)) == Point(2)


async def test_but_not_inside_a_loop() -> None:
    with pytest.raises(BlockingCallInLoop, match=r"await duetime\.testing\.perform"):
        blocking.perform(move, Point(1))


@scheduler.task(lock="reindex:{tenant}")
async def reindex(tenant: str) -> bool:
    return current_job().lock_fence is not None


async def test_a_task_with_a_lock_holds_one_that_no_one_else_wants() -> None:
    first, second = await asyncio.gather(perform(reindex, "a"), perform(reindex, "a"))
    assert (first, second) == (True, True)


def refuse() -> None:
    raise PermissionError("not now")


@scheduler.task
async def refused(word: str = Depends(refuse)) -> str:
    return word


async def test_an_error_of_a_dependency_comes_out() -> None:
    with pytest.raises(PermissionError, match="not now"):
        await perform(refused)


async def test_a_dependency_is_overridden_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scheduler.dependency_overrides, refuse, lambda: "fine")
    assert await perform(refused) == "fine"
