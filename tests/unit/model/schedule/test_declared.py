"""What becomes of a stored schedule when code declares it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime import cron, every
from duetime.model.schedule.actions import declaration, declare
from duetime.model.schedule.firing import fire
from duetime.model.schedule.record import Misfire, ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.time import SECOND, Instant, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import trigger_from_text, trigger_to_text

HOUR = 3600 * SECOND
NOW: Instant = 500_000 * HOUR
HOURLY = every("1h")


def said(trigger: Trigger = HOURLY, *, now: Instant = NOW, **options: Any) -> StoredSchedule:
    """A schedule as code declares it."""
    anchored = trigger.anchored(now)
    new = StoredSchedule(
        name="s",
        task="work",
        payload="{}",
        trigger=trigger_to_text(anchored),
        declared="",
        fired_through=now,
        next_at=anchored.after(now),
        **options,
    )
    return replace(new, declared=declaration(new, trigger=trigger_to_text(trigger)))


def decide(
    before: StoredSchedule | None, new: StoredSchedule, *, now: Instant = NOW
) -> ScheduleUpdate | None:
    return declare(before, new, who="code", now=now)


def change(before: StoredSchedule, new: StoredSchedule, *, now: Instant = NOW) -> ScheduleUpdate:
    found = decide(before, new, now=now)
    assert found is not None
    return found


def test_the_same_declaration_changes_nothing_whenever_it_is_made() -> None:
    assert decide(said(), said(now=NOW + 90 * SECOND), now=NOW + 90 * SECOND) is None


def test_what_operators_changed_stays_where_the_code_has_not_changed() -> None:
    operated = replace(
        said(), trigger=trigger_to_text(cron("0 3 * * *")), next_at=NOW + 3 * HOUR, priority=1, paused_at=NOW
    )
    found = change(operated, said(queue="slow"))
    assert found.after == replace(
        operated, queue="slow", declared=said(queue="slow").declared, streak_from=NOW
    )
    assert found.entry is not None
    assert found.entry.detail == {"queue": ["default", "slow"]}


def test_what_changed_in_the_code_wins_over_what_operators_changed_there() -> None:
    assert change(replace(said(), priority=1), said(priority=2)).after.priority == 2


def test_a_new_trigger_goes_on_from_now_and_tells_what_was_overdue() -> None:
    later = NOW + 5 * HOUR // 2
    found = change(said(), said(cron("0 3 * * *"), now=later), now=later)
    assert (found.after.fired_through, found.again, found.held) == (later, False, False)
    [record] = found.jobs
    assert (record.reason, record.span_count, record.occurrence) == ("edited", 2, NOW + 2 * HOUR)


def test_code_that_comes_to_what_operators_have_made_of_it_is_noted_without_a_change() -> None:
    found = change(replace(said(), priority=1), said(priority=1))
    assert (found.entry, found.withdraw, found.jobs) == (None, None, ())
    assert found.after.declared == said(priority=1).declared


def test_a_schedule_that_was_put_becomes_the_codes_own_when_it_is_declared() -> None:
    put = replace(said(), owner="user", declared="", priority=1)
    found = change(put, said())
    assert (found.after.owner, found.after.priority) == ("code", 5)
    assert decide(found.after, said()) is None


def test_code_that_declares_what_was_put_takes_over_its_times_too() -> None:
    later = NOW + HOUR + 600 * SECOND
    put = replace(said(), owner="user", declared="")
    found = change(put, said(now=later), now=later)
    assert found.after == replace(put, owner="code", declared=said().declared, streak_from=later)
    assert (found.jobs, found.again) == ((), True)


def test_another_start_in_the_code_is_another_trigger() -> None:
    assert change(said(every("1h", start=to_datetime(NOW))), said()).after.trigger == said().trigger


@pytest.mark.parametrize("misfire", ["latest", "all"])
def test_what_fell_due_while_a_schedule_was_parked_for_a_short_time_is_left_to_its_misfire_policy(
    misfire: Misfire,
) -> None:
    parked = replace(said(misfire=misfire), parked_at=NOW + HOUR - SECOND, next_at=None)
    later = NOW + HOUR + 600 * SECOND
    found = change(parked, said(misfire=misfire, now=later), now=later)
    assert (found.after.fired_through, found.after.next_at, found.jobs) == (NOW, NOW + HOUR, ())
    firing = fire(found.after, trigger_from_text(found.after.trigger), now=later, ahead=SECOND)
    assert firing is not None
    assert [(job.occurrence, job.state) for job in firing.jobs] == [(NOW + HOUR, State.PENDING)]


def test_a_parked_schedule_comes_back_with_its_own_anchor_and_one_record() -> None:
    later = NOW + 5 * HOUR // 2
    parked = replace(said(), parked_at=NOW, next_at=None)
    found = change(parked, said(now=later), now=later)
    assert (found.after.parked_at, found.after.next_at) == (None, NOW + 3 * HOUR)
    [record] = found.jobs
    assert (record.reason, record.span_first, record.span_count) == ("parked", NOW + HOUR, 2)


def test_a_trigger_that_cannot_be_read_is_replaced_without_a_record() -> None:
    unreadable = replace(said(), trigger='{"type":"moon"}')
    found = change(unreadable, said(cron("0 3 * * *")), now=NOW + 5 * HOUR)
    assert (found.after.trigger, found.jobs) == (trigger_to_text(cron("0 3 * * *")), ())
