from __future__ import annotations

from datetime import UTC, datetime

from duetime.model.time import from_datetime
from duetime.model.triggers.at import at
from duetime.model.triggers.cron import cron
from duetime.model.triggers.preview import Upcoming, preview


def test_a_preview_tells_each_time_in_utc_and_in_the_zone_with_its_note() -> None:
    rule = cron("30 2 * * *", tz="Europe/Berlin")
    start = from_datetime(datetime(2025, 3, 29, tzinfo=UTC))
    found = preview(rule, after=start, count=2)
    assert [one.at.isoformat() for one in found] == ["2025-03-29T01:30:00+00:00", "2025-03-30T01:00:00+00:00"]
    assert [one.local.isoformat() for one in found] == [
        "2025-03-29T02:30:00+01:00",
        "2025-03-30T03:00:00+02:00",
    ]
    assert found[0].note is None
    assert found[1].note == "02:30 does not exist on this day (clocks go forward); runs at 03:00"


def test_a_preview_ends_where_the_trigger_ends() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert preview(at(moment), after=0, count=10) == [Upcoming(at=moment, local=moment, due_at=moment)]
    assert preview(at(moment), after=from_datetime(moment), count=10) == []
