from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from duetime.model.explain.facts import JobFacts
from duetime.model.states import State
from duetime.model.stored.jobs import StoredWorker
from duetime.model.time import DAY, HOUR, LONGEST_DURATION, SECOND, from_datetime
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.unit.model.explain.explain_kit import (
    ALIVE,
    BERLIN,
    NIGHTLY,
    NOW,
    SCHEDULE,
    SUNDAY,
    THREE,
    entry,
    record,
    skipped,
    text_of,
    told,
)


def test_the_answer_begins_with_the_moment_and_its_zone() -> None:
    assert told().startswith("You ask about 2026-11-15 03:00:00 Europe/Berlin (2026-11-15 02:00:00 UTC).")


def test_a_run_is_told_with_its_lateness_its_worker_and_its_story() -> None:
    ran = record(
        state=State.SUCCEEDED, started_at=THREE + 2 * SECOND, finished_at=THREE + 5 * SECOND, worker="w1"
    )
    text = told(records=[ran], jobs={"j": JobFacts(now=NOW, job=ran, workers=[ALIVE], tz=BERLIN)})
    assert "ran and succeeded: j, started 2 seconds after its time on worker w1 (pid 7 on h)." in text
    assert "Made by schedule nightly for its occurrence at 2026-11-15 03:00:00 Europe/Berlin" in text
    assert "It succeeded after 3 seconds." in text


def test_a_pending_job_is_told_with_what_it_waits_for() -> None:
    waiting = record()
    text = told(records=[waiting], jobs={"j": JobFacts(now=NOW, job=waiting, workers=[])})
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
            "misfire is all: of all that was missed the latest 100 run, and only within a window of 1 hour.",
        ),
    ],
)
def test_a_misfire_is_told_with_the_outage_and_the_policy(misfire: str, rule: str) -> None:
    text = told(schedule={"misfire": misfire}, records=[skipped("misfire")])
    assert "Its occurrence at 2026-11-15 03:00:00 Europe/Berlin was skipped." in text
    outage = "No one fired it from 2026-11-15 03:00:00 Europe/Berlin until 2026-11-15 08:00:00 Europe/Berlin"
    assert f"{outage}, when this was noticed; {rule}" in text


def test_a_window_without_an_end_is_not_told() -> None:
    text = told(schedule={"misfire": "all", "misfire_window": LONGEST_DURATION}, records=[skipped("misfire")])
    assert text.endswith("misfire is all: of all that was missed the latest 100 run.")


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
        "Job long of its occurrence at 2026-11-14 03:00:00 Europe/Berlin, which ran since 2026-11-14 03:00:00 "
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
    assert "Skipped by ada@desk." in told(records=[skipped("skipped by ada@desk")])


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
    jobs = {job.id: JobFacts(now=NOW, job=job) for job in ran}
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


def test_what_the_trigger_was_later_does_not_matter_to_a_moment_before() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW + HOUR, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, records=[record()], entries=[change], now=NOW + DAY)
    assert "The job of its occurrence at 2026-11-15 03:00:00" in text


def test_a_change_before_anybody_had_fired_it_is_told_with_who() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, records=[skipped("edited", created_at=NOW)], entries=[change])
    assert "The schedule was changed by ada@desk before anyone had fired it." in text


def test_a_record_of_many_is_read_with_the_trigger_of_that_time() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", NOW + DAY, trigger=[text_of(NIGHTLY), text_of(later)])
    record_of_many = skipped("edited", occurrence=THREE + DAY, span_first=THREE - DAY, span_count=3)
    text = told(trigger=later, records=[record_of_many], entries=[change], now=NOW + 2 * DAY)
    assert "one record stands for 3 occurrences" in text


@pytest.mark.parametrize("workers", [(), (replace(ALIVE, state="dead"),)])
def test_without_workers_nobody_fires(workers: tuple[StoredWorker, ...]) -> None:
    text = told(asked=None, workers=workers)
    assert "No one fires schedules: no worker is alive." in text
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
    assert "It waits, since it has a trigger that cannot be read here" in told(asked=None, schedule=broken)
    assert "cannot be told" in told(schedule=broken)


def test_how_it_stands_says_why_the_last_one_was_skipped() -> None:
    ran = record(id="k", occurrence=THREE - DAY, started_at=THREE - DAY, state=State.RUNNING)
    text = told(asked=None, before=[skipped("overlap", created_at=THREE), ran])
    assert "Its occurrence at 2026-11-15 03:00:00 Europe/Berlin was skipped." in text
    assert "Job k of its occurrence at 2026-11-14 03:00:00 Europe/Berlin, which ran since" in text
    assert "had not ended; overlap is skip" in text


def test_what_is_left_out_ahead_is_told_one_by_one_beside_what_was_last() -> None:
    ahead = [skipped("skipped by ann", occurrence=THREE + days * DAY) for days in (2, 1)]
    lines = told(asked=None, before=[*ahead, record(state=State.SUCCEEDED)]).splitlines()
    assert lines[1].startswith(
        "The job of its occurrence at 2026-11-15 03:00:00 Europe/Berlin ran and succeeded"
    )
    assert lines[2:4] == [
        "Its occurrence at 2026-11-16 03:00:00 Europe/Berlin will not run: skipped by ann.",
        "Its occurrence at 2026-11-17 03:00:00 Europe/Berlin will not run: skipped by ann.",
    ]
    assert told(records=[skipped("skipped by ann")], now=THREE - HOUR).count("skipped by ann") == 1


def test_a_pause_leaves_nothing_overdue() -> None:
    stale = {"paused_at": THREE - HOUR, "paused_by": "ann", "next_at": THREE}
    text = told(asked=None, schedule=stale)
    assert "has not been fired yet" not in text
    assert "It would run next at 2026-11-16 03:00:00 Europe/Berlin" in text
    assert "has not been fired yet" in told(asked=None, schedule={"next_at": THREE})
    text = told(asked=None, schedule={**stale, "paused_until": THREE + 3 * DAY + HOUR})
    assert "It runs next at 2026-11-19 03:00:00 Europe/Berlin" in text
