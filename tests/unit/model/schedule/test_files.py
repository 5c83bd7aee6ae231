from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from duetime.errors import InvalidCron, InvalidOption, InvalidTime, InvalidTrigger, InvalidValue, InvalidZone
from duetime.model.job import FOREVER, JobTerms
from duetime.model.schedule.files import TRIGGER_KEYS, WrittenPause, read_schedule, written_schedule
from duetime.model.schedule.record import StoredSchedule
from duetime.model.time import LONGEST_DURATION, SECOND, from_datetime
from duetime.model.triggers.at import at
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import weekends
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.rrule import rrule

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
EVE = datetime(2030, 1, 30, 12, tzinfo=UTC)
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
    assert written_schedule(schedule) == {
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


def test_a_window_that_does_not_end_is_left_to_the_policy_that_means_it() -> None:
    endless = written_schedule(stored(cron("0 3 * * *"), misfire="all", misfire_window=LONGEST_DURATION))
    assert "misfire_window" not in endless
    assert read_schedule(endless).options.misfire_window == LONGEST_DURATION
    said = written_schedule(stored(cron("0 3 * * *"), misfire="latest", misfire_window=LONGEST_DURATION))
    assert read_schedule(said).options.misfire_window == LONGEST_DURATION


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
        every(months=14, start=NOON, end=NOON.replace(year=2040), times=3, tz="Asia/Tokyo"),
        every(months=1, start=NOON, missing="skip"),
        every("1h", start=NOON).between(start=NOON.replace(year=2031)),
        at([NOON]).between(start=EVE),
        rrule("FREQ=DAILY", start=EVE).between(start=NOON),
        cron("0 3 * * *").jitter("30s").at_most(3),
        (cron("0 3 * * *") - weekends()).between(end=NOON),
    ],
    ids=lambda trigger: trigger.describe(),
)
def test_a_trigger_comes_back_as_it_was(trigger: Trigger) -> None:
    assert read_schedule(written_schedule(stored(trigger))).trigger == trigger.seeded("nightly")


def test_policies_terms_and_pauses_come_back_as_they_were() -> None:
    terms = JobTerms(
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
    wanted = read_schedule(json.loads(json.dumps(written_schedule(schedule))))
    options = wanted.options
    assert (options.job.queue, options.job.priority, wanted.on_crash) == ("mail", 0, "fail")
    assert (options.job.retries, options.job.timeout) == (0, 1_500_000)
    assert replace(options.job.terms, gate=wanted.gate) == terms
    assert (options.overlap, options.overlap_limit) == ("queue_all", 7)
    assert (options.misfire, options.misfire_window, options.misfire_limit) == ("all", 3 * SECOND, 12)
    assert options.pause_after == 3
    assert wanted.pause == WrittenPause(reason="moving house", by="ann", until=from_datetime(NOON))


@pytest.mark.parametrize(("value", "pause"), [(True, WrittenPause()), (False, None), (None, None)])
def test_a_pause_may_have_nothing_to_say(value: object, pause: WrittenPause | None) -> None:
    assert read_schedule(NIGHTLY | {"paused": value}).pause == pause
    assert written_schedule(stored(cron("0 3 * * *"), paused_at=1))["paused"] is True


def test_how_many_jobs_were_made_is_told_only_where_it_counts() -> None:
    assert "made" not in written_schedule(stored(cron("0 3 * * *"), made=3))
    limited = written_schedule(stored(every("1d", start=NOON, times=10), made=3))
    assert read_schedule(limited).made == 3


def test_an_end_a_number_of_jobs_and_a_jitter_may_be_written_beside_any_trigger() -> None:
    beside = {"end": "2030-01-31T12:00:00Z", "times": 3, "jitter": "30s"}
    expected = cron("0 3 * * *").between(end=NOON).at_most(3).jitter("30s")
    assert read_schedule(NIGHTLY | beside).trigger == expected.seeded("nightly")


@pytest.mark.parametrize(
    ("words", "trigger"),
    [
        (
            {"cron": "0 3 * * *", "start": EVE.isoformat(), "end": NOON.isoformat(), "times": 3},
            cron("0 3 * * *").between(EVE, NOON).at_most(3),
        ),
        (
            {
                "every": "1 hour",
                "start": EVE.isoformat(),
                "end": NOON.isoformat(),
                "times": 3,
                "jitter": "5 minutes",
            },
            every("1h", start=EVE, end=NOON, times=3).jitter("5m"),
        ),
        (
            {"every": "1 month", "tz": "Europe/Riga", "start": NOON.isoformat()},
            every(months=1, start=NOON, tz="Europe/Riga"),
        ),
    ],
    ids=["cron", "every", "months"],
)
def test_what_has_words_is_written_in_words(words: dict[str, Any], trigger: Trigger) -> None:
    entry = written_schedule(stored(trigger))
    assert {key: entry[key] for key in entry if key in TRIGGER_KEYS} == words
    assert read_schedule(entry).trigger == trigger.seeded("nightly")


@pytest.mark.parametrize(
    ("text", "months"), [("1 month", 1), ("6mo", 6), ("2 years", 24), ("1y", 12), (" 1 year 2 months ", 14)]
)
def test_months_and_years_are_steps_on_the_calendar(text: str, months: int) -> None:
    entry = {"name": "nightly", "task": "shop.tidy", "every": text, "start": "2030-01-31T12:00:00Z"}
    assert read_schedule(entry).trigger == every(months=months, start=NOON)


@pytest.mark.parametrize(
    ("entry", "error", "text"),
    [
        ({"cron": "0 25 * * *"}, InvalidCron, "     ^^"),
        ({"cron": None}, InvalidTrigger, "this has none"),
        ({"every": "15m"}, InvalidTrigger, "this has cron and every"),
        ({"cron": None, "at": NOON, "start": NOON}, InvalidTrigger, "start does not go with at"),
        ({"cron": None, "every": "15m", "tz": "UTC"}, InvalidTrigger, "where it counts months or years"),
        (
            {"cron": None, "every": "15m", "start": NOON, "end": EVE},
            InvalidTrigger,
            "must not lie before start",
        ),
        ({"start": NOON, "end": EVE}, InvalidTrigger, "must not lie before start"),
        ({"start": NOON.replace(tzinfo=None)}, InvalidTime, "no time zone; write 2030-"),
        ({"start": date(2030, 1, 1)}, InvalidTime, "is not a moment; write 2030-"),
        ({"cron": None, "every": "0 months"}, InvalidTrigger, "months must be"),
        ({"cron": None, "every": "0s"}, InvalidTrigger, "from 1 ms to 100 years, not 0 seconds"),
        ({"jitter": "2d"}, InvalidTrigger, "from 1 ms to 1 day, not 2 days"),
        ({"times": 10**23}, InvalidTrigger, "times must be a whole number from 1 to 1,000,000,000"),
        (
            {"cron": None, "trigger": {"type": "every"}},
            InvalidTrigger,
            "missing 1 required keyword-only argument: 'interval'; its keys are",
        ),
        (
            {"cron": None, "trigger": {"type": "cron", "x": 1}},
            InvalidTrigger,
            "unexpected keyword argument 'x'; its keys are expression, tz, seed",
        ),
        ({"tz": "Europe/Rigga"}, InvalidZone, "did you mean 'Europe/Riga'?"),
        ({"cron": None, "at": ["2030-01-31T12:00:00"]}, InvalidTime, "no time zone"),
        ({"times": 0}, InvalidTrigger, "times must be a whole number from 1"),
        ({"jitter": "1y"}, InvalidValue, "jitter"),
        ({"cron": None, "at": "tomorrow"}, InvalidTime, "'tomorrow' is not a moment"),
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
        ({"paused": 5}, InvalidOption, "paused must be an object with by, reason, until, not 5"),
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
        read_schedule(NIGHTLY | entry)
    assert text in str(caught.value)


@pytest.mark.parametrize("key", ["name", "task"])
def test_what_is_missing_is_named(key: str) -> None:
    with pytest.raises(InvalidOption, match=f"{key} is missing"):
        read_schedule({name: value for name, value in NIGHTLY.items() if name != key})
