"""Five fields against cronsim, an implementation by other hands."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from duetime.errors import InvalidCron
from duetime.model.triggers.cron import cron

RULES_OF_EVERY_KIND = 3_000
RULES_PER_ZONE = 300
TIMES_PER_RULE = 12
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
# Not asked, because cronsim means or does something else there:
# - six fields, which it lets skip the gap and repeat in the overlap whatever they say;
# - half-hour changes, where it loses the start of an hour, and gaps at midnight, where a rule with an open minute
#   comes in hours it does not name;
# - `15W`, `H`, macros and a zone in front, which it does not know, and `FRIL`, which it writes as `5L`;
# - steps of a range of one value, where it reads 5-5/2 as 5/2, and steps wider than the field, which we refuse.
STARTS = {
    "UTC": ["2024-02-27T20:00", "2024-12-31T23:59"],
    "Asia/Kathmandu": ["2024-06-30T12:00"],
    "Europe/Berlin": ["2024-03-30T20:00", "2024-10-26T20:00", "2024-07-01T00:00"],
    "Europe/Dublin": ["2024-03-30T20:00", "2024-10-26T20:00"],
    "America/New_York": ["2024-03-09T20:00", "2024-11-02T20:00"],
    "Australia/Sydney": ["2024-10-05T20:00", "2024-04-06T20:00"],
    "Antarctica/Troll": ["2024-03-30T20:00", "2024-10-26T12:00"],
    "Pacific/Auckland": ["2024-09-28T20:00", "2024-04-06T20:00"],
}


def random_field(rng: random.Random, low: int, high: int, *, openness: float) -> str:
    if rng.random() < openness:
        return rng.choice(["*", "*", f"*/{rng.randint(1, high - low)}"])
    return ",".join(random_item(rng, low, high) for _ in range(rng.randint(1, 3)))


def random_item(rng: random.Random, low: int, high: int) -> str:
    first = rng.randint(low, high - 1)
    last = rng.randint(first + 1, high)
    step = rng.randint(1, 5)
    return rng.choice([f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}"])


def random_time(rng: random.Random) -> str:
    return f"{random_field(rng, 0, 59, openness=0.5)} {random_field(rng, 0, 23, openness=0.5)}"


def random_days(rng: random.Random) -> str:
    """Day, month and weekday of every kind that both understand: also in names, and also dates that never come."""
    day = ",".join(
        rng.choice(["L", "LW", random_item(rng, 1, 31), random_item(rng, 28, 31)])
        for _ in range(rng.randint(1, 2))
    )
    month = rng.choice([random_field(rng, 1, 12, openness=0.3), _named(rng, MONTHS)])
    special = f"{rng.randint(0, 7)}L", f"{rng.choice(WEEKDAYS)}#{rng.randint(1, 5)}", f"{rng.randint(0, 7)}#1"
    weekday = rng.choice(
        [random_field(rng, 0, 7, openness=0.3), _named(rng, WEEKDAYS), ",".join(rng.sample(special, 2))]
    )
    star = rng.choice(["*", "*", f"*/{rng.randint(1, 6)}"])
    return rng.choice([f"{day} {month} {weekday}", f"{day} {month} {star}", f"{star} {month} {weekday}"])


def _named(rng: random.Random, names: list[str]) -> str:
    first, last = sorted(rng.sample(range(len(names)), 2))
    text = rng.choice([names[first], f"{names[first]},{names[last]}", f"{names[first]}-{names[last]}"])
    return rng.choice([text, text.lower(), text.title()])


def compare(expression: str, start: datetime, tz: str) -> bool:
    """Tell whether the rule comes at all, which both have to agree about, as about its times."""
    try:
        oracle = CronSim(expression, start)
        expected = [next(oracle).astimezone(UTC) for _ in range(TIMES_PER_RULE)]
    except (CronSimError, StopIteration):
        with pytest.raises(InvalidCron):
            cron(expression, tz=tz)
        return False
    trigger, moment = cron(expression, tz=tz), start
    found: list[datetime] = []
    for _ in expected:
        following = trigger.next_after(moment)
        assert following is not None
        moment = following
        found.append(moment)
    assert found == expected, f"{expression!r} after {start}"
    return True


@pytest.mark.parametrize("part", range(4))
def test_random_rules_of_every_kind_come_when_cronsim_says(part: int) -> None:
    rng, start = random.Random(f"cron {part}"), datetime(2024, 2, 27, 20, tzinfo=UTC)
    comes = [
        compare(f"{random_time(rng)} {random_days(rng)}", start, "UTC")
        for _ in range(RULES_OF_EVERY_KIND // 4)
    ]
    assert False in comes, "no date that never comes was tried"
    assert comes.count(True) > RULES_OF_EVERY_KIND // 5


@pytest.mark.parametrize("tz", STARTS)
def test_random_rules_come_when_cronsim_says_around_the_clock_changes_of_a_zone(tz: str) -> None:
    rng, zone = random.Random(f"cron {tz}"), ZoneInfo(tz)
    for _ in range(RULES_PER_ZONE):
        day, weekday = random_field(rng, 1, 28, openness=0.6), random_field(rng, 0, 7, openness=0.6)
        if rng.random() < 0.2:
            day, weekday = rng.choice([("L", "*"), ("LW", "*"), ("*", "5L"), ("*", "FRI#2"), ("1,L", "MON")])
        expression = f"{random_time(rng)} {day} {random_field(rng, 1, 12, openness=0.8)} {weekday}"
        assert compare(expression, datetime.fromisoformat(rng.choice(STARTS[tz])).replace(tzinfo=zone), tz)
