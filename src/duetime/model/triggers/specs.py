"""Triggers as stored data, read back with suspicion."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from duetime.errors import InvalidTrigger
from duetime.model.shown import shown
from duetime.model.triggers.at import At
from duetime.model.triggers.at_most import AtMost
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.between import Between
from duetime.model.triggers.compound import DEEPEST, MOST_PARTS
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import Every
from duetime.model.triggers.intersection import Intersection
from duetime.model.triggers.jitter import Jitter
from duetime.model.triggers.minus import Except
from duetime.model.triggers.rrule import RRule
from duetime.model.triggers.steps import Steps
from duetime.model.triggers.union import Union


def _read_at(*, instants: list[Any]) -> At:
    return At(tuple(instants))


_READERS: dict[object, Callable[..., Trigger]] = {
    "cron": Cron,
    "every": Every,
    "steps": Steps,
    "rrule": RRule,
    "at": _read_at,
    "union": Union,
    "intersection": Intersection,
    "except": Except,
    "between": Between,
    "at_most": AtMost,
    "jitter": Jitter,
}


def from_spec(spec: Mapping[str, Any]) -> Trigger:
    """Return the trigger that `to_spec` wrote; raise `InvalidTrigger` for anything else."""
    return _read(spec, 0)


def _read(spec: Mapping[str, Any], depth: int) -> Trigger:
    if depth > DEEPEST:
        raise InvalidTrigger(f"a trigger's spec is nested more than {DEEPEST} deep")
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
        # Imported here: calendars use the zones of this package, which would otherwise have to come before itself.
        from duetime.model.calendars.specs import from_spec as calendar_from_spec

        return calendar_from_spec(value)
    return value


def _checked_parts(parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if not isinstance(parts, list) or len(parts) > MOST_PARTS:
        raise InvalidTrigger(f"the parts of a trigger are a list of up to {MOST_PARTS}, not {shown(parts)}")
    return parts
