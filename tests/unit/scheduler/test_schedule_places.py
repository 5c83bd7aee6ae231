"""Where a schedule goes on from, and how many jobs it may still make, after it was changed, paused or skipped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, State, every
from duetime.model.schedule.record import StoredSchedule
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.testing.clock import FakeClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
async def scheduler(clock: FakeClock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler("sqlite://", clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    async with scheduler:
        yield scheduler


async def fire(scheduler: Scheduler, clock: FakeClock, *, minutes: int) -> None:
    """Let so many minutes pass, and all schedules fire in each."""
    for _ in range(minutes):
        clock.advance("1m")
        await ScheduleFirer(scheduler.store, ServiceHealth()).round()


async def stored(scheduler: Scheduler) -> StoredSchedule:
    [found] = await scheduler.store.get_schedules(["s"])
    return found


async def runs(scheduler: Scheduler) -> int:
    return sum(job.state is State.PENDING for job in await scheduler.jobs.list(schedule="s"))


async def test_a_new_trigger_counts_its_jobs_anew(scheduler: Scheduler, clock: FakeClock) -> None:
    await scheduler.schedules.put("s", every("1m"), "work", overlap="allow")
    await fire(scheduler, clock, minutes=4)
    await scheduler.schedules.edit("s", trigger=every("1m").at_most(3))
    await fire(scheduler, clock, minutes=5)
    assert (await runs(scheduler), (await scheduler.schedules.get("s")).state) == (7, "ended")
    await scheduler.schedules.put("s", every("2m", times=2), "work", overlap="allow")
    await fire(scheduler, clock, minutes=8)
    assert (await runs(scheduler), (await stored(scheduler)).made) == (9, 2)


async def test_what_was_planted_for_an_old_trigger_is_not_taken_off_the_count_of_the_new(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.schedules.put("s", every("1m"), "work", overlap="allow")
    clock.advance("59.5s")
    await ScheduleFirer(scheduler.store, ServiceHealth()).round()
    assert (await stored(scheduler)).made == 1
    await scheduler.schedules.edit("s", trigger=every("1m", times=2))
    assert (await stored(scheduler)).made == 0
    await fire(scheduler, clock, minutes=5)
    assert await runs(scheduler) == 2


@pytest.mark.parametrize("verb", ["resume", "edit", "put"])
async def test_a_schedule_that_has_made_all_its_jobs_has_missed_none(
    scheduler: Scheduler, clock: FakeClock, verb: str
) -> None:
    await scheduler.schedules.put("s", every("1m", times=2), "work", overlap="allow")
    await fire(scheduler, clock, minutes=2)
    await scheduler.schedules.pause("s")
    clock.advance("7d")
    match verb:
        case "resume":
            await scheduler.schedules.resume("s")
            assert (await scheduler.schedules.get("s")).state == "ended"
        case "edit":
            await scheduler.schedules.edit("s", trigger=every("1h"))
        case _:
            await scheduler.schedules.put("s", every("1h"), "work")
    assert [job.state for job in await scheduler.jobs.list(schedule="s")] == [State.PENDING] * 2


async def test_what_was_skipped_stays_skipped_over_a_pause(scheduler: Scheduler, clock: FakeClock) -> None:
    await scheduler.schedules.put("s", every("1m", times=2), "work", overlap="allow")
    assert await scheduler.schedules.skip("s") == NOON + MINUTE
    await scheduler.schedules.pause("s")
    await scheduler.schedules.resume("s")
    assert (await scheduler.schedules.get("s")).next_at == NOON + 2 * MINUTE
    await fire(scheduler, clock, minutes=5)
    assert await runs(scheduler) == 2


async def test_what_was_skipped_stays_skipped_when_a_new_trigger_has_it_first(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.schedules.put("s", every("2m"), "work", overlap="allow")
    await scheduler.schedules.skip("s")
    await scheduler.schedules.edit("s", trigger=every("2m", times=2))
    assert (await scheduler.schedules.get("s")).next_at == NOON + 4 * MINUTE
    await fire(scheduler, clock, minutes=9)
    assert await runs(scheduler) == 2


async def test_a_new_trigger_is_not_silenced_until_what_was_skipped(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.schedules.put("s", every("1h"), "work")
    await scheduler.schedules.skip("s")
    await scheduler.schedules.edit("s", trigger=every("7m"))
    assert (await scheduler.schedules.get("s")).next_at == NOON + 7 * MINUTE
