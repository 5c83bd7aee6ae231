"""Which jobs a client may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Scheduler, State
from duetime.errors import InvalidOption, InvalidTime
from duetime.model.ids import last_id_of, new_job_id
from duetime.model.time import DAY, MINUTE, SystemClock
from duetime.testing import FakeClock


@pytest.fixture
async def scheduler(sqlite_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def greet() -> None: ...


async def test_jobs_are_listed_in_one_of_several_states(scheduler: Scheduler) -> None:
    task = scheduler.task(name="greet")(greet)
    waiting, cancelled = await task.enqueue(), await task.enqueue()
    await scheduler.jobs.cancel(cancelled.id)

    async def listed(*states: Any) -> list[str]:
        return [job.id for job in await scheduler.jobs.list(state=states)]

    assert await listed("pending", State.CANCELLED) == [cancelled.id, waiting.id]
    assert await listed("cancelled", "failed") == [cancelled.id]
    assert [job.id for job in await scheduler.jobs.list(state="pending")] == [waiting.id]
    assert (await scheduler.jobs.delete_many(state=["cancelled", "failed"])).deleted == 1


async def test_jobs_are_listed_that_were_enqueued_before(scheduler: Scheduler, clock: FakeClock) -> None:
    task = scheduler.task(name="greet")(greet)
    old = await task.enqueue()
    clock.advance("1h")
    await task.enqueue()
    moment = datetime.fromtimestamp(clock.now() / 1_000_000, UTC)
    for until in (moment, "30m", timedelta(minutes=30)):
        assert [job.id for job in await scheduler.jobs.list(until=until)] == [old.id]
    assert await scheduler.jobs.list(until="2h") == []
    assert len(await scheduler.jobs.list(since="2h", until=moment + timedelta(seconds=1))) == 2


async def test_pages_go_on_below_a_time(scheduler: Scheduler, clock: FakeClock) -> None:
    task = scheduler.task(name="greet")(greet)
    ids = [(await task.enqueue()).id for _ in range(5)]
    clock.advance("1h")
    await task.enqueue()
    first = await scheduler.jobs.list(until="30m", limit=3)
    rest = await scheduler.jobs.list(until="30m", limit=3, cursor=first.cursor)
    assert [job.id for job in (*first, *rest)] == ids[::-1]


@pytest.mark.parametrize("state", [[], ["failed", "lost"], [3], "lost", ("",)])
async def test_states_that_are_none_are_refused(scheduler: Scheduler, state: Any) -> None:
    with pytest.raises(InvalidOption, match="state"):
        await scheduler.jobs.list(state=state)


async def test_a_time_without_a_zone_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTime, match="until"):
        await scheduler.jobs.list(until=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point


def test_no_id_that_was_made_before_a_time_is_larger_than_its_last_one() -> None:
    now = SystemClock().now()
    last = last_id_of(now, now=now)
    assert last is not None
    assert new_job_id() < last < f"{(now + 2 * DAY) // 1_000:012x}"
    # By a clock that is far from that of the ids nothing can be told.
    assert last_id_of(now, now=now - DAY) is None
    assert last_id_of(now, now=now + MINUTE) is not None
