"""Inline: what is enqueued has run when `enqueue` returns."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

import pytest

from duetime import Cancel, Scheduler, current_job
from duetime.errors import InvalidOption, StoreUnavailable
from duetime.model.states import State
from duetime.testing import FakeClock, hand, inline


@dataclass
class Point:
    x: int


@pytest.fixture
def scheduler(sqlite_url: str) -> Scheduler:
    return Scheduler(sqlite_url, clock=FakeClock())


async def test_a_task_has_run_through_json_when_enqueue_returns(scheduler: Scheduler) -> None:
    seen: list[object] = []

    @scheduler.task(name="take")
    async def take(point: Point) -> int:
        seen.append((point, current_job().task))
        return point.x

    given = Point(3)
    async with inline(scheduler):
        job = await take.enqueue(given)
        assert seen == [(Point(3), "take")]
        assert await job.result(timeout=1) == 3
    assert seen[0] is not given
    async with scheduler:
        later = await take.enqueue(given)
        assert (await later.record()).state is State.PENDING


async def test_what_a_task_raises_comes_out_of_enqueue_and_it_is_not_tried_again(
    scheduler: Scheduler,
) -> None:
    @scheduler.task(name="fail", retries=3)
    async def fail() -> None:
        raise LookupError("no")

    async with inline(scheduler):
        with pytest.raises(LookupError, match="no"):
            await fail.enqueue()
        (job,) = await scheduler.jobs.list()
        assert (job.state, job.error) == (State.FAILED, "LookupError: no")


async def test_a_task_inside_a_task_runs_at_once_and_passes_its_error_on(scheduler: Scheduler) -> None:
    story: list[str] = []

    @scheduler.task(name="inner")
    def inner(fail: bool) -> None:
        story.append("inner")
        if fail:
            raise LookupError("inside")

    @scheduler.task(name="outer")
    async def outer(fail: bool) -> None:
        story.append("outer begins")
        await inner.enqueue(fail)
        story.append("outer ends")

    async with inline(scheduler):
        await outer.enqueue(fail=False)
        assert story == ["outer begins", "inner", "outer ends"]
        with pytest.raises(LookupError, match="inside"):
            await outer.enqueue(fail=True)


async def test_a_task_inside_a_task_has_run_whoever_runs_it(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the outer task looks for jobs all the time, and so gets some of the inner ones.
    monkeypatch.setattr(hand, "_LOOK", 0)
    ended: list[int] = []

    @scheduler.task(name="inner")
    async def inner(number: int) -> None:
        await asyncio.sleep(0.01)
        ended.append(number)
        if number % 2:
            raise LookupError

    @scheduler.task(name="outer")
    async def outer() -> int:
        for number in range(20):
            with pytest.raises(LookupError) if number % 2 else contextlib.nullcontext():
                await inner.enqueue(number)
            assert ended == list(range(number + 1))
        return len(ended)

    async with inline(scheduler):
        job = await outer.enqueue()
        assert await job.result(timeout=1) == 20


async def test_a_task_that_asks_for_itself_under_its_own_key_does_not_wait_for_itself(
    scheduler: Scheduler,
) -> None:
    @scheduler.task(name="again")
    async def again() -> bool:
        return (await again.options(key="k").enqueue()).existing

    async with inline(scheduler):
        job = await again.options(key="k").enqueue()
        assert await job.result(timeout=1) is True


async def test_a_job_that_is_run_once_more_has_run_when_rerun_returns(scheduler: Scheduler) -> None:
    seen: list[int] = []

    @scheduler.task(name="take")
    async def take(number: int) -> None:
        seen.append(number)

    async with inline(scheduler):
        job = await take.enqueue(1)
        await scheduler.jobs.rerun(job.id)
    assert seen == [1, 1]


async def test_a_task_that_cancels_itself_has_not_failed(scheduler: Scheduler) -> None:
    @scheduler.task(name="give_up")
    async def give_up() -> None:
        raise Cancel("not today")

    async with inline(scheduler):
        job = await give_up.enqueue()
        assert (await job.record()).state is State.CANCELLED


async def test_a_delayed_job_stays_pending(scheduler: Scheduler) -> None:
    @scheduler.task(name="later")
    async def later() -> None:
        raise AssertionError("it ran")

    async with inline(scheduler):
        job = await later.options(delay="1h").enqueue()
        assert (await job.record()).state is State.PENDING


def test_it_serves_blocking_callers_too(scheduler: Scheduler) -> None:
    @scheduler.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    with inline(scheduler):
        assert double.sync.enqueue(4).result(timeout=1) == 8
    scheduler.sync.close()


async def test_twice_on_one_scheduler_is_refused(scheduler: Scheduler) -> None:
    async with inline(scheduler):
        with pytest.raises(InvalidOption, match="already"), inline(scheduler):
            pass
        assert scheduler.after_enqueue is not None
    async with inline(scheduler):
        with pytest.raises(InvalidOption, match="already"):
            await inline(scheduler).__aenter__()
    assert not scheduler.is_open
    with inline(scheduler):
        pass


async def test_a_scheduler_that_cannot_be_opened_is_left_as_it_was() -> None:
    unreachable = Scheduler("postgresql://nobody@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable):
        await inline(unreachable).__aenter__()
    with inline(unreachable):
        pass
