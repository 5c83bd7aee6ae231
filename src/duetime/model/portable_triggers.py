"""Triggers as people write them in files and on the command line: `cron: 0 3 * * *`, `every: 15m`, `at: [...]`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model import durations
from duetime.model.instants import Instant, from_datetime, to_datetime
from duetime.model.shown import shown
from duetime.model.triggers import Trigger, at, cron, every, from_spec, rrule

TRIGGER_KEYS: Final = frozenset(
    {"cron", "every", "at", "rrule", "trigger", "tz", "start", "end", "times", "jitter"}
)

_KINDS = ("cron", "every", "at", "rrule", "trigger")
_BESIDE = {"cron": {"tz"}, "every": {"start"}, "rrule": {"start", "tz"}}
_EXAMPLE = "2030-01-31T09:00:00+01:00"


def written_trigger(trigger: Trigger, *, name: str) -> dict[str, Any]:
    """Return a trigger in words where there are some, else its spec under `trigger`."""
    spec: dict[str, Any] = trigger.to_spec()
    keys = set(spec)
    if spec["type"] == "cron" and spec.get("seed", name) == name:
        zone = {} if spec["tz"] == "UTC" else {"tz": spec["tz"]}
        return {"cron": spec["expression"], **zone}
    if spec["type"] == "every" and keys == {"type", "interval", "start"}:
        return {"every": durations.describe(spec["interval"]), "start": _iso(spec["start"])}
    if spec["type"] == "rrule":
        return {"rrule": spec["rule"], "tz": spec["tz"], "start": _iso(spec["start"])}
    if spec["type"] == "at":
        return {"at": [_iso(instant) for instant in spec["instants"]]}
    return {"trigger": spec}


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
    return _bounded(_read(kind, entry), entry).seeded(name)


def check_moment(value: object, *, what: str) -> Instant:
    """Read a moment, as text in ISO 8601 or as what YAML makes of it; raises `InvalidTime`."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidTime(f"{what} {shown(value)} is no moment; write {_EXAMPLE}") from None
    return from_datetime(cast("datetime", value), what=what)


def _read(kind: str, entry: Mapping[str, Any]) -> Trigger:
    value, tz, start = entry[kind], entry.get("tz"), entry.get("start")
    begin = None if start is None else to_datetime(check_moment(start, what="start"))
    match kind:
        case "cron":
            return cron(value, tz=tz or "UTC")
        case "every":
            return every(value, start=begin)
        case "rrule":
            if begin is None:
                raise InvalidTrigger("rrule needs a start, from which it counts")
            return rrule(value, start=begin, tz=tz)
        case "at":
            moments = cast("list[object]", value) if isinstance(value, list) else [value]
            return at([to_datetime(check_moment(moment, what="at")) for moment in moments])
        case _:
            return from_spec(value)


def _bounded(trigger: Trigger, entry: Mapping[str, Any]) -> Trigger:
    """Return a trigger with the end, the number of jobs and the jitter that are written beside it."""
    end, times, jitter = (entry.get(key) for key in ("end", "times", "jitter"))
    if end is not None:
        trigger = trigger.between(end=to_datetime(check_moment(end, what="end")))
    if times is not None:
        trigger = trigger.at_most(times)
    return trigger if jitter is None else trigger.jitter(jitter)


def _iso(instant: Instant) -> str:
    return to_datetime(instant).isoformat()
