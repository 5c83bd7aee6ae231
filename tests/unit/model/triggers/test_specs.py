from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.errors import InvalidTrigger
from duetime.model.triggers import Trigger, at, cron, every, from_spec

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 3 * * *"),
        cron("*/5 * * * * *", tz="Europe/Berlin"),
        cron("H H(2-5) * * *", seed="nightly"),
        cron("@every 15m"),
        every("15m"),
        every("15m", start=NOON, end=NOON.replace(year=2026), times=3),
        every("15m").anchored(5),
        at([NOON, NOON.replace(year=2026)]),
    ],
)
def test_a_trigger_survives_json(trigger: Trigger) -> None:
    restored = from_spec(json.loads(json.dumps(trigger.to_spec())))
    assert restored == trigger
    assert restored.next_after(NOON) == trigger.next_after(NOON)
    assert isinstance(restored, Trigger)


def test_the_stored_form_does_not_change() -> None:
    assert cron("H 3 * * *", tz="Asia/Tokyo", seed="a").to_spec() == {
        "type": "cron",
        "expression": "H 3 * * *",
        "tz": "Asia/Tokyo",
        "seed": "a",
    }
    assert every("15m", times=3).to_spec() == {"type": "every", "interval": 900_000_000, "times": 3}
    assert at(NOON).to_spec() == {"type": "at", "instants": [1_735_732_800_000_000]}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        "cron",
        {},
        {"type": None},
        {"type": ["cron"]},
        {"type": "rrule"},
        {"type": "cron"},
        {"type": "cron", "expression": 5},
        {"type": "cron", "expression": "61 * * * *"},
        {"type": "cron", "expression": "@every 5m"},
        {"type": "cron", "expression": "* * * * *", "tz": None},
        {"type": "cron", "expression": "* * * * *", "tz": "Mars/Olympus"},
        {"type": "cron", "expression": "* * * * *", "seed": 5},
        {"type": "cron", "expression": "* * * * *", "jitter": 5},
        {"type": "cron", "expression": "* * * * *", "_zone": None},
        {"type": "every"},
        {"type": "every", "interval": "15m"},
        {"type": "every", "interval": 999},
        {"type": "every", "interval": 10**30},
        {"type": "every", "interval": 1e6},
        {"type": "every", "interval": True},
        {"type": "every", "interval": 1_000_000, "start": "now"},
        {"type": "every", "interval": 1_000_000, "end": -1},
        {"type": "every", "interval": 1_000_000, "times": 0},
        {"type": "at"},
        {"type": "at", "instants": []},
        {"type": "at", "instants": 5},
        {"type": "at", "instants": ["now"]},
        {"type": "at", "instants": [True]},
        {"type": "at", "instants": [10**30]},
        {"type": "at", "instants": [1.5]},
    ],
)
def test_anything_else_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidTrigger):
        from_spec(spec)
