"""What speaks for keeping a record."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.job import FOREVER
from duetime.model.retention import (
    Remains,
    Retention,
    check_keep_per_schedule,
    is_latest,
    is_over,
    note_on,
)
from duetime.model.states import State
from duetime.model.time import SECOND

NOW = 1_000
OLD = 100
RETENTION = Retention(before=500)

REMAINS: dict[str, Any] = {
    "id": "j1",
    "state": State.SUCCEEDED,
    "finished_at": OLD,
    **dict.fromkeys(("result_ttl", "failure_ttl", "keep_key", "key_until", "schedule", "occurrence")),
    "has_more": True,
}


def remains(**changes: Any) -> Remains:
    return Remains(**REMAINS | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"finished_at": 500},
        {"result_ttl": FOREVER},
        {"result_ttl": NOW - OLD + 1},
        {"state": State.FAILED, "failure_ttl": FOREVER},
        {"keep_key": NOW - OLD + 1},
        {"key_until": NOW + 1},
    ],
)
def test_age_terms_and_keys_speak_for_a_record(changes: dict[str, Any]) -> None:
    assert RETENTION.covers(remains(), now=NOW)
    assert not RETENTION.covers(remains(**changes), now=NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"finished_at": 499},
        {"result_ttl": NOW - OLD},
        {"failure_ttl": FOREVER},
        {"state": State.FAILED, "result_ttl": FOREVER},
        {"state": State.CANCELLED, "result_ttl": FOREVER, "failure_ttl": FOREVER},
        {"keep_key": NOW - OLD},
        {"key_until": NOW},
    ],
)
def test_what_does_not_concern_it_or_is_over_does_not(changes: dict[str, Any]) -> None:
    assert RETENTION.covers(remains(**changes), now=NOW)


def test_without_an_age_nothing_goes() -> None:
    assert not Retention(before=None).covers(remains(), now=NOW)


def test_the_latest_occurrences_of_a_schedule_are_those_from_the_first_on() -> None:
    firsts = {"s": 5, "few": None}
    assert [is_latest(remains(schedule="s", occurrence=n), firsts) for n in (4, 5, 6)] == [False, True, True]
    assert is_latest(remains(schedule="few", occurrence=1), firsts)
    assert not is_latest(remains(schedule="other", occurrence=9), firsts)
    assert not is_latest(remains(schedule="s"), firsts)
    assert not is_latest(remains(), firsts)


def test_a_time_to_live_ends_at_its_end() -> None:
    assert [is_over(OLD, 5, now=OLD + n) for n in (4, 5)] == [False, True]
    assert is_over(OLD, 0, now=OLD)
    assert not is_over(OLD, FOREVER, now=NOW)
    assert not is_over(OLD, None, now=NOW)


def test_the_note_says_how_long_a_result_was_there() -> None:
    assert note_on(State.SUCCEEDED, 0) == "its result is not kept"
    assert note_on(State.SUCCEEDED, 90 * SECOND) == "its result was kept for 1 minute 30 seconds only"
    assert note_on(State.FAILED, 90 * SECOND) is None


@pytest.mark.parametrize("number", [-1, 1.5, True, "3", 10_001, None])
def test_a_number_that_is_none_is_refused(number: Any) -> None:
    with pytest.raises(InvalidOption, match="keep_per_schedule must be a whole number from 0"):
        check_keep_per_schedule(number)
