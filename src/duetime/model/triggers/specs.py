"""Triggers and calendars as stored data, checked when they are read, and what stands for those that cannot be read."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, cast, get_args

from duetime.errors import DuetimeError, InvalidOption, InvalidTrigger
from duetime.model.job import JobTerms, OnCrash
from duetime.model.schedule.record import Misfire, Overlap, StoredSchedule
from duetime.model.stored.jobs import row_problem
from duetime.model.text import shown
from duetime.model.time import SECOND, Instant
from duetime.model.triggers import calendars, combined
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import MOST_DATES
from duetime.model.triggers.combined import DEEPEST_TRIGGER, MOST_TRIGGER_PARTS
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import CalendarSteps, Every
from duetime.model.triggers.rrule import RRule
from duetime.model.triggers.working_days import Rolled, WorkingDay

_TRIGGERS = (
    Cron, Every, CalendarSteps, RRule, At, combined.Union, combined.Intersection, combined.Except, combined.Between,
    combined.AtMost, combined.Jitter, WorkingDay, Rolled,
)  # fmt: skip
_CALENDARS = (calendars.Holidays, calendars.Weekdays, calendars.DailyBlackout, calendars.SingleBlackout)
_READERS: dict[str, dict[object, Callable[..., Any]]] = {
    "trigger": {one.kind: one for one in _TRIGGERS},
    "calendar": {one.kind: one for one in (*_CALENDARS, calendars.JoinedCalendars)},
    # Joined calendars are stored flat.
    "joined calendar": {one.kind: one for one in _CALENDARS},
}


def trigger_from_spec(spec: Mapping[str, Any]) -> Trigger:
    """Return the trigger that `to_spec` wrote; raise `InvalidTrigger` for anything else."""
    return cast("Trigger", _read(spec, "trigger", 0))


def _read(spec: Mapping[str, Any], what: str, depth: int) -> Any:
    if depth > DEEPEST_TRIGGER:
        raise InvalidTrigger(f"a trigger's spec is nested more than {DEEPEST_TRIGGER} deep")
    if not isinstance(spec, Mapping):
        raise InvalidTrigger(f"a {what}'s spec is an object with a type, not {type(spec).__name__}")
    kind, readers = spec.get("type"), _READERS[what]
    reader = readers.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidTrigger(f"unknown {what} type {shown(kind)}; known are {', '.join(map(str, readers))}")
    values = {key: _read_value(key, value, what, depth) for key, value in spec.items() if key != "type"}
    try:
        return reader(**values)
    except TypeError as error:
        keys = ", ".join(inspect.signature(reader).parameters)
        problem = str(error).rpartition("() ")[2]
        raise InvalidTrigger(f"a {what} of type {kind!r}: {problem}; its keys are {keys}") from error


def _read_value(key: str, value: Any, what: str, depth: int) -> Any:
    match key:
        case "trigger":
            return _read(value, "trigger", depth + 1)
        case "calendar":
            return _read(value, "calendar", 0)
        case "parts":
            inner = "trigger" if what == "trigger" else "joined calendar"
            return tuple(_read(part, inner, depth + 1) for part in _checked_parts(value))
        case "dates":
            return _read_dates(value)
        case _:
            return value


def _checked_parts(parts: list[Any]) -> list[Any]:
    if not isinstance(parts, list) or len(parts) > MOST_TRIGGER_PARTS:
        raise InvalidTrigger(f"parts are a list of up to {MOST_TRIGGER_PARTS}, not {shown(parts)}")
    return parts


def _read_dates(dates: Mapping[str, str]) -> tuple[tuple[date, str], ...]:
    if not isinstance(dates, Mapping) or len(dates) > MOST_DATES:
        raise InvalidTrigger(f"holidays are up to {MOST_DATES} dates with names, not {shown(dates)}")
    try:
        return tuple((date.fromisoformat(day), name) for day, name in dates.items())
    except (TypeError, ValueError) as error:
        raise InvalidTrigger(f"a holiday is a date such as 2030-12-25: {error}") from None


@dataclass(frozen=True, slots=True)
class UnreadableTrigger(Trigger):
    """A rule of a later version, or one that needs what is not installed here: it can be shown, and that is all."""

    text: str
    """As it is stored."""
    problem: str
    what: str = "a trigger"
    """What cannot be read: the trigger itself, or the row it is in."""

    def after(self, instant: Instant) -> None:
        """Return nothing: its occurrences are not known."""
        del instant

    def describe(self) -> str:
        """Say why it cannot be read."""
        return f"{self.what} that cannot be read here: {self.problem}"

    def to_spec(self) -> dict[str, object]:
        """Return what is stored."""
        try:
            spec = json.loads(self.text)
        except (ValueError, RecursionError):
            spec = None
        return cast("dict[str, object]", spec) if isinstance(spec, dict) else {"text": self.text}


_CHOICES: Final = {"overlap": get_args(Overlap), "misfire": get_args(Misfire), "on_crash": get_args(OnCrash)}
_ONE_ANCHOR: Final[Instant] = 0
_OTHER_ANCHOR: Final[Instant] = (400 * 86_400 + 3_661) * SECOND + 1


def trigger_to_text(trigger: Trigger) -> str:
    """Return the spec of a trigger as JSON; equal rules, equal text."""
    return json.dumps(trigger.to_spec(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def trigger_from_text(text: str) -> Trigger:
    """Read what `trigger_to_text` wrote; raise `InvalidTrigger` for anything else."""
    try:
        spec = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTrigger(f"a trigger is stored as JSON, not as {shown(text)}") from error
    try:
        return trigger_from_spec(spec)
    except DuetimeError:
        raise
    except Exception as error:
        # A bad row fails alone, whatever reading it raises.
        raise InvalidTrigger(f"a trigger cannot be built from {shown(text)}: {shown(error)}") from error


def trigger_if_readable(text: str) -> Trigger | None:
    """Read what `trigger_to_text` wrote; `None` where a later version did, or one with extras that are not installed here."""
    trigger = trigger_to_show(text)
    return None if isinstance(trigger, UnreadableTrigger) else trigger


def trigger_to_show(text: str) -> Trigger:
    """Read what `trigger_to_text` wrote; where it cannot be read, return what stands for it."""
    try:
        return trigger_from_text(text)
    except ValueError as error:
        return UnreadableTrigger(text, str(error))


def schedule_trigger(
    schedule: StoredSchedule, *, read: Callable[[str], Trigger] = trigger_to_show
) -> Trigger:
    """Return the trigger of a schedule, by way of `read`; `UnreadableTrigger` with the reason if it cannot be fired here."""
    problem = row_problem(schedule) or _unknown_word(schedule)
    if problem is None and schedule.terms is not None:
        try:
            JobTerms.from_text(schedule.terms)
        except InvalidOption as error:
            problem = str(error)
    if problem is not None:
        return UnreadableTrigger(str(schedule.trigger), problem, "a row")
    return read(schedule.trigger)


def _unknown_word(schedule: StoredSchedule) -> str | None:
    for name, known in _CHOICES.items():
        if (word := getattr(schedule, name)) not in known:
            return f"{name} is {shown(word)}, which this version does not know"
    return None


def same_rule(stored: Trigger, written: Trigger) -> bool:
    """Whether a stored trigger is one that was written, wherever the stored one counts from."""
    one, other = (written.anchored(anchor).to_spec() for anchor in (_ONE_ANCHOR, _OTHER_ANCHOR))
    return _fits(stored.to_spec(), one, other)


def _fits(stored: object, one: object, other: object) -> bool:
    """Whether a spec equals another; what differs from anchor to anchor may differ in the stored one, too."""
    every: list[object] = [stored, one, other]
    if isinstance(stored, dict) and isinstance(one, dict):
        specs = [cast("dict[str, object]", spec) for spec in every]
        keys = specs[0].keys()
        return keys == specs[1].keys() and all(_fits(*(spec[key] for spec in specs)) for key in keys)
    if isinstance(stored, list) and isinstance(one, list):
        parts = [cast("list[object]", part) for part in every]
        return len(parts[0]) == len(parts[1]) and all(map(_fits, *parts))
    return bool(stored == one or one != other)
