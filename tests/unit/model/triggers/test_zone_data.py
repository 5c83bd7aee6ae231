"""Zone data that changes while a schedule lives: the next time is computed by the new rules, from the last one fired."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from duetime.model.time import from_datetime
from duetime.model.triggers import zones
from duetime.model.triggers.specs import trigger_from_spec
from duetime.model.triggers.zones import Zone

TZ = "Europe/Berlin"
# A land that had Berlin's clock and gives summer time up, or had Lagos's and takes it up: one hour ahead in winter.
WITH_SUMMER, WITHOUT = "Europe/Berlin", "Africa/Lagos"


@pytest.mark.parametrize(
    ("expression", "fired", "before", "after"),
    [
        (
            "30 2 * * *",
            "2030-03-30T02:30+01:00",
            (WITH_SUMMER, "2030-03-31T03:00+02:00"),
            (WITHOUT, "2030-03-31T02:30+01:00"),
        ),
        (
            "30 2 * * *",
            "2030-03-30T02:30+01:00",
            (WITHOUT, "2030-03-31T02:30+01:00"),
            (WITH_SUMMER, "2030-03-31T03:00+02:00"),
        ),
        (
            "0 9 * * *",
            "2030-06-01T09:00+02:00",
            (WITH_SUMMER, "2030-06-02T09:00+02:00"),
            (WITHOUT, "2030-06-01T09:00+01:00"),
        ),
        (
            "0 9 * * *",
            "2030-06-01T09:00+01:00",
            (WITHOUT, "2030-06-02T09:00+01:00"),
            (WITH_SUMMER, "2030-06-02T09:00+02:00"),
        ),
        (
            "*/30 * * * *",
            "2030-10-27T02:30+02:00",
            (WITH_SUMMER, "2030-10-27T02:00+01:00"),
            (WITHOUT, "2030-10-27T02:00+01:00"),
        ),
        (
            "30 2 * * *",
            "2030-10-27T01:00+02:00",
            (WITH_SUMMER, "2030-10-27T02:30+02:00"),
            (WITHOUT, "2030-10-27T02:30+01:00"),
        ),
    ],
)
def test_the_next_time_goes_by_the_new_rules(
    monkeypatch: pytest.MonkeyPatch,
    expression: str,
    fired: str,
    before: tuple[str, str],
    after: tuple[str, str],
) -> None:
    stored = {"type": "cron", "expression": expression, "tz": TZ}
    for rules, expected in (before, after):
        place = zone_like(rules)
        monkeypatch.setattr(zones, "_load_zone", lambda _key, place=place: place)
        assert trigger_from_spec(stored).to_spec() == stored
        assert trigger_from_spec(stored).after(instant(fired)) == instant(expected)


def zone_like(key: str) -> Zone:
    """Our zone, with the rules of another."""
    place = Zone(ZoneInfo(key))
    place.key = TZ
    return place


def instant(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))
