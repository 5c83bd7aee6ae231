"""Triggers as people write them in files and on the command line: `cron: 0 3 * * *`, `every: 15m`, `at: [...]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, cast

from duetime.errors import InvalidTime, InvalidTrigger, InvalidValue
from duetime.model import durations
from duetime.model.instants import Instant, from_datetime, to_datetime
from duetime.model.shown import shown
from duetime.model.triggers.at import at
from duetime.model.triggers.base import Trigger, check_times
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.specs import from_spec

TRIGGER_KEYS: Final = frozenset(
    {"cron", "every", "at", "rrule", "trigger", "tz", "start", "end", "times", "jitter"}
)

_KINDS = ("cron", "every", "at", "rrule", "trigger")
_BESIDE = {"cron": {"tz", "start"}, "every": {"tz", "start"}, "rrule": {"tz", "start"}}
_STEPS = re.compile(r"(?:(\d{1,4}) ?(?:years?|y))? ?(?:(\d{1,4}) ?(?:months?|mo))?")
_YEAR = 12
_EXAMPLE = "2030-01-31T09:00:00+01:00"


def written_trigger(trigger: Trigger, *, name: str) -> dict[str, Any]:
    """Return a trigger in words where there are some that say the same, else its spec under `trigger`."""
    spec = trigger.to_spec()
    words = _words(spec)
    try:
        same = read_trigger(words, name=name) == trigger.seeded(name)
    except InvalidValue:
        same = False
    return words if same and "trigger" not in words else {"trigger": spec}


def read_trigger(entry: Mapping[str, Any], *, name: str) -> Trigger:
    """Return the trigger that is written among other things; raises `InvalidTrigger`, with a caret where it can."""
    given = [kind for kind in _KINDS if entry.get(kind) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        text = f"a schedule has one of {', '.join(_KINDS)}; this has {found}"
        raise InvalidTrigger(text)
    (kind,) = given
    for beside in ("tz", "start"):
        if entry.get(beside) is not None and beside not in _BESIDE.get(kind, ()):
            text = f"{beside} does not go with {kind}"
            raise InvalidTrigger(text)
    trigger = _every(entry) if kind == "every" else _bounded(_read(kind, entry), entry)
    jitter = entry.get("jitter")
    return (trigger if jitter is None else trigger.jitter(jitter)).seeded(name)


def check_moment(value: object, *, what: str) -> Instant:
    """Read a moment, as text in ISO 8601 or as what YAML makes of it; raises `InvalidTime`."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        said = value.isoformat() if isinstance(value, date) else shown(value)
        raise InvalidTime(f"{what} {said} is no moment; write {_EXAMPLE}")
    if moment.utcoffset() is None:
        raise InvalidTime(f"{what} {moment.isoformat()} has no time zone; write {_EXAMPLE}")
    return from_datetime(moment, what=what)


def _words(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words for a spec, from the inside out; together they may mean something else when they are read."""
    inner: dict[str, Any] = _words(spec["trigger"]) if "trigger" in spec else {}
    bounds = {key: _iso(spec[key]) for key in ("start", "end") if key in spec}
    own: dict[str, Any]
    match spec["type"]:
        case "cron":
            own = {"cron": spec["expression"]} | ({} if spec["tz"] == "UTC" else {"tz": spec["tz"]})
        case "every":
            own = {"every": durations.describe(spec["interval"])}
        case "steps":
            months = spec["months"]
            own = {"every": f"{months} month{'s' * (months > 1)}", "tz": spec["tz"]}
        case "rrule":
            own = {"rrule": spec["rule"], "tz": spec["tz"]}
        case "at":
            own = {"at": [_iso(instant) for instant in spec["instants"]]}
        case "between":
            own = {}
        case "at_most":
            own = {"times": spec["most"]}
        case "jitter":
            own = {"jitter": durations.describe(spec["most"])}
        case _:
            return {"trigger": spec}
    times = {"times": spec["times"]} if "times" in spec else {}
    return inner | own | bounds | times


def _read(kind: str, entry: Mapping[str, Any]) -> Trigger:
    value, tz = entry[kind], entry.get("tz")
    match kind:
        case "cron":
            return cron(value, tz=tz or "UTC")
        case "rrule":
            if (start := _moment(entry, "start")) is None:
                raise InvalidTrigger("rrule needs a start, from which it counts")
            return rrule(value, start=start, tz=tz)
        case "at":
            moments = cast("list[object]", value) if isinstance(value, list) else [value]
            return at([to_datetime(check_moment(moment, what="at")) for moment in moments])
        case _:
            return from_spec(value)


def _every(entry: Mapping[str, Any]) -> Trigger:
    """Return equal intervals, or steps on the calendar for months and years."""
    value, tz, times = entry["every"], entry.get("tz"), entry.get("times")
    start, end = _moment(entry, "start"), _moment(entry, "end")
    steps = _STEPS.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
    if steps is not None:
        months = int(steps[1] or 0) * _YEAR + int(steps[2] or 0)
        return every(months=months, start=start, end=end, times=times, tz=tz)
    if tz is not None:
        raise InvalidTrigger("tz goes with every where it counts months or years, e.g. every: 1 month")
    return every(value, start=start, end=end, times=times)


def _bounded(trigger: Trigger, entry: Mapping[str, Any]) -> Trigger:
    """Return a trigger with the range and the number of jobs that are written beside it."""
    start = None if entry.get("rrule") is not None else _moment(entry, "start")
    end, times = _moment(entry, "end"), entry.get("times")
    if start is not None or end is not None:
        trigger = trigger.between(start, end)
    if times is not None:
        check_times(times, what="times")
        trigger = trigger.at_most(times)
    return trigger


def _moment(entry: Mapping[str, Any], key: str) -> datetime | None:
    value = entry.get(key)
    return None if value is None else to_datetime(check_moment(value, what=key))


def _iso(instant: Instant) -> str:
    return to_datetime(instant).isoformat()
