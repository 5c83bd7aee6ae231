"""Schedules as they are written in files that move them from one database to another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from duetime.errors import InvalidOption
from duetime.model import durations
from duetime.model.bounds import MAX_DEPTH, TOO_DEEP, is_deeper
from duetime.model.instants import Instant, Micros, to_datetime
from duetime.model.job import OnCrash
from duetime.model.names import check_name, check_reason, check_text
from duetime.model.portable_triggers import TRIGGER_KEYS, check_moment, read_trigger, written_trigger
from duetime.model.schedule import StoredSchedule
from duetime.model.schedule_options import ScheduleOptions, ScheduleOptionValues, schedule_options
from duetime.model.shown import shown
from duetime.model.task import check_on_crash
from duetime.model.terms import FOREVER, Terms
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.text import from_text

_FOREVER = "forever"
_TTLS = ("result_ttl", "failure_ttl")
_CALLBACKS = {"success", "failure", "cancel"}
_OPTIONS = ScheduleOptionValues.__optional_keys__ - {"on_success", "on_failure", "on_cancel"}
_KEYS = (
    {"name", "task", "arguments", "on_crash", "callbacks", "gate", "paused", "made"} | TRIGGER_KEYS | _OPTIONS
)


class Text(NamedTuple):
    """A file of schedules."""

    text: str
    size: int
    """How many schedules it has; what is only a comment does not count."""
    notes: list[str]
    """What this kind of file cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause that moves with its schedule."""

    reason: str | None = None
    by: str | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A schedule as a file asks for it."""

    name: str
    task: str
    arguments: Mapping[str, Any] | tuple[str, ...]
    """By parameter name, as JSON values; or words as people write them, to be read by the task's signature."""
    trigger: Trigger
    options: ScheduleOptions
    on_crash: OnCrash | None = None
    gate: str | None = None
    """The limit that its jobs run under, as the task's own code had it."""
    pause: Pause | None = None
    made: int = 0


def written(schedule: StoredSchedule) -> dict[str, Any]:
    """Return a schedule as JSON values that `read` takes; what leaves something to the task is left out."""
    terms = Terms.from_text(schedule.terms)
    trigger = from_text(schedule.trigger)
    entry: dict[str, Any] = {
        "name": schedule.name,
        **written_trigger(trigger, name=schedule.name),
        "task": schedule.task,
        "arguments": json.loads(schedule.payload),
        "queue": schedule.queue,
        "priority": schedule.priority,
        "on_crash": schedule.on_crash,
        "retries": schedule.retries,
        "timeout": _length(schedule.timeout),
        "overlap": schedule.overlap,
        "overlap_limit": schedule.overlap_limit,
        "misfire": schedule.misfire,
        "misfire_window": _written_window(schedule),
        "misfire_limit": schedule.misfire_limit if schedule.misfire == "all" else None,
        "pause_after": schedule.pause_after,
        "tags": list(terms.tags) or None,
        "expires": _length(terms.expires),
        "result_ttl": _length(terms.result_ttl),
        "failure_ttl": _length(terms.failure_ttl),
        "callbacks": None if terms.callbacks is None else json.loads(terms.callbacks),
        "gate": terms.gate,
        "paused": _written_pause(schedule),
        "made": (schedule.made or None) if trigger.times is not None else None,
    }
    return {key: value for key, value in entry.items() if value is not None and value != {}}


def read(entry: Mapping[str, Any]) -> Wanted:
    """Check what a file has for one schedule; raises one of the errors for invalid values."""
    if unknown := sorted(set(entry) - _KEYS):
        text = f"unknown key {unknown[0]!r}; a schedule has {', '.join(sorted(_KEYS))}"
        raise InvalidOption(text)
    name = check_name(_required(entry, "name"), what="schedule name")
    on_crash, gate = entry.get("on_crash"), entry.get("gate")
    return Wanted(
        name=name,
        task=check_name(_required(entry, "task"), what="task"),
        arguments=_arguments(entry.get("arguments", {})),
        trigger=read_trigger(entry, name=name),
        options=_options(entry),
        on_crash=None if on_crash is None else check_on_crash(on_crash),
        gate=None if gate is None else _text(gate, what="gate"),
        pause=_read_pause(entry["paused"]) if entry.get("paused") is not None else None,
        made=_count(entry.get("made", 0), what="made"),
    )


def _written_window(schedule: StoredSchedule) -> str | None:
    # With `all` there is none unless it is said.
    endless = schedule.misfire == "all" and schedule.misfire_window == durations.LONGEST
    return None if endless else _length(schedule.misfire_window)


def _written_pause(schedule: StoredSchedule) -> object:
    if schedule.paused_at is None:
        return None
    until = schedule.paused_until
    pause = {
        "reason": schedule.paused_reason,
        "by": schedule.paused_by,
        "until": None if until is None else to_datetime(until).isoformat(),
    }
    return {key: value for key, value in pause.items() if value is not None} or True


def _read_pause(value: object) -> Pause | None:
    if value in (True, False):
        return Pause() if value else None
    given = _object(value, {"reason", "by", "until"}, what="paused")
    reason, by, until = given.get("reason"), given.get("by"), given.get("until")
    return Pause(
        reason=None if reason is None else check_reason(reason),
        by=None if by is None else _text(by, what="paused.by"),
        until=None if until is None else check_moment(until, what="paused.until"),
    )


def _options(entry: Mapping[str, Any]) -> ScheduleOptions:
    values = {key: entry[key] for key in sorted(_OPTIONS & entry.keys())}
    if not isinstance(values.get("tags", []), list):
        text = f"tags must be a list, not {shown(values['tags'])}"
        raise InvalidOption(text)
    for key in _TTLS:
        if values.get(key) == _FOREVER:
            values[key] = None
    options = schedule_options(cast("ScheduleOptionValues", values))
    if entry.get("callbacks") is None:
        return options
    callbacks = _object(entry["callbacks"], _CALLBACKS, what="callbacks")
    try:
        text = json.dumps(callbacks, sort_keys=True)
    except RecursionError:
        text = ""
    if not text or is_deeper(text.encode(), MAX_DEPTH):
        raise InvalidOption(f"callbacks cannot be stored: {TOO_DEEP}")
    terms = replace(options.job.terms, callbacks=text)
    return replace(options, job=replace(options.job, terms=terms))


def _arguments(value: object) -> Mapping[str, Any] | tuple[str, ...]:
    if isinstance(value, tuple):
        return cast("tuple[str, ...]", value)
    if not isinstance(value, Mapping):
        text = f"arguments must be an object with the names of parameters, not {shown(value)}"
        raise InvalidOption(text)
    return cast("Mapping[str, Any]", value)


def _object(value: object, keys: set[str], *, what: str) -> Mapping[str, Any]:
    said = cast("Mapping[str, Any]", value)
    if not isinstance(value, Mapping) or set(said) - keys:
        text = f"{what} must be an object with {', '.join(sorted(keys))}, not {shown(said)}"
        raise InvalidOption(text)
    return said


def _required(entry: Mapping[str, Any], key: str) -> Any:
    if key not in entry:
        text = f"{key} is missing"
        raise InvalidOption(text)
    return entry[key]


def _text(value: object, *, what: str) -> str:
    if not isinstance(value, str):
        text = f"{what} must be text, not {shown(value)}"
        raise InvalidOption(text)
    return check_text(value, what=what)


def _count(value: object, *, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        text = f"{what} must be a whole number from 0, not {shown(value)}"
        raise InvalidOption(text)
    return value


def _length(micros: Micros | None) -> str | None:
    if micros is None:
        return None
    return _FOREVER if micros == FOREVER else durations.describe(micros)
