from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from duetime.errors import InvalidTime
from duetime.model.audit import StoredEntry
from duetime.model.calendars import weekends
from duetime.model.durations import DAY, HOUR, MINUTE
from duetime.model.explain import Facts, ScheduleFacts, ask, explain_schedule
from duetime.model.instants import SECOND, Instant, from_datetime
from duetime.model.job import StoredJob
from duetime.model.schedule import StoredSchedule
from duetime.model.states import State
from duetime.model.triggers import Trigger, at, cron, every
from duetime.model.worker import StoredWorker
from tests.unit.model.test_explain import JOB, WORKER

BERLIN = "Europe/Berlin"
SUNDAY = datetime(2026, 11, 15, 3, 0)  # noqa: DTZ001 - as people write it
THREE: Instant = from_datetime(datetime(2026, 11, 15, 2, 0, tzinfo=UTC))
NOW: Instant = THREE + 5 * HOUR
NIGHTLY = cron("0 3 * * *", tz=BERLIN)
ALIVE = replace(WORKER, beat_at=NOW, lease_until=NOW + 30 * SECOND, tasks=("report",))


def text_of(trigger: Trigger) -> str:
    return json.dumps(trigger.to_spec())


SCHEDULE = StoredSchedule(
    name="nightly",
    task="report",
    payload="{}",
    trigger=text_of(NIGHTLY),
    declared="",
    fired_through=THREE,
    next_at=THREE + DAY,
    rev=1,
    created_at=THREE - 40 * DAY,
)


def record(**changes: Any) -> StoredJob:
    """A record of the occurrence on Sunday."""
    values: dict[str, Any] = {
        "occurrence": THREE,
        "due_at": THREE,
        "created_at": THREE,
        "schedule": "nightly",
        "task": "report",
    }
    return replace(JOB, **values | changes)


def skipped(reason: str, **changes: Any) -> StoredJob:
    return record(
        **{"state": State.SKIPPED, "reason": reason, "finished_at": NOW, "created_at": NOW} | changes
    )


def entry(verb: str, when: Instant, **detail: Any) -> StoredEntry:
    return StoredEntry(id=f"{when:020}", at=when, who="ada@desk", verb=verb, target="nightly", detail=detail)


def told(
    *,
    schedule: Mapping[str, Any] | StoredSchedule | None = MappingProxyType({}),
    asked: datetime | None = SUNDAY,
    trigger: Trigger = NIGHTLY,
    workers: tuple[StoredWorker, ...] = (ALIVE,),
    tz: str = BERLIN,
    **facts: Any,
) -> str:
    """The whole explanation in one text."""
    if isinstance(schedule, Mapping):
        schedule = replace(SCHEDULE, trigger=text_of(trigger), **schedule)
    given = ScheduleFacts(
        now=facts.pop("now", NOW),
        name="nightly",
        schedule=schedule,
        question=None if asked is None else ask(asked, tz),
        workers=workers,
        tz=tz,
        **facts,
    )
    return "\n".join(text for _, text in explain_schedule(given))


def test_the_answer_begins_with_the_moment_and_its_zone() -> None:
    assert told().startswith("You ask about 2026-11-15 03:00:00 Europe/Berlin (2026-11-15 02:00:00 UTC).")


def test_a_run_is_told_with_its_lateness_its_worker_and_its_story() -> None:
    ran = record(
        state=State.SUCCEEDED, started_at=THREE + 2 * SECOND, finished_at=THREE + 5 * SECOND, worker="w1"
    )
    text = told(records=[ran], jobs={"j": Facts(now=NOW, job=ran, workers=[ALIVE], tz=BERLIN)})
    assert "ran and succeeded: j, started 2 seconds after its time on worker w1 (pid 7 on h)." in text
    assert "Made by schedule nightly for its occurrence at 2026-11-15 03:00:00 Europe/Berlin" in text
    assert "It succeeded after 3 seconds." in text


def test_a_pending_job_is_told_with_what_it_waits_for() -> None:
    waiting = record()
    text = told(records=[waiting], jobs={"j": Facts(now=NOW, job=waiting, workers=[])})
    assert "waits: j." in text
    assert "No worker is alive" in text


@pytest.mark.parametrize(
    ("misfire", "rule"),
    [
        (
            "latest",
            "misfire is latest: of all that was missed only the latest runs, and only within a window of 1 hour.",
        ),
        ("skip", "misfire is skip: what is missed by more than its window of 1 hour does not run."),
        (
            "all",
            "misfire is all: what was missed runs later, but at most 100 and only within a window of 1 hour.",
        ),
    ],
)
def test_a_misfire_is_told_with_the_outage_and_the_policy(misfire: str, rule: str) -> None:
    text = told(schedule={"misfire": misfire}, records=[skipped("misfire")])
    assert "Its occurrence at 2026-11-15 03:00:00 Europe/Berlin was skipped." in text
    outage = "Nobody fired it from 2026-11-15 03:00:00 Europe/Berlin until 2026-11-15 08:00:00 Europe/Berlin"
    assert f"{outage}, when this was noticed; {rule}" in text


@pytest.mark.parametrize("reason", ["misfire", "overlap"])
def test_a_policy_that_is_not_known_any_more_is_not_guessed(reason: str) -> None:
    text = told(schedule=None, records=[skipped(reason)])
    assert "was skipped" in text
    assert f"{reason} is" not in text


def test_the_policy_is_the_one_of_that_time() -> None:
    change = entry("edit", NOW + HOUR, misfire=["skip", "latest"])
    assert "misfire is skip" in told(records=[skipped("misfire")], entries=[change], now=NOW + 2 * HOUR)


def test_a_policy_that_was_changed_before_is_the_new_one() -> None:
    change = entry("edit", THREE - HOUR, misfire=["skip", "latest"])
    assert "misfire is latest" in told(records=[skipped("misfire")], entries=[change])


def test_a_record_that_stands_for_many_is_told_with_count_first_and_last() -> None:
    outage = skipped(
        "misfire",
        occurrence=THREE + 2 * DAY,
        span_first=THREE - DAY,
        span_count=4,
        created_at=THREE + 3 * DAY,
    )
    text = told(records=[outage], now=THREE + 4 * DAY)
    assert (
        "one record stands for 4 occurrences, from 2026-11-14 03:00:00 Europe/Berlin to "
        "2026-11-17 03:00:00 Europe/Berlin."
    ) in text


def test_a_record_of_many_does_not_answer_for_moments_between_them() -> None:
    outage = skipped("misfire", occurrence=THREE + DAY, span_first=THREE - DAY, span_count=3)
    text = told(records=[outage], asked=SUNDAY.replace(hour=4))
    assert "stands for" not in text
    assert "Its trigger has no occurrence then" in text


def test_a_record_of_later_occurrences_does_not_answer_for_earlier_ones() -> None:
    later = skipped("misfire", occurrence=THREE + 2 * DAY, span_first=THREE + DAY, span_count=2)
    text = told(records=[later], oldest=record(occurrence=THREE - DAY), now=THREE + 3 * DAY)
    assert "stands for" not in text
    assert "There is no record of its occurrence at 2026-11-15 03:00:00 Europe/Berlin" in text


def test_an_overlap_is_told_with_the_job_that_was_live() -> None:
    long_one = record(
        id="long",
        occurrence=THREE - DAY,
        state=State.SUCCEEDED,
        started_at=THREE - DAY,
        finished_at=THREE + HOUR,
    )
    ended = record(id="ended", occurrence=THREE - DAY // 2, state=State.SUCCEEDED, finished_at=THREE - HOUR)
    text = told(records=[skipped("overlap", created_at=THREE)], before=[ended, long_one])
    assert (
        "Job long of its occurrence at 2026-11-14 03:00:00 Europe/Berlin, which runs since 2026-11-14 03:00:00 "
        "Europe/Berlin, had not ended; overlap is skip"
    ) in text


def test_an_overlap_whose_job_is_gone_still_names_the_policy() -> None:
    text = told(schedule={"overlap": "queue_one"}, records=[skipped("overlap")])
    assert "A job before it had not ended; overlap is queue_one: one may wait" in text


def test_a_record_of_a_pause_says_who_and_why() -> None:
    entries = [entry("resume", NOW), entry("pause", THREE - HOUR, reason="the month is closed.")]
    text = told(records=[skipped("paused")], entries=entries)
    assert "The schedule was paused by ada@desk: the month is closed." in text


def test_a_skip_by_hand_says_who() -> None:
    assert "Reason: skipped by ada@desk." in told(records=[skipped("skipped by ada@desk")])


def test_a_moment_without_an_occurrence_names_those_around_it() -> None:
    text = told(asked=SUNDAY.replace(hour=12), now=NOW + 2 * DAY)
    assert (
        "Its trigger has no occurrence then: the one before is at 2026-11-15 03:00:00 Europe/Berlin; "
        "the one after is at 2026-11-16 03:00:00 Europe/Berlin."
    ) in text


def test_a_minute_finds_what_comes_within_it() -> None:
    odd = every("1h", start=datetime(2026, 11, 15, 2, 0, 17, tzinfo=UTC))
    ran = record(occurrence=THREE + 17 * SECOND)
    assert "2026-11-15 03:00:17" in told(trigger=odd, records=[ran])


def test_many_in_a_minute_are_told_briefly_and_not_all() -> None:
    ran = [
        record(
            id=f"j{n}", occurrence=THREE + n * SECOND, state=State.SUCCEEDED, finished_at=THREE + n * SECOND
        )
        for n in range(7)
    ]
    jobs = {job.id: Facts(now=NOW, job=job) for job in ran}
    text = told(trigger=every("1s", start=datetime(2026, 11, 1, tzinfo=UTC)), records=ran, jobs=jobs)
    assert text.count("ran and succeeded") == 5
    assert "Made by schedule" not in text
    assert text.endswith("Not told here: 2 more of that minute; ask to the second.")


def test_a_time_in_the_gap_is_told_to_be_made_up_for_at_its_end() -> None:
    at_gap = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
    opening = from_datetime(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
    ran = record(occurrence=opening, state=State.SUCCEEDED)
    rule = cron("30 2 * * *", tz=BERLIN)
    text = told(asked=at_gap, trigger=rule, records=[ran], schedule={"created_at": 0})
    assert (
        "02:30:00 does not exist on 2026-03-29 in Europe/Berlin: the clock goes from 02:00:00 to 03:00:00. "
        "What is fixed to a time in between comes at 03:00:00."
    ) in text
    assert "The job of its occurrence at 2026-03-29 03:00:00 Europe/Berlin ran and succeeded" in text
    assert "02:30 does not exist on this day (clocks go forward); runs at 03:00." in text


def test_a_time_that_comes_twice_is_looked_up_twice() -> None:
    twice = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001
    moments = [from_datetime(datetime(2026, 10, 25, hour, 30, tzinfo=UTC)) for hour in (0, 1)]
    records = [
        record(id=str(n), occurrence=moment, state=State.SUCCEEDED) for n, moment in enumerate(moments)
    ]
    text = told(
        asked=twice, trigger=cron("30 * * * *", tz=BERLIN), records=records, schedule={"created_at": 0}
    )
    assert "comes twice on this day in Europe/Berlin: 00:30:00 UTC and 01:30:00 UTC." in text
    assert "both run, this is the first" in text
    assert "both run, this is the second" in text


def test_a_time_before_the_schedule_existed() -> None:
    created = entry("declare", THREE + HOUR)
    text = told(schedule={"created_at": THREE + HOUR}, entries=[created])
    assert "The schedule was created by ada@desk, 1 hour after the time that you ask about." in text


def test_a_change_of_the_trigger_names_who_from_what_and_to_what() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", THREE - DAY, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, entries=[change])
    assert "Its trigger has no occurrence then" in text
    assert (
        f"Its trigger was changed by ada@desk, from {NIGHTLY.describe()} to {later.describe()}: "
        "only the old one has an occurrence then."
    ) in text


def test_what_the_trigger_was_later_does_not_matter_to_a_moment_before() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW + HOUR, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, records=[record()], entries=[change], now=NOW + DAY)
    assert "The job of its occurrence at 2026-11-15 03:00:00" in text


def test_a_change_before_anybody_had_fired_it_is_told_with_who() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, records=[skipped("edited", created_at=NOW)], entries=[change])
    assert "The schedule was changed by ada@desk before anybody had fired it." in text


def test_a_record_of_many_is_read_with_the_trigger_of_that_time() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW + DAY, trigger=[text_of(NIGHTLY), text_of(later)])
    record_of_many = skipped("edited", occurrence=THREE + DAY, span_first=THREE - DAY, span_count=3)
    text = told(trigger=later, records=[record_of_many], entries=[change], now=NOW + 2 * DAY)
    assert "one record stands for 3 occurrences" in text


def test_a_schedule_that_was_deleted_and_made_anew() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    gone = entry("delete", THREE - 2 * DAY, trigger=[text_of(NIGHTLY), None])
    text = told(trigger=later, schedule={"created_at": THREE - DAY}, entries=[gone])
    assert "It was deleted by ada@desk and made anew, from " in text
    before = told(trigger=later, schedule={"created_at": THREE + HOUR}, entries=[gone])
    assert "Another of the same name was deleted by ada@desk." in before


def test_a_schedule_that_has_ended() -> None:
    once = at(datetime(2026, 11, 1, tzinfo=UTC))
    text = told(trigger=once, schedule={"next_at": None, "fired_through": NOW}, tz="UTC")
    assert "It had ended by then: the last occurrence of its trigger was at 2026-11-01 00:00:00 UTC." in text


def test_a_calendar_that_excludes_the_time_is_told_with_its_reason() -> None:
    text = told(trigger=NIGHTLY - weekends())
    assert "Its calendar excludes 2026-11-15 03:00:00 Europe/Berlin: 2026-11-15 is a " in text
    assert "the one before is at 2026-11-13 03:00:00 Europe/Berlin" in text
    assert "Its calendar" not in told(trigger=NIGHTLY - weekends(), asked=SUNDAY.replace(hour=4))


def test_a_calendar_deep_in_a_trigger_is_found() -> None:
    rule = (cron("0 9 * * *", tz=BERLIN) | (NIGHTLY - weekends())).at_most(1_000)
    assert "Its calendar excludes 2026-11-15 03:00:00 Europe/Berlin" in told(trigger=rule)


@pytest.mark.parametrize(
    ("bounds", "told_as"),
    [
        ({"start": datetime(2026, 11, 20, tzinfo=UTC)}, "does not begin before 2026-11-20 01:00:00"),
        ({"end": datetime(2026, 11, 14, tzinfo=UTC)}, "does not go on after 2026-11-14 01:00:00"),
    ],
)
def test_a_time_outside_of_start_and_end_says_so(bounds: dict[str, datetime], told_as: str) -> None:
    assert f"It {told_as} Europe/Berlin." in told(trigger=NIGHTLY.between(**bounds))


def test_what_is_to_come_with_jitter_says_when_its_job_falls_due() -> None:
    text = told(asked=SUNDAY.replace(day=16), trigger=NIGHTLY.jitter("1h").seeded("nightly"))
    assert (
        "its occurrence at 2026-11-16 03:00:00 Europe/Berlin, in 19 hours; its job falls due at 2026-11-16 03:"
        in text
    )


def test_a_schedule_that_has_made_all_its_jobs() -> None:
    rule = every("1d", start=datetime(2026, 11, 10, 2, tzinfo=UTC), times=30)
    ended = {"next_at": None, "made": 30, "fired_through": THREE - 3 * DAY}
    assert "It has ended: it has made all of its 30 jobs." in told(trigger=rule, schedule=ended)


def test_a_pause_that_lasts_is_told_with_who_why_and_until_when() -> None:
    paused = {
        "paused_at": THREE - HOUR,
        "paused_by": "ada@desk",
        "paused_reason": "closing",
        "paused_until": NOW + HOUR,
        "fired_through": THREE - DAY,
    }
    text = told(schedule=paused)
    assert (
        "did not run. It is paused since 2026-11-15 02:00:00 Europe/Berlin by ada@desk, until 2026-11-15 09:00:00 "
        "Europe/Berlin: closing."
    ) in text


def test_a_parked_schedule_says_that_no_code_declares_it() -> None:
    text = told(schedule={"parked_at": THREE - HOUR, "fired_through": THREE - DAY, "next_at": None})
    assert "It is parked since 2026-11-15 02:00:00 Europe/Berlin: no code declares it any more." in text


def test_a_deleted_schedule_says_who_deleted_it() -> None:
    text = told(schedule=None, entries=[entry("delete", THREE - HOUR)])
    assert "The schedule was deleted by ada@desk." in text


def test_a_deleted_schedule_still_knows_when_it_would_have_run() -> None:
    gone = entry("delete", THREE + HOUR, trigger=[text_of(NIGHTLY), None])
    text = told(schedule=None, entries=[gone])
    assert "There is no record of its occurrence at 2026-11-15 03:00:00 Europe/Berlin from before." in text


def test_a_record_that_was_pruned_is_said_to_be_so() -> None:
    text = told(
        oldest=record(occurrence=THREE + DAY), schedule={"fired_through": THREE + DAY}, now=NOW + 2 * DAY
    )
    assert "records that old have been pruned" in text


def test_a_record_that_is_missing_among_others_is_not_said_to_be_pruned() -> None:
    text = told(oldest=record(occurrence=THREE - DAY))
    assert "it was passed over or taken away" in text


def test_what_is_due_and_not_fired_says_that_nobody_fires() -> None:
    idle = replace(ALIVE, fires=False)
    text = told(schedule={"fired_through": THREE - DAY, "next_at": THREE}, workers=(idle,))
    assert "Its occurrence at 2026-11-15 03:00:00 Europe/Berlin, 5 hours ago, has not been fired yet." in text
    assert "Nobody fires schedules: worker w1 (pid 7 on h) was told to leave them alone." in text


def test_what_is_to_come_says_when_and_what_is_in_its_way() -> None:
    text = told(
        asked=SUNDAY.replace(day=16),
        workers=(replace(ALIVE, queues=("default",), tasks=()),),
        queue_paused_at=NOW - MINUTE,
        queue_paused_reason="relay down",
    )
    assert "That is to come: its occurrence at 2026-11-16 03:00:00 Europe/Berlin, in 19 hours." in text
    assert "Queue default is paused since 2026-11-15 07:59:00 Europe/Berlin: relay down." in text
    assert "No worker knows task report" in text


def test_what_is_to_come_and_free_says_so() -> None:
    assert told(asked=SUNDAY.replace(day=16)).endswith("Nothing is in its way now.")


@pytest.mark.parametrize("workers", [(), (replace(ALIVE, state="dead"),)])
def test_without_workers_nobody_fires(workers: tuple[StoredWorker, ...]) -> None:
    text = told(asked=None, workers=workers)
    assert "Nobody fires schedules: no worker is alive." in text
    assert "No worker is alive;" not in text


def test_how_it_stands_has_the_last_and_the_next() -> None:
    ran = record(state=State.FAILED, started_at=THREE, finished_at=THREE + SECOND, worker="w1")
    lines = told(asked=None, before=[ran]).splitlines()
    assert lines[0].startswith("Schedule nightly was created: task report in queue default, ")
    assert lines[1].startswith(
        "The job of its occurrence at 2026-11-15 03:00:00 Europe/Berlin failed: j, started"
    )
    assert lines[2].startswith(
        "It runs next at 2026-11-16 03:00:00 Europe/Berlin, in 19 hours; then at 2026-11-17"
    )
    assert lines[3:] == ["Nothing is in its way."]


def test_a_trigger_that_cannot_be_read_is_told() -> None:
    broken = replace(SCHEDULE, trigger='{"type": "moon"}')
    assert "Its trigger cannot be read by this version" in told(asked=None, schedule=broken)
    assert "cannot be told" in told(schedule=broken)


@pytest.mark.parametrize(
    ("moment", "width"),
    [
        (datetime(2026, 11, 15, 3, 0, tzinfo=UTC), MINUTE),
        (datetime(2026, 11, 15, 3, 0, 1, tzinfo=UTC), SECOND),
        (datetime(2026, 11, 15, 3, 0, 0, 7, tzinfo=UTC), 1),
    ],
)
def test_a_moment_stands_for_as_long_as_it_is_exact(moment: datetime, width: int) -> None:
    (window,) = ask(moment, BERLIN).windows
    assert window == (from_datetime(moment), from_datetime(moment) + width)


def test_something_that_is_no_moment_is_refused() -> None:
    with pytest.raises(InvalidTime, match="at must be a datetime such as"):
        ask("03:00", BERLIN)  # type: ignore[arg-type]
