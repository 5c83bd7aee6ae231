"""A week without any process, and five hundred schedules for every minute: the return takes bounded work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from benchmarks.statements import tapped
from duetime import Scheduler, cron
from duetime.calendars import blackout, days_off, holidays, weekends
from duetime.model.schedule.occurrences import MOST_STEPS, MOST_WALKED
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.cron_fields import CronFields
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ROUND_LIMIT, ScheduleFirer
from duetime.stores.base import Store
from duetime.testing import FakeClock, drain
from tests.integration.occurrences import records
from tests.support.triggers import walk

pytestmark = pytest.mark.usefixtures("unhurried")

EVERY_MINUTE = cron("* * * * *", tz="Europe/Riga")
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


def declare(
    url: str, clock: FakeClock, *, schedules: int, rules: Sequence[Trigger] = (EVERY_MINUTE,)
) -> Scheduler:
    """Schedules for every minute or another rule, in turn under each policy."""
    scheduler = Scheduler(url, clock=clock)

    @scheduler.task(name="work")
    async def work() -> None: ...

    for number in range(schedules):
        rule = rules[number // len(POLICIES) % len(rules)]
        scheduler.schedule(rule, name=f"s{number}", **POLICIES[number % len(POLICIES)])(work)
    return scheduler


def note_steps(patch: pytest.MonkeyPatch) -> Counter[str]:
    """Return what counts how often cron rules search or count."""
    steps = Counter[str]()

    def note(name: str) -> None:
        original = getattr(CronFields, name)

        def noted(fields: CronFields, *walls: int) -> object:
            steps[name] += 1
            return original(fields, *walls)

        patch.setattr(CronFields, name, noted)

    note("first_from")
    note("count")
    return steps


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
    clock = FakeClock()
    scheduler = declare(store_url, clock, schedules=SCHEDULES)
    await drain(scheduler)
    clock.advance("7d")
    clock.advance("30s")
    async with scheduler:
        sent, asked = tapped(scheduler.store), Asked(monkeypatch)
        full = -(-SCHEDULES // ROUND_LIMIT)
        rounds = await recover(scheduler.store, most=full + 2)
        written = Counter(name for _, kind, name in sent if kind == "write")
        assert asked.total() <= SCHEDULES * MOST_ASKED
        # On Redis the call that moves schedules on stores their jobs as well.
        stores_jobs = {} if scheduler.url.startswith("redis") else {"enqueue": full}
        assert written == {"fire": full, **stores_jobs}
        assert len(sent) <= 4 * rounds + 2
        for number in range(SCHEDULES):
            missed, *made = await records(scheduler.store, f"s{number}")
            assert (missed.reason, missed.span_count) == ("misfire", WEEK - len(made))
            assert len(made) == MADE[number % len(MADE)]
            assert {job.state.value for job in made} <= {"pending"}
        ran = await drain(scheduler, most=SCHEDULES * 10)
        assert len(ran) == SCHEDULES // len(MADE) * sum(MADE)


async def test_triggers_that_cannot_count_are_walked_a_bounded_period_at_a_time(
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
        await recover(scheduler.store, most=2 + WEEK // MOST_WALKED)
        for number in range(few):
            told = await records(scheduler.store, f"s{number}")
            assert sum(job.span_count for job in told) == WEEK
            assert sum(job.reason is None for job in told) == MADE[number]


COMBINED: dict[str, list[Trigger]] = {
    "counted": [
        EVERY_MINUTE.jitter("10s").at_most(10**6),
        EVERY_MINUTE.between(datetime(2024, 1, 3, tzinfo=UTC)),
    ],
    "walked": [
        EVERY_MINUTE | cron("* 3 * * *"),
        EVERY_MINUTE & cron("* 1-22 * * *"),
        EVERY_MINUTE - days_off([date(2024, 1, 3)]),
        EVERY_MINUTE - blackout("22:00", "06:00") - holidays([date(2024, 1, 6)]),
        EVERY_MINUTE.jitter("10s").at_most(10**6) - weekends(),
    ],
}


@pytest.mark.parametrize(("kind", "most"), [("counted", 400), ("walked", MOST_STEPS + 500)])
async def test_combined_triggers_are_made_up_for_in_bounded_steps_and_every_occurrence_is_accounted_for(
    store_url: str, monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    rules = COMBINED[kind]
    schedules = len(rules) * len(POLICIES)
    clock = FakeClock()
    scheduler = declare(store_url, clock, schedules=schedules, rules=rules)
    await drain(scheduler)
    before = clock.now()
    clock.advance("7d")
    clock.advance("30s")
    expected = [len(walk(rule, before, until=clock.now(), most=WEEK + 1)) for rule in rules]
    async with scheduler:
        steps = note_steps(monkeypatch)
        rounds = await recover(scheduler.store, most=2 if kind == "counted" else 20)
        assert steps.total() <= rounds * schedules * most
        for number in range(schedules):
            told = await records(scheduler.store, f"s{number}")
            assert sum(job.span_count for job in told) == expected[number // len(POLICIES)]
