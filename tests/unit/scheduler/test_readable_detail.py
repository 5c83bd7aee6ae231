from __future__ import annotations

from datetime import UTC, datetime, timedelta

from duetime import cron
from duetime.model.job import FOREVER, JobTerms
from duetime.model.time import SECOND, from_datetime
from duetime.model.triggers.specs import trigger_to_text
from duetime.scheduler.records import readable_detail

MOMENT = datetime(2030, 1, 31, 3, tzinfo=UTC)
INSTANT = from_datetime(MOMENT)


def test_what_was_said_is_told_and_what_was_not_is_left_out() -> None:
    assert readable_detail({"reason": "moving", "until": None}) == {"reason": "moving"}
    assert readable_detail({"until": INSTANT, "job": "j"}) == {"until": MOMENT, "job": "j"}
    assert readable_detail({"start": INSTANT, "end": INSTANT}) == {"start": MOMENT, "end": MOMENT}


def test_fields_that_differ_are_told_as_a_record_has_them() -> None:
    nightly = trigger_to_text(cron("0 3 * * *"))
    assert readable_detail(
        {
            "trigger": [nightly, None],
            "payload": ['{"days":3}', "{}"],
            "timeout": [None, 90 * SECOND],
            "parked_at": [INSTANT, None],
            "queue": ["default", "slow"],
        }
    ) == {
        "trigger": ["at 03:00 every day, UTC", None],
        "arguments": [{"days": 3}, {}],
        "timeout": [None, timedelta(seconds=90)],
        "parked_at": [MOMENT, None],
        "queue": ["default", "slow"],
    }


def test_terms_are_told_one_by_one_if_they_differ() -> None:
    before = JobTerms(tags=("a",), expires=SECOND, result_ttl=FOREVER)
    after = JobTerms(tags=("a", "b"), expires=SECOND)
    assert readable_detail({"terms": [before.to_text(), after.to_text()]}) == {
        "tags": [["a"], ["a", "b"]],
        "result_ttl": ["forever", None],
    }
    assert readable_detail({"terms": [before.to_text(), None]})["tags"] == [["a"], []]


def test_a_trigger_that_cannot_be_read_is_said_to_be_so() -> None:
    assert "cannot be read" in readable_detail({"trigger": ['{"type": "moon"}', None]})["trigger"][0]
