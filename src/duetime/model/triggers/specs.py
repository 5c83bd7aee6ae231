"""Triggers as stored data, read back with suspicion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from duetime.errors import InvalidTrigger
from duetime.model.shown import shown
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import Every


def _read_at(*, instants: list[Any]) -> At:
    return At(tuple(instants))


_READERS: dict[object, Callable[..., Trigger]] = {"cron": Cron, "every": Every, "at": _read_at}


def from_spec(spec: Mapping[str, Any]) -> Trigger:
    """Return the trigger that `to_spec` wrote; raise `InvalidTrigger` for anything else."""
    if not isinstance(spec, Mapping):
        raise InvalidTrigger(f"a trigger's spec is an object with a type, not {type(spec).__name__}")
    kind = spec.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise InvalidTrigger(f"unknown trigger type {shown(kind)}; known are {', '.join(map(str, _READERS))}")
    try:
        return reader(**{str(key): value for key, value in spec.items() if key != "type"})
    except TypeError as error:
        raise InvalidTrigger(f"a {kind!r} trigger cannot be read from its spec: {error}") from error
