"""Triggers as stored data, checked when they are read, and a stand-in for those that cannot be read."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from duetime.errors import DuetimeError, InvalidOption, InvalidTrigger
from duetime.model.job import JobTerms, OnCrash
from duetime.model.schedule.record import Misfire, Overlap, StoredSchedule
from duetime.model.stored import row_problem
from duetime.model.text import shown
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.calendars import calendar_from_spec
from duetime.model.triggers.combined import (
    DEEPEST_TRIGGER,
    MOST_TRIGGER_PARTS,
    AtMost,
    Between,
    Except,
    Intersection,
    Jitter,
    Union,
)
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import CalendarSteps, Every
from duetime.model.triggers.rrule import RRule

_READERS: dict[object, Callable[..., Trigger]] = {
    "cron": Cron,
    "every": Every,
    "steps": CalendarSteps,
    "rrule": RRule,
    "at": At,
    "union": Union,
    "intersection": Intersection,
    "except": Except,
    "between": Between,
    "at_most": AtMost,
    "jitter": Jitter,
}


def trigger_from_spec(spec: Mapping[str, Any]) -> Trigger:
    """Return the trigger that `to_spec` wrote; raise `InvalidTrigger` for anything else."""
    return _read(spec, 0)


def _read(spec: Mapping[str, Any], depth: int) -> Trigger:
    if depth > DEEPEST_TRIGGER:
        raise InvalidTrigger(f"a trigger's spec is nested more than {DEEPEST_TRIGGER} deep")
    if not isinstance(spec, Mapping):
        raise InvalidTrigger(f"a trigger's spec is an object with a type, not {type(spec).__name__}")
    kind = spec.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidTrigger(f"unknown trigger type {shown(kind)}; known are {', '.join(map(str, _READERS))}")
    values = {str(key): _read_value(str(key), value, depth) for key, value in spec.items() if key != "type"}
    try:
        return reader(**values)
    except TypeError as error:
        raise InvalidTrigger(_misfit(kind, reader, values) or f"{kind}: {error}") from error


def _misfit(kind: object, reader: Callable[..., Trigger], given: Collection[str]) -> str | None:
    """Say which keys a spec lacks or has too many; `None` when these are right."""
    known = inspect.signature(reader).parameters
    unknown = [key for key in given if key not in known]
    missing = [key for key, one in known.items() if one.default is one.empty and key not in given]
    wrong = [f"{kind!r} has no key {key!r}" for key in unknown] or [
        f"{kind!r} lacks {key!r}" for key in missing
    ]
    return f"a trigger of type {wrong[0]}; its keys are {', '.join(known)}" if wrong else None


def _read_value(key: str, value: Any, depth: int) -> Any:
    if key == "trigger":
        return _read(value, depth + 1)
    if key == "parts":
        return tuple(_read(part, depth + 1) for part in _checked_parts(value))
    if key == "calendar":
        return calendar_from_spec(value)
    return value


def _checked_parts(parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if not isinstance(parts, list) or len(parts) > MOST_TRIGGER_PARTS:
        raise InvalidTrigger(
            f"the parts of a trigger are a list of up to {MOST_TRIGGER_PARTS}, not {shown(parts)}"
        )
    return parts


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


_CHOICES: Final = {
    "overlap": get_args(Overlap),
    "misfire": get_args(Misfire),
    "on_crash": get_args(OnCrash),
}
_ONE_ANCHOR: Final[Instant] = 0
_OTHER_ANCHOR: Final[Instant] = (400 * 86_400 + 3_661) * SECOND + 1


def trigger_to_text(trigger: Trigger) -> str:
    """Return the spec of a trigger as JSON; equal rules, equal text."""
    return json.dumps(trigger.to_spec(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def trigger_from_text(text: str) -> Trigger:
    """Read what `trigger_to_text` wrote; raise `InvalidTrigger` for anything else."""
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
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
    try:
        return trigger_from_text(text)
    except ValueError:
        return None


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
    return (
        read(schedule.trigger)
        if problem is None
        else UnreadableTrigger(str(schedule.trigger), problem, "a row")
    )


def _unknown_word(schedule: StoredSchedule) -> str | None:
    for name, known in _CHOICES.items():
        if (word := getattr(schedule, name)) not in known:
            return f"{name} is {shown(word)}, which this version does not know"
    return None


def same_rule(stored: Trigger, written: Trigger) -> bool:
    """Whether a stored trigger is one that was written, wherever the stored one counts from."""
    is_, one, other = (
        dict(_leaves(trigger.to_spec()))
        for trigger in (stored, written.anchored(_ONE_ANCHOR), written.anchored(_OTHER_ANCHOR))
    )
    # What differs from anchor to anchor may differ in the stored one, too.
    return is_.keys() == one.keys() and all(
        is_[path] == one[path] or one[path] != other[path] for path in is_
    )


def _leaves(spec: object, *path: object) -> Iterator[tuple[tuple[object, ...], object]]:
    """Yield each plain value in a spec with the way to it."""
    if not isinstance(spec, (dict, list)):
        yield path, spec
        return
    inner = cast("dict[object, object] | list[object]", spec)
    for key, value in inner.items() if isinstance(inner, dict) else enumerate(inner):
        yield from _leaves(value, *path, key)
