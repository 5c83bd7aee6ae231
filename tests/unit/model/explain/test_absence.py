from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from duetime.model.time import DAY, HOUR, MINUTE, SECOND
from duetime.model.triggers.at import at
from duetime.model.triggers.calendars import weekends
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.unit.model.explain.explain_kit import (
    ALIVE,
    BERLIN,
    NIGHTLY,
    NOW,
    SUNDAY,
    THREE,
    entry,
    record,
    text_of,
    told,
)


def test_a_moment_without_an_occurrence_names_those_around_it() -> None:
    text = told(asked=SUNDAY.replace(hour=12), now=NOW + 2 * DAY)
    assert (
        "Its trigger has no occurrence then: the one before is at 2026-11-15 03:00:00 Europe/Berlin; "
        "the one after is at 2026-11-16 03:00:00 Europe/Berlin."
    ) in text


def test_a_time_before_the_schedule_existed() -> None:
    created = entry("declare", THREE + HOUR)
    text = told(schedule={"created_at": THREE + HOUR}, entries=[created])
    assert "The schedule was created by ada@desk, 1 hour after the time that you ask about." in text


def test_a_schedule_that_was_created_within_the_minute() -> None:
    created = entry("put", THREE + 20 * SECOND)
    text = told(
        schedule={"created_at": THREE + 20 * SECOND, "fired_through": THREE + 20 * SECOND}, entries=[created]
    )
    assert "The schedule was created by ada@desk, 20 seconds after the time that you ask about." in text


def test_a_pause_that_came_after_the_time_is_not_the_whole_story() -> None:
    text = told(schedule={"paused_at": THREE + HOUR, "fired_through": THREE - DAY, "next_at": THREE})
    assert "had not been fired when the schedule was stopped. It is paused since 2026-11-15 04:00:00" in text


def test_a_change_of_the_trigger_names_who_from_what_and_to_what() -> None:
    later = cron("0 5 * * *", tz=BERLIN)
    change = entry("edit", THREE - DAY, trigger=[text_of(NIGHTLY), text_of(later)])
    text = told(trigger=later, entries=[change])
    assert "Its trigger has no occurrence then" in text
    assert (
        f"Its trigger was changed by ada@desk, from {NIGHTLY.describe()} to {later.describe()}: "
        "only the old one has an occurrence then."
    ) in text


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


def test_an_occurrence_that_is_moved_to_a_working_day_is_told_with_where_to() -> None:
    text = told(trigger=NIGHTLY.roll(weekends()))
    assert (
        "Its occurrence at 2026-11-15 03:00:00 Europe/Berlin is moved to 2026-11-16 03:00:00 Europe/Berlin: "
        "2026-11-15 is a Sunday." in text
    )
    assert "is moved" not in told(trigger=NIGHTLY.roll(weekends()), asked=SUNDAY.replace(hour=4))


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
    assert "It has ended: it was to make 30 jobs, and has." in told(trigger=rule, schedule=ended)


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
    assert "No one fires schedules: worker w1 (pid 7 on h) was told to leave them alone." in text


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
