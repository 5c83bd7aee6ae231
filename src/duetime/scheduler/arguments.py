"""Arguments as people write them: in a list and by name, or in commands as name=value pairs or JSON."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from duetime.errors import InvalidArguments
from duetime.model.shown import shown
from duetime.runtime.handler import Handler


class Arguments(NamedTuple):
    """The arguments of a call."""

    args: tuple[object, ...]
    kwargs: Mapping[str, object]


def call_of(args: Sequence[object] | None, kwargs: Mapping[str, object] | None) -> Arguments:
    """Return the arguments that were given in a list and by name; raise `InvalidArguments` for anything else."""
    if args is not None and (isinstance(args, str | bytes) or not isinstance(args, Sequence)):
        raise InvalidArguments(f"args must be a list such as args=[{shown(args)}]")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InvalidArguments(f"kwargs must be a dict such as kwargs={{'size': 3}}, not {shown(kwargs)}")
    return Arguments(tuple(args or ()), kwargs or {})


def read_arguments(handler: Handler, given: Sequence[str]) -> Arguments:
    """Read pairs as the types of the parameters, or one JSON object or array; what does not fit the task names."""
    if len(given) == 1 and given[0].lstrip().startswith(("{", "[")):
        return _read_json(given[0])
    hints = typing.get_type_hints(handler.function, include_extras=True)
    pairs: dict[str, object] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or name in pairs:
            problem = "twice" if separator else "without a value"
            message = (
                f"{text!r} gives {name!r} {problem}; write name=value pairs, or one JSON object or array"
            )
            raise InvalidArguments(message)
        pairs[name] = _read_value(value, hints.get(name, Any))
    return Arguments((), pairs)


def _read_json(text: str) -> Arguments:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from None
    return Arguments((), value) if isinstance(value, dict) else Arguments(tuple(value), {})


def _read_value(text: str, kind: Any) -> object:
    """Read a text as a parameter's type; what does not fit is left for the task's own check to name."""
    try:
        if kind is not Any:
            return msgspec.convert(text, kind, strict=False)
    except (msgspec.ValidationError, TypeError):
        pass
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text
