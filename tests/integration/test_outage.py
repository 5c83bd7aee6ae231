"""A week without any process, and five hundred schedules for every minute: the return takes bounded work."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.statements import tapped
from duetime import Scheduler, cron
from duetime.model.instants import SECOND
from duetime.model.passed import MOST_WALKED
from duetime.model.triggers import Cron
from duetime.runtime import firing
from duetime.runtime.firing import ScheduleFirer
from duetime.runtime.health import ServiceHealth
from duetime.stores.base import Store
from duetime.testing import FakeClock, drain
from tests.integration.occurrences import records

SCHEDULES = 500
WEEK = 7 * 24 * 60
"""In minutes."""
POLICIES: list[dict[str, Any]] = [
    {},
    {"misfire": "skip", "misfire_window": "1s"},
    {"misfire": "all", "misfire_limit": 3},
    {"misfire": "all", "misfire_limit": 5, "overlap": "allow"},
    {
        "misfire": "all",
        "misfire_limit": 9,
        "misfire_window": "2m",
        "overlap": "queue_all",
        "overlap_limit": 1,
    },
]
MADE = [1, 0, 3, 5, 2]
"""How many jobs a schedule makes after a week, by its policy."""
MOST_ASKED = 300
"""How often a schedule may ask its trigger, however long the outage was."""


class Asked(Counter[str]):
    """How often triggers were asked what."""

    def __init__(self, patch: pytest.MonkeyPatch, *, can_count: bool = True) -> None:
        super().__init__()
        after, count = Cron.after, Cron.count

        def ask_after(trigger: Cron, instant: int) -> int | None:
            self["after"] += 1
            return after(trigger, instant)

        def ask_count(trigger: Cron, *stretch: int) -> int | None:
            self["count"] += 1
            return count(trigger, *stretch) if can_count else None

        patch.setattr(Cron, "after", ask_after)
        patch.setattr(Cron, "count", ask_count)


def declare(url: str, clock: FakeClock, *, schedules: int) -> Scheduler:
    """Schedules for every minute, in turn under each policy."""
    scheduler = Scheduler(url, clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    rule = cron("* * * * *", tz="Europe/Riga")
    for number in range(schedules):
        scheduler.schedule(rule, name=f"s{number}", **POLICIES[number % len(POLICIES)])(work)
    return scheduler


async def recover(store: Store, *, most: int) -> int:
    """Let one process fire until it may sleep; return how many rounds it took."""
    firer = ScheduleFirer(store, ServiceHealth())
    for number in range(1, most + 1):
        if (await firer.round() or 0) > 0.01:
            return number
    raise AssertionError(f"it is not through after {most} rounds")


async def test_a_week_of_five_hundred_minute_schedules_is_made_up_for_as_each_policy_says(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "_BREATH", 3600 * SECOND)
    clock = FakeClock()
    scheduler = declare(store_url, clock, schedules=SCHEDULES)
    await drain(scheduler)
    clock.advance("7d")
    clock.advance("30s")
    async with scheduler:
        sent, asked = tapped(scheduler.store), Asked(monkeypatch)
        full = -(-SCHEDULES // firing.LIMIT)
        rounds = await recover(scheduler.store, most=full + 2)
        written = Counter(name for _, kind, name in sent if kind == "write")
        assert asked.total() <= SCHEDULES * MOST_ASKED
        assert written == {"fire": full, "enqueue_rich": full}
        assert len(sent) <= 4 * rounds + 2
        for number in range(SCHEDULES):
            missed, *made = await records(scheduler.store, f"s{number}")
            assert (missed.reason, missed.span_count) == ("misfire", WEEK - len(made))
            assert len(made) == MADE[number % len(MADE)]
            assert {job.state.value for job in made} <= {"pending"}
        ran = await drain(scheduler, most=SCHEDULES * 10)
        assert len(ran) == SCHEDULES // len(MADE) * sum(MADE)


async def test_triggers_that_cannot_count_are_walked_a_bounded_stretch_at_a_time(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = len(POLICIES)
    clock = FakeClock()
    scheduler = declare(store_url, clock, schedules=few)
    await drain(scheduler)
    clock.advance("7d")
    clock.advance("30s")
    async with scheduler:
        asked = Asked(monkeypatch, can_count=False)
        firer = ScheduleFirer(scheduler.store, ServiceHealth())
        assert await firer.round() == pytest.approx(0.001)
        assert asked["after"] <= few * (MOST_WALKED + 100)
        for number in range(few):
            (missed,) = await records(scheduler.store, f"s{number}")
            assert (missed.reason, missed.span_count) == ("misfire", MOST_WALKED)
        await recover(scheduler.store, most=3)
        for number in range(few):
            first, second, *made = await records(scheduler.store, f"s{number}")
            assert first.span_count + second.span_count + len(made) == WEEK
            assert len(made) == MADE[number]
