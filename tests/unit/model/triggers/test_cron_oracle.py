"""Five fields against cronsim, an implementation by other hands."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from duetime.model.triggers import cron

RULES_PER_ZONE = 80
TIMES_PER_RULE = 20
# Not asked: half-hour changes, where cronsim loses the start of an hour, and gaps at midnight, where a rule with an
# open minute comes in hours it does not name.
STARTS = {
    "UTC": ["2024-02-27T20:00", "2024-12-31T23:59"],
    "Asia/Kathmandu": ["2024-06-30T12:00"],
    "Europe/Berlin": ["2024-03-30T20:00", "2024-10-26T20:00", "2024-07-01T00:00"],
    "Europe/Dublin": ["2024-03-30T20:00", "2024-10-26T20:00"],
    "America/New_York": ["2024-03-09T20:00", "2024-11-02T20:00"],
    "Australia/Sydney": ["2024-10-05T20:00", "2024-04-06T20:00"],
}


def random_field(rng: random.Random, low: int, high: int, *, openness: float) -> str:
    if rng.random() < openness:
        return rng.choice(["*", "*", f"*/{rng.randint(1, high - low)}"])
    return ",".join(random_item(rng, low, high) for _ in range(rng.randint(1, 3)))


def random_item(rng: random.Random, low: int, high: int) -> str:
    # Never a range of one value: cronsim reads 5-5/2 as 5/2.
    first = rng.randint(low, high - 1)
    last = rng.randint(first + 1, high)
    step = rng.randint(1, 5)
    return rng.choice([f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}"])


def random_expression(rng: random.Random) -> str:
    day = random_field(rng, 1, 28, openness=0.6)
    weekday = random_field(rng, 0, 7, openness=0.6)
    if rng.random() < 0.2:
        day, weekday = rng.choice([("L", "*"), ("LW", "*"), ("*", "5L"), ("*", "FRI#2"), ("1,L", "MON")])
    month = random_field(rng, 1, 12, openness=0.8)
    return f"{random_field(rng, 0, 59, openness=0.5)} {random_field(rng, 0, 23, openness=0.5)} {day} {month} {weekday}"


@pytest.mark.parametrize("tz", STARTS)
def test_random_rules_come_when_cronsim_says(tz: str) -> None:
    rng, zone = random.Random(f"cron {tz}"), ZoneInfo(tz)
    for _ in range(RULES_PER_ZONE):
        expression = random_expression(rng)
        moment = datetime.fromisoformat(rng.choice(STARTS[tz])).replace(tzinfo=zone)
        oracle, trigger, begin = CronSim(expression, moment), cron(expression, tz=tz), moment
        expected, found = [], []
        for _ in range(TIMES_PER_RULE):
            expected.append(next(oracle).astimezone(UTC))
            following = trigger.next_after(moment)
            assert following is not None
            moment = following
            found.append(moment)
        assert found == expected, f"{expression!r} after {begin}"
