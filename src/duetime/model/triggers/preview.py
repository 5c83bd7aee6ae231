"""The occurrences to come, as people read them, with what a change of the clock does to each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.model.time import SECOND, Instant, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.combined import CombinedTrigger
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import CalendarSteps
from duetime.model.triggers.rrule import RRule
from duetime.model.triggers.working_days import WorkingDay
from duetime.model.triggers.zones import DAY_SECONDS, OffsetPeriod, Zone, shown_wall, wall_second_at, zone


def clock_change_note(trigger: Trigger, occurrence: Instant) -> str | None:
    """Return a sentence about an occurrence that a change of the clock moves, repeats or follows, else None."""
    if not trigger.comes_at(occurrence):
        return None
    if isinstance(trigger, CombinedTrigger):
        notes = (clock_change_note(part, occurrence) for part in trigger.inner())
        return next(filter(None, notes), None)
    if isinstance(trigger, Cron):
        return _cron_note(trigger, occurrence // SECOND)
    if isinstance(trigger, (CalendarSteps, RRule, WorkingDay)):
        return _fixed_note(trigger, occurrence // SECOND)
    return None


def _cron_note(rule: Cron, second: int) -> str | None:
    period = rule.place.period_at(second)
    wall = second + period.offset
    if (note := _twice_note(rule.place, period, wall, repeats=rule.fields.floating)) is not None:
        return note
    # What a gap swallows is told with the first occurrence after it.
    if rule.after(period.start * SECOND - 1) != second * SECOND:
        return None
    opening = period.start + period.offset
    missing = rule.fields.count(period.seen, opening) if period.seen < opening else 0
    first = rule.fields.first_from(period.seen)
    if not missing or first is None:
        return None
    text = _missing(first, wall, others=missing - 1)
    if rule.fields.floating:
        return f"{text} and {'is' if missing == 1 else 'are'} left out"
    return f"{text}; {'runs' if missing == 1 else 'they run once,'} at {_clock(wall)}"


def _fixed_note(rule: CalendarSteps | RRule | WorkingDay, second: int) -> str | None:
    place = zone(rule.tz)
    period = place.period_at(second)
    wall = second + period.offset
    repeats = isinstance(rule, RRule) and rule.repeats
    if (note := _twice_note(place, period, wall, repeats=repeats)) is not None:
        return note
    if second != period.start or repeats:
        return None
    if isinstance(rule, (RRule, WorkingDay)):
        meant = rule.first_from(period.seen)
    elif rule.start is None:
        meant = None
    else:
        meant = period.seen + (wall_second_at(place, rule.start) - rule.past - period.seen) % DAY_SECONDS
    return None if meant is None or meant >= wall else f"{_missing(meant, wall)}; runs at {_clock(wall)}"


def _twice_note(place: Zone, period: OffsetPeriod, wall: int, *, repeats: bool) -> str | None:
    """Say that the clock shows a wall time twice, and which of them runs."""
    runs = None
    if repeats and wall < period.seen:
        runs = "both run, this is the second"
    elif _comes_again(place, period, wall):
        runs = "both run, this is the first" if repeats else "runs the first time only"
    return None if runs is None else f"{_clock(wall)} comes twice on this day (clocks go back); {runs}"


def _missing(first: int, wall: int, *, others: int = 0) -> str:
    """Say that a wall time, and perhaps others, are skipped before `wall`."""
    moment = shown_wall(first)
    same_day = moment.date() == shown_wall(wall).date()
    told = _clock(first) if same_day else f"{moment:%Y-%m-%d} {_clock(first)}"
    day = " on this day" if same_day else ""
    what = f"{told} and {others:,} more do not exist" if others else f"{told} does not exist"
    return f"{what}{day} (clocks go forward)"


def _comes_again(place: Zone, period: OffsetPeriod, wall: int) -> bool:
    """Tell whether a clock in the zone is set back over `wall`, which it shows in `period`."""
    # Long periods come in pieces, so that the change may lie behind the end of this one.
    while period.end + period.offset - wall <= DAY_SECONDS:
        period = place.period_at(period.end)
        if period.start + period.offset <= wall:
            return True
    return False


def _clock(wall: int) -> str:
    return f"{shown_wall(wall):%H:%M:%S}" if wall % 60 else f"{shown_wall(wall):%H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """One occurrence to come."""

    at: datetime
    """When it is, in UTC."""
    local: datetime
    """The same moment in the trigger's zone."""
    due_at: datetime
    """When its job falls due: the same, unless the trigger has a jitter."""
    note: str | None = None
    """What a change of the clock does to it, or why it will not run."""


def preview(trigger: Trigger, *, after: Instant, count: int) -> list[Upcoming]:
    """Return the next occurrences strictly after `after`; fewer than `count` if there are no more."""
    found: list[Upcoming] = []
    zone, due = ZoneInfo(trigger.tz), trigger.after(after)
    while due is not None and len(found) < count:
        at = to_datetime(due)
        due_at, said = to_datetime(trigger.due(due)), clock_change_note(trigger, due)
        found.append(Upcoming(at=at, local=at.astimezone(zone), due_at=due_at, note=said))
        due = trigger.after(due)
    return found
