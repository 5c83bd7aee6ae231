"""`schedules.forecast`: the load to come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from duetime import Scheduler, cron, every
from duetime.errors import InvalidOption, InvalidZone
from duetime.model.schedule import forecast as looking
from duetime.model.schedule.forecast import Forecast
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.time import DAY, HOUR, from_datetime
from duetime.model.triggers.base import Trigger
from duetime.testing import FakeClock

SUNDAY = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
NOW = from_datetime(SUNDAY)


@asynccontextmanager
async def having(**triggers: Trigger) -> AsyncGenerator[Scheduler]:
    async with Scheduler("sqlite://", clock=FakeClock(SUNDAY)) as scheduler:
        await store(scheduler, triggers)
        yield scheduler


async def store(scheduler: Scheduler, triggers: Mapping[str, Trigger]) -> None:
    schedules = [
        StoredSchedule(
            name=name,
            task="work",
            payload="{}",
            trigger=msgspec.json.encode(trigger.seeded(name).anchored(NOW).to_spec()).decode(),
            declared="",
            fired_through=NOW,
            next_at=trigger.after(NOW),
        )
        for name, trigger in triggers.items()
    ]
    await scheduler.store.write_schedules(
        [ScheduleUpdate(before=None, after=schedule) for schedule in schedules]
    )


async def alter(scheduler: Scheduler, name: str, **values: object) -> None:
    [before] = await scheduler.store.get_schedules([name])
    change = ScheduleUpdate(before=before, after=replace(before, **values))  # type: ignore[arg-type]
    assert await scheduler.store.write_schedules([change]) == {name}


async def forecast(*, days: int = 7, tz: str = "UTC", **triggers: Trigger) -> Forecast:
    async with having(**triggers) as scheduler:
        return await scheduler.schedules.forecast(days=days, tz=tz)


async def test_the_jobs_of_all_schedules_are_counted_hour_by_hour() -> None:
    found = await forecast(nightly=cron("30 3 * * *"), quarter=cron("*/15 * * * *"))
    assert (found.jobs, found.schedules, found.at_least) == (7 + 7 * 96, 2, False)
    assert sum(hour.jobs for hour in found.hours) == found.jobs
    # From within the first hour to within the last.
    assert len(found.hours) == 7 * 24 + 1
    assert max(found.hours, key=lambda hour: hour.jobs).at.hour == 3


async def test_times_are_those_of_the_zone() -> None:
    found = await forecast(nightly=cron("0 3 * * *", tz="Europe/Riga"), tz="Europe/Riga")
    assert found.busiest[0].at.isoformat() == "2026-11-16T03:00:00+02:00"
    assert "from Sun 2026-11-15 14:00 to Sun 2026-11-22 14:00, Europe/Riga" in str(found)


async def test_all_that_the_text_says_is_in_the_values() -> None:
    nightly = {f"nightly-{n}": cron("0 3 * * *") for n in range(8)}
    async with having(**nightly, hourly=cron("0 * * * *"), off=cron("0 0 * * *")) as scheduler:
        await scheduler.schedules.pause("off")
        found = await scheduler.schedules.forecast()
    assert str(found).splitlines() == [
        "224 jobs of 9 schedules from Sun 2026-11-15 12:00 to Sun 2026-11-22 12:00, UTC",
        "",
        "                00    03    06    09    12    15    18    21",
        *(line for line in str(found).splitlines()[3:13]),
        "Busiest minutes",
        *(f"  {day} 03:00  9 jobs: hourly, nightly-0, nightly-1, nightly-2, nightly-3 and 4 more"
          for day in ("Mon 2026-11-16", "Tue 2026-11-17", "Wed 2026-11-18", "Thu 2026-11-19", "Fri 2026-11-20",
                      "Sat 2026-11-21", "Sun 2026-11-22")),
        "  Sun 2026-11-15 13:00  1 job: hourly",
        "  Sun 2026-11-15 14:00  1 job: hourly",
        "  Sun 2026-11-15 15:00  1 job: hourly",
        "",
        found.advice,
        "Left out, paused: off.",
    ]  # fmt: skip
    assert "Mon 2026-11-16  ::::::**" in str(found)
    assert (
        found.advice
        == "The busiest minute has 9 jobs. H in place of fixed minutes, or a jitter, would spread them."
    )
    assert found.peak == found.busiest[0].jobs == 9
    values = msgspec.to_builtins(found)
    assert values["busiest"][0]["schedules"] == 9
    assert values["left_out"] == {"off": "paused"}


async def test_hours_are_those_of_the_zones_wall_clock() -> None:
    found = await forecast(rule=cron("45 * * * *"), days=1, tz="Asia/Kolkata")
    assert [f"{hour.at:%d %H:%M}" for hour in found.hours[:2]] == ["15 17:00", "15 18:00"]
    assert [hour.jobs for hour in found.hours] == [0] + [1] * 24


async def test_an_hour_that_comes_twice_is_two_hours() -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    async with Scheduler("sqlite://", clock=FakeClock(start)) as scheduler:
        await store(scheduler, {"minutely": cron("* * * * *")})
        found = await scheduler.schedules.forecast(days=2, tz="Europe/Berlin")
    assert [hour.at.hour for hour in found.hours[:6]] == [0, 1, 2, 2, 3, 4]
    assert {hour.jobs for hour in found.hours[1:48]} == {60}


async def test_what_comes_too_often_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_STEPS", 10)
    found = await forecast(nightly=cron("0 3 * * *"), often=cron("*/10 * * * *"), days=1)
    assert (found.jobs, found.counted_only, found.at_least) == (1 + 144, ("often",), False)
    assert "spread evenly over each hour: often." in str(found)


async def test_a_minute_of_one_job_needs_no_advice() -> None:
    found = await forecast(nightly=cron("0 3 * * *"))
    assert (found.advice, found.peak) == ("The busiest minute has 1 job.", 1)


async def test_what_is_paused_or_parked_is_left_out_until_it_goes_on() -> None:
    hourly = cron("30 * * * *")
    async with having(stopped=hourly, gone=hourly, later=hourly, much_later=hourly) as scheduler:
        await alter(scheduler, "stopped", paused_at=NOW)
        await alter(scheduler, "gone", parked_at=NOW, next_at=None)
        await alter(scheduler, "later", paused_at=NOW, paused_until=NOW + 20 * HOUR)
        await alter(scheduler, "much_later", paused_at=NOW, paused_until=NOW + 2 * DAY)
        found = await scheduler.schedules.forecast(days=1)
    assert (found.schedules, found.jobs) == (1, 4)
    assert found.left_out == {"stopped": "paused", "gone": "parked", "much_later": "paused"}


async def test_a_schedule_that_may_come_only_so_often_counts_what_is_left() -> None:
    async with having(ten=every("1h", times=10)) as scheduler:
        await alter(scheduler, "ten", made=7)
        assert (await scheduler.schedules.forecast(days=7)).jobs == 3


async def test_a_trigger_that_cannot_be_read_hides_no_other() -> None:
    async with having(good=cron("0 3 * * *"), bad=cron("0 3 * * *")) as scheduler:
        await alter(scheduler, "bad", trigger='{"type": "moon"}')
        found = await scheduler.schedules.forecast(days=1)
    assert (found.jobs, found.left_out) == (1, {"bad": "it has a trigger that cannot be read"})


async def test_nothing_to_come_is_said_in_two_lines() -> None:
    text = str(await forecast())
    assert text.splitlines() == [
        "0 jobs of 0 schedules from Sun 2026-11-15 12:00 to Sun 2026-11-22 12:00, UTC",
        "",
        "Nothing falls due.",
    ]


@pytest.mark.parametrize("days", [0, 32, 1.5, True])
async def test_only_a_whole_number_of_days_up_to_a_month_can_be_looked_at(days: int) -> None:
    with pytest.raises(InvalidOption, match="days must be a whole number from 1 to 31"):
        await forecast(days=days)


async def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidZone, match="did you mean 'Europe/Riga'"):
        await forecast(tz="Europe/Rigga")


def test_a_blocking_caller_sees_the_load_to_come() -> None:
    scheduler = Scheduler("sqlite://", clock=FakeClock(SUNDAY))
    try:
        scheduler.sync.run(store(scheduler, {"nightly": cron("0 3 * * *")}))
        assert scheduler.sync.schedules.forecast(days=2).jobs == 2
    finally:
        scheduler.sync.close()
