"""Schedules through changes of the clock, and expressions that mean something else elsewhere, on each store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from duetime import Scheduler, cron
from duetime.errors import InvalidCron
from duetime.model.triggers import zones
from duetime.model.triggers.zones import Zone
from duetime.testing import FakeClock, drain


async def runs(store_url: str, expression: str, *, tz: str, start: datetime) -> list[str]:
    """Run a schedule for two days, and tell when its jobs were due, on the wall clock."""
    scheduler = Scheduler(store_url, clock=FakeClock(start))
    scheduler.schedule(cron(expression, tz=tz), name="s")(scheduler.task(name="report")(report))
    async with scheduler:
        await scheduler.put_declared()
        await drain(scheduler, until="2d")
        jobs = await scheduler.jobs.list(schedule="s", state="succeeded", limit=1_000)
    due = sorted(job.due_at for job in jobs)
    return [moment.astimezone(ZoneInfo(tz)).isoformat().removesuffix(":00") for moment in due]


@pytest.mark.covers("clock-changes")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Europe/Berlin", "Africa/Lagos", "2026-03-29T01:30:00+00:00"),
        ("Africa/Lagos", "Europe/Berlin", "2026-03-29T01:00:00+00:00"),
    ],
)
async def test_a_process_with_new_zone_data_fires_by_the_new_rules(
    monkeypatch: pytest.MonkeyPatch, store_url: str, old: str, new: str, expected: str
) -> None:
    clock = FakeClock(datetime(2026, 3, 28, 12, tzinfo=UTC))
    for rules, next_at in ((old, None), (new, datetime.fromisoformat(expected))):
        # Both are an hour ahead in winter; one of them has no summer time.
        place = Zone(ZoneInfo(rules))
        place.key = "Europe/Berlin"
        monkeypatch.setattr(zones, "_load_zone", lambda _key, place=place: place)
        scheduler = Scheduler(store_url, clock=clock)
        scheduler.schedule(cron("30 2 * * *", tz="Europe/Berlin"), name="s")(
            scheduler.task(name="report")(report)
        )
        async with scheduler:
            await scheduler.put_declared()
            if next_at is not None:
                await drain(scheduler, until="1d")
                (job,) = await scheduler.jobs.list(schedule="s")
                assert job.due_at == next_at


async def report() -> None:
    """What the schedules of these tests run."""


@pytest.mark.covers("clock-changes")
@pytest.mark.parametrize(
    ("tz", "expression", "start", "expected"),
    [
        (
            "Europe/Berlin",
            "30 2 * * *",
            datetime(2026, 3, 28, 12, tzinfo=UTC),
            ["2026-03-29T03:00:00+02", "2026-03-30T02:30:00+02"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            datetime(2026, 10, 24, 12, tzinfo=UTC),
            ["2026-10-25T02:30:00+02", "2026-10-26T02:30:00+01"],
        ),
        (
            "Africa/Cairo",
            "0 0 * * *",
            datetime(2026, 4, 23, 12, tzinfo=UTC),
            ["2026-04-24T01:00:00+03", "2026-04-25T00:00:00+03"],
        ),
        (
            "Pacific/Apia",
            "0 9 * * *",
            datetime(2011, 12, 29, 12, tzinfo=UTC),
            ["2011-12-29T09:00:00-10", "2011-12-31T00:00:00+14", "2011-12-31T09:00:00+14"],
        ),
    ],
)
async def test_a_daily_schedule_runs_once_for_each_day(
    store_url: str, tz: str, expression: str, start: datetime, expected: list[str]
) -> None:
    assert await runs(store_url, expression, tz=tz, start=start) == expected


@pytest.mark.covers("clock-changes")
@pytest.mark.parametrize("start", [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)])
async def test_an_hourly_schedule_runs_every_hour(store_url: str, start: datetime) -> None:
    found = await runs(store_url, "15 * * * *", tz="Europe/Berlin", start=start)
    moments = [datetime.fromisoformat(text + ":00") for text in found]
    assert len(moments) == 48
    assert {later - before for before, later in pairwise(moments)} == {timedelta(hours=1)}


@pytest.mark.covers("seconds-first")
async def test_the_first_of_six_fields_is_the_second(store_url: str) -> None:
    start = datetime(2030, 1, 1, 12, tzinfo=UTC)
    found = await runs(store_url, "30 0 9 * * *", tz="UTC", start=start)
    assert found == ["2030-01-02T09:00:30+00", "2030-01-03T09:00:30+00"]


@pytest.mark.covers("never-comes")
@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 61 * * *", "* * * *"])
async def test_a_refused_expression_leaves_nothing_behind(store_url: str, expression: str) -> None:
    scheduler = Scheduler(store_url)
    async with scheduler:
        with pytest.raises(InvalidCron, match=r"\^"):
            scheduler.schedule(cron(expression), name="s")(report)
        await scheduler.put_declared()
        assert await scheduler.schedules.list() == []
