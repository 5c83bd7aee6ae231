"""Requests: what is stored, and what is refused without a trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import (
    InvalidArguments,
    InvalidDuration,
    InvalidTime,
    JobNotFound,
    KeyTaken,
    NotOpen,
    PayloadTooLarge,
)
from duetime.model.states import State
from duetime.testing import FakeClock

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    clock = FakeClock()
    clock.set(NOON)
    async with Scheduler(sqlite_url, clock=clock) as opened:
        yield opened


def send(user: int, text: str = "hello") -> None: ...


async def test_a_job_is_due_now_unless_it_says_otherwise(scheduler: Scheduler) -> None:
    handle = await scheduler.task(send).enqueue(1)
    record = await scheduler.jobs.get(handle.id)
    assert (record.state, record.due_at, record.arguments) == (State.PENDING, NOON, {"user": 1})


async def test_a_delay_counts_from_the_stores_clock(scheduler: Scheduler) -> None:
    handle = await scheduler.task(send).options(delay="1.5s").enqueue(1)
    assert (await handle.record()).due_at == NOON + timedelta(seconds=1.5)


@pytest.mark.covers("zones-and-naive-times")
async def test_the_same_moment_in_any_zone_is_the_same_due_time(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    there = timezone(timedelta(hours=5, minutes=30))
    for moment in (NOON, NOON.astimezone(there)):
        handle = await task.options(at=moment).enqueue(1)
        assert (await handle.record()).due_at == NOON


@pytest.mark.covers("zones-and-naive-times")
async def test_a_naive_time_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTime, match="no time zone"):
        scheduler.task(send).options(at=datetime(2030, 6, 1))  # noqa: DTZ001 - that is the point


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "soon", True, "-3s", 10**12])
@pytest.mark.covers("unchecked-request")
async def test_a_delay_that_is_none_is_refused(scheduler: Scheduler, delay: Any) -> None:
    with pytest.raises(InvalidDuration, match="delay"):
        scheduler.task(send).options(delay=delay)


@pytest.mark.covers("failed-enqueue")
@pytest.mark.parametrize(
    ("args", "kwargs", "part"),
    [
        ((), {}, "user"),
        ((1, "a", 2), {}, "too many"),
        ((1,), {"txet": "a"}, "'txet'$"),
        (
            (1,),
            {"delay": 5},
            r"'delay'; delay is an option: task\.options\(delay=\.\.\.\)\.enqueue\(\.\.\.\)",
        ),
        (("one",), {}, "user"),
        ((1, b"bytes" * 3), {"user": 2}, "user"),
        ((1.5,), {}, "user"),
    ],
)
async def test_arguments_that_do_not_fit_store_nothing(
    scheduler: Scheduler, args: tuple[Any, ...], kwargs: dict[str, Any], part: str
) -> None:
    task = scheduler.task(send)
    with pytest.raises(InvalidArguments, match=part):
        await task.enqueue(*args, **kwargs)
    assert await scheduler.jobs.list() == []


@pytest.mark.covers("failed-enqueue", "unchecked-request")
async def test_one_bad_request_of_many_stores_none(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    with pytest.raises(PayloadTooLarge, match="reference"):
        await scheduler.enqueue_many([task.call(1), task.call(2, "x" * 300_000)])
    assert await scheduler.jobs.list() == []


async def test_many_requests_are_stored_in_their_order(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    handles = await scheduler.enqueue_many([task.call(n) for n in range(5)])
    listed = await scheduler.jobs.list()
    assert [job.id for job in reversed(listed)] == [handle.id for handle in handles]


async def test_an_unknown_job_is_not_found(scheduler: Scheduler) -> None:
    with pytest.raises(JobNotFound):
        await scheduler.jobs.get("0" * 32)
    with pytest.raises(JobNotFound):
        await scheduler.jobs.cancel("0" * 32)


async def test_a_scheduler_that_is_not_open_says_how_to_open_it(sqlite_url: str) -> None:
    task = Scheduler(sqlite_url).task(send)
    with pytest.raises(NotOpen, match=r"`async with scheduler:`, .* FastAPI\(lifespan=scheduler\.lifespan\)"):
        await task.enqueue(1)


async def test_closing_once_after_opening_twice_keeps_it_open(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    async with scheduler:
        async with scheduler:
            pass
        assert await scheduler.jobs.list() == []
    with pytest.raises(NotOpen):
        await scheduler.jobs.list()


@pytest.mark.covers("key-conflict-is-told")
async def test_a_caller_that_waits_in_vain_is_told_where_to_look(scheduler: Scheduler) -> None:
    job = await scheduler.task(send).enqueue(1)
    with pytest.raises(
        TimeoutError, match=r"has not ended within 0\.01 seconds; `duetime explain` with its id says why"
    ):
        await job.result(timeout=0.01)


async def test_a_handle_tells_whether_the_job_was_there_before(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    first = await task.options(key="k").enqueue(1)
    second = await task.options(key="k").enqueue(1)
    assert [(handle.id, handle.existing) for handle in (first, second)] == [
        (first.id, False),
        (first.id, True),
    ]
    with pytest.raises(KeyTaken, match=first.id):
        await task.options(key="k", if_exists="raise").enqueue(1)


async def test_a_debounced_job_waits_from_the_last_request_on(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    first = await task.options(key="k", debounce="5s").enqueue(1)
    last = await task.options(key="k", debounce="8s").enqueue(2)
    record = await first.record()
    assert (last.id, last.existing) == (first.id, True)
    assert (record.arguments, record.due_at) == ({"user": 2}, NOON + timedelta(seconds=8))


async def test_many_calls_may_come_one_by_one(scheduler: Scheduler) -> None:
    task = scheduler.task(send)
    handles = await scheduler.enqueue_many(task.call(n) for n in range(3))
    assert {job.id for job in await scheduler.jobs.list()} == {handle.id for handle in handles}
    assert len(handles) == 3


@pytest.mark.parametrize(
    "wrong", [lambda task: task.call(1), lambda task: [task.call(1), 2], lambda _: "text"]
)
async def test_what_is_not_a_list_of_calls_is_refused(scheduler: Scheduler, wrong: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"enqueue_many\(\[task.call\(...\)"):
        await scheduler.enqueue_many(wrong(scheduler.task(send)))
    assert not await scheduler.jobs.list()


@pytest.mark.parametrize("wrong", ["text", None, [1]])
async def test_what_is_not_a_call_is_refused(scheduler: Scheduler, wrong: Any) -> None:
    with pytest.raises(InvalidArguments, match=r"enqueue\(task.call\(...\)\)"):
        await scheduler.enqueue(wrong)
    assert not await scheduler.jobs.list()
