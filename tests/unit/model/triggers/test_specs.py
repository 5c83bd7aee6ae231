from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.errors import InvalidTrigger
from duetime.model.triggers.at import at
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.specs import trigger_from_spec

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
DAILY = {"type": "cron", "expression": "0 9 * * *"}


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
    restored = trigger_from_spec(json.loads(json.dumps(trigger.to_spec())))
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
        {"type": "lunar"},
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
        {"type": "steps"},
        {"type": "steps", "months": 0},
        {"type": "steps", "months": 1, "missing": "first"},
        {"type": "steps", "months": 1, "tz": None},
        {"type": "steps", "months": 1, "start": "now"},
        {"type": "union"},
        {"type": "union", "parts": []},
        {"type": "union", "parts": DAILY},
        {"type": "union", "parts": [None]},
        {"type": "union", "parts": [DAILY] * 51},
        {"type": "union", "parts": [DAILY], "tz": "UTC"},
        {"type": "union", "parts": [{"type": "at_most", "trigger": DAILY, "most": 3}]},
        {"type": "intersection", "parts": "ab"},
        {"type": "except", "trigger": DAILY},
        {"type": "except", "trigger": DAILY, "calendar": None},
        {"type": "except", "trigger": DAILY, "calendar": DAILY},
        {"type": "except", "calendar": {"type": "weekdays", "days": [5]}},
        {"type": "between", "trigger": DAILY},
        {"type": "between", "trigger": DAILY, "start": 9, "end": 5},
        {"type": "between", "trigger": DAILY, "start": True},
        {"type": "at_most", "trigger": DAILY},
        {"type": "at_most", "trigger": DAILY, "most": 0},
        {"type": "at_most", "trigger": DAILY, "most": 3, "times": 9},
        {"type": "jitter", "trigger": DAILY, "most": "30s"},
        {"type": "jitter", "trigger": DAILY, "most": 0},
        {"type": "jitter", "trigger": DAILY, "most": 1_000, "seed": 5},
        {"type": "jitter", "trigger": "daily", "most": 1_000},
        {"type": "cron", "expression": "* * * * *", "trigger": DAILY},
        {"type": "cron", "expression": "* * * * *", "parts": [DAILY]},
    ],
)
def test_anything_else_is_refused(spec: Any) -> None:
    with pytest.raises(InvalidTrigger):
        trigger_from_spec(spec)


def test_a_spec_is_not_read_deeper_than_a_trigger_can_be() -> None:
    spec: dict[str, Any] = DAILY
    for _ in range(8):
        spec = {"type": "jitter", "trigger": spec, "most": 1_000}
    assert trigger_from_spec(spec).to_spec()["type"] == "jitter"
    for _ in range(10_000):
        spec = {"type": "jitter", "trigger": spec, "most": 1_000}
    with pytest.raises(InvalidTrigger, match="nested more than 8 deep"):
        trigger_from_spec(spec)


def test_a_spec_with_many_parts_in_many_parts_is_refused() -> None:
    inner = {"type": "intersection", "parts": [{"type": "every", "interval": 10**6 + n} for n in range(26)]}
    other = {"type": "intersection", "parts": [{"type": "every", "interval": 10**7 + n} for n in range(26)]}
    with pytest.raises(InvalidTrigger, match="from 1 to 50 parts, not 52"):
        trigger_from_spec({"type": "union", "parts": [inner, other]})
