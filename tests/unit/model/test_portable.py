from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.errors import InvalidCron, InvalidOption, InvalidTime, InvalidTrigger, InvalidValue
from duetime.model.calendars import weekends
from duetime.model.instants import SECOND, from_datetime
from duetime.model.portable import Pause, read, written
from duetime.model.schedule import StoredSchedule
from duetime.model.terms import FOREVER, Terms
from duetime.model.triggers import Trigger, at, cron, every, rrule

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
NIGHTLY: dict[str, Any] = {"name": "nightly", "task": "shop.tidy", "cron": "0 3 * * *"}


def stored(trigger: Trigger, **fields: Any) -> StoredSchedule:
    spec = json.dumps(trigger.seeded("nightly").to_spec())
    row = StoredSchedule(
        name="nightly",
        task="shop.tidy",
        payload='{"days":7}',
        trigger=spec,
        declared="",
        fired_through=0,
        next_at=None,
    )
    return replace(row, **fields)


def test_a_schedule_is_written_in_words_and_nothing_that_is_left_to_the_task() -> None:
    schedule = stored(cron("0 3 * * *", tz="Europe/Riga"))
    assert written(schedule) == {
        "name": "nightly",
        "cron": "0 3 * * *",
        "tz": "Europe/Riga",
        "task": "shop.tidy",
        "arguments": {"days": 7},
        "queue": "default",
        "priority": 5,
        "on_crash": "retry",
        "overlap": "skip",
        "misfire": "latest",
        "misfire_window": "1 hour",
    }


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 3 * * *"),
        cron("H H * * *", tz="Asia/Tokyo"),
        cron("H H * * *", seed="another"),
        every("90s", start=NOON),
        every("1d", start=NOON, end=datetime(2031, 1, 1, tzinfo=UTC), times=10),
        at([NOON, datetime(2030, 2, 1, 0, 0, 0, 1, tzinfo=UTC)]),
        every(months=1, start=NOON),
        rrule("FREQ=MONTHLY;BYDAY=-1FR", start=NOON, tz="Europe/Riga"),
        ((cron("H 3 * * *", tz="Asia/Tokyo") | every("1h", start=NOON)) & cron("* * * * *")) - weekends(),
        cron("0 3 * * *").between(end=NOON).at_most(3).jitter("30s"),
    ],
    ids=lambda trigger: trigger.describe(),
)
def test_a_trigger_comes_back_as_it_was(trigger: Trigger) -> None:
    assert read(written(stored(trigger))).trigger == trigger.seeded("nightly")


def test_policies_terms_and_pauses_come_back_as_they_were() -> None:
    terms = Terms(
        expires=90 * SECOND,
        tags=("money", "night"),
        callbacks='{"failure": {"task": "shop.alarm"}}',
        gate="shop.tidy",
        result_ttl=FOREVER,
        failure_ttl=0,
    )
    schedule = stored(
        cron("0 3 * * *"),
        queue="mail",
        priority=0,
        on_crash="fail",
        retries=0,
        timeout=1_500_000,
        terms=terms.to_text(),
        overlap="queue_all",
        overlap_limit=7,
        misfire="all",
        misfire_window=3 * SECOND,
        misfire_limit=12,
        pause_after=3,
        paused_at=1,
        paused_reason="moving house",
        paused_by="ann",
        paused_until=from_datetime(NOON),
    )
    wanted = read(json.loads(json.dumps(written(schedule))))
    options = wanted.options
    assert (options.job.queue, options.job.priority, wanted.on_crash) == ("mail", 0, "fail")
    assert (options.job.retries, options.job.timeout) == (0, 1_500_000)
    assert replace(options.job.terms, gate=wanted.gate) == terms
    assert (options.overlap, options.overlap_limit) == ("queue_all", 7)
    assert (options.misfire, options.misfire_window, options.misfire_limit) == ("all", 3 * SECOND, 12)
    assert options.pause_after == 3
    assert wanted.pause == Pause(reason="moving house", by="ann", until=from_datetime(NOON))


@pytest.mark.parametrize(("value", "pause"), [(True, Pause()), (False, None), (None, None)])
def test_a_pause_may_have_nothing_to_say(value: object, pause: Pause | None) -> None:
    assert read(NIGHTLY | {"paused": value}).pause == pause
    assert written(stored(cron("0 3 * * *"), paused_at=1))["paused"] is True


def test_how_many_jobs_were_made_is_told_only_where_it_counts() -> None:
    assert "made" not in written(stored(cron("0 3 * * *"), made=3))
    limited = written(stored(every("1d", start=NOON, times=10), made=3))
    assert read(limited).made == 3


def test_an_end_a_number_of_jobs_and_a_jitter_may_be_written_beside_any_trigger() -> None:
    beside = {"end": "2030-01-31T12:00:00Z", "times": 3, "jitter": "30s"}
    expected = cron("0 3 * * *").between(end=NOON).at_most(3).jitter("30s")
    assert read(NIGHTLY | beside).trigger == expected.seeded("nightly")


@pytest.mark.parametrize(
    ("entry", "error", "text"),
    [
        ({"cron": "0 25 * * *"}, InvalidCron, "     ^^"),
        ({"cron": None}, InvalidTrigger, "this has none"),
        ({"every": "15m"}, InvalidTrigger, "this has cron and every"),
        ({"start": "2030-01-31T12:00:00Z"}, InvalidTrigger, "start does not go with cron"),
        ({"cron": None, "at": ["2030-01-31T12:00:00"]}, InvalidTime, "no time zone"),
        ({"times": 0}, InvalidTrigger, "a whole number from 1"),
        ({"jitter": "1y"}, InvalidValue, "jitter"),
        ({"cron": None, "at": "tomorrow"}, InvalidTime, "'tomorrow' is no moment"),
        ({"cron": None, "rrule": "FREQ=DAILY"}, InvalidTrigger, "rrule needs a start"),
        ({"cron": None, "trigger": {"type": "moon"}}, InvalidTrigger, "unknown trigger type"),
        ({"cron": None, "every": [1]}, InvalidValue, "interval"),
        ({"name": "no name"}, InvalidValue, "'no name' is not allowed"),
        ({"task": 7}, InvalidValue, "task must be text"),
        ({"overlapp": "skip"}, InvalidOption, "unknown key 'overlapp'"),
        ({"overlap": "never"}, InvalidOption, "overlap must be one of"),
        ({"priority": "5"}, InvalidOption, "priority"),
        ({"tags": "money"}, InvalidOption, "tags must be a list"),
        ({"arguments": [7]}, InvalidOption, "arguments must be an object"),
        ({"paused": "yes"}, InvalidOption, "paused must be"),
        ({"paused": {"until": "noon"}}, InvalidTime, "paused.until"),
        ({"callbacks": {"never": {}}}, InvalidOption, "callbacks must be"),
        ({"made": -1}, InvalidOption, "made must be"),
        ({"gate": 7}, InvalidOption, "gate must be text"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused_and_said(
    entry: dict[str, Any], error: type[InvalidValue], text: str
) -> None:
    with pytest.raises(error) as caught:
        read(NIGHTLY | entry)
    assert text in str(caught.value)


@pytest.mark.parametrize("key", ["name", "task"])
def test_what_is_missing_is_named(key: str) -> None:
    with pytest.raises(InvalidOption, match=f"{key} is missing"):
        read({name: value for name, value in NIGHTLY.items() if name != key})
