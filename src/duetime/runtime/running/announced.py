"""Arguments of tasks that workers have announced, where there is no code to check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, cast

import msgspec

from duetime.errors import InvalidArguments, PayloadTooLarge
from duetime.model.secrets import MASK
from duetime.model.stored.announced import TaskAnnouncement, read_options
from duetime.model.text import MAX_DEPTH, beyond_bounds, join_words, shown
from duetime.runtime.codec.arguments import MAX_PAYLOAD, Arguments
from duetime.runtime.codec.json_values import ENCODE_ERRORS, encode_in_order, encode_json, encode_problem
from duetime.runtime.running.handler import Handler

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list, tuple), "object": (dict,),
}  # fmt: skip
_PLAIN: Final = frozenset({"string", "integer", "boolean"})
"""Types whose values are told from each other by their JSON."""


class SchemaArguments(Arguments):
    """Encodes the arguments of a task of which there is only a schema: their names and their outermost types are checked."""

    def __init__(self, schema: Mapping[str, Any], *, task: str) -> None:
        self._task = task
        self._properties: Mapping[str, Any] = schema.get("properties", {})
        self._required: Sequence[str] = schema.get("required", ())
        self.secrets = frozenset(name for name, kind in self._properties.items() if kind.get("writeOnly"))

    def encode(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Return the JSON object for a call, or raise `InvalidArguments`."""
        given = {**dict(zip(self._properties, args, strict=False)), **kwargs}
        if len(args) > len(self._properties) or len(given) < len(args) + len(kwargs):
            raise self._misfit("too many arguments, or one that is given twice")
        if unknown := sorted(given.keys() - self._properties.keys()):
            raise self._misfit(
                f"it has no {unknown[0]!r}; it takes {join_words([*self._properties] or ['nothing'])}"
            )
        if missing := [name for name in self._required if name not in given]:
            raise self._misfit(f"{missing[0]!r} is missing")
        try:
            raw = encode_json(given)
        except ENCODE_ERRORS as error:
            raise self._misfit(encode_problem(error)) from None
        if len(raw) > MAX_PAYLOAD:
            raise PayloadTooLarge(
                f"arguments of {self._task} take {len(raw):,} bytes; at most {MAX_PAYLOAD:,} are stored"
            )
        if (problem := beyond_bounds(raw, deepest=MAX_DEPTH + 1)) is not None:
            raise self._misfit(problem)
        for name, value in msgspec.json.decode(raw).items():
            if not _fits(self._properties[name], value):
                kind = self._properties[name].get("type", "another type")
                got = MASK if name in self.secrets else shown(value)
                raise self._misfit(f"expected {kind}, got {got} - at `$.{name}`")
            if value == MASK and name in self.secrets:
                raise self._misfit(f"{name!r} is masked; give its value in place of {MASK}")
        return raw.decode()

    def value_of(self, payload: str, parameter: str) -> str:
        """Return one argument of a call as JSON; raise `InvalidArguments` where only the code can tell equal values."""
        kind: Mapping[str, Any] = self._properties.get(parameter, {})
        value = msgspec.json.decode(payload).get(parameter, kind.get("default"))
        if kind.get("type") not in _PLAIN or "format" in kind or value is None:
            raise self._misfit(
                f"its limit is for each {parameter!r}, which only its code can tell from others; enqueue it where the code is"
            )
        return encode_in_order(value).decode()

    def _misfit(self, detail: str) -> InvalidArguments:
        return InvalidArguments(f"arguments of {self._task} do not fit: {detail}")


def _fits(schema: Mapping[str, Any], value: object) -> bool:
    """Whether a value has one of the types that a schema names; `True` where it does not say."""
    if "enum" in schema:
        return value in schema["enum"]
    if "anyOf" in schema:
        return any(_fits(one, value) for one in schema["anyOf"])
    said: str | list[str] = schema.get("type", [])
    kinds = [said] if isinstance(said, str) else said
    return not kinds or any(_is_of(kind, value) for kind in kinds)


def _is_of(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def announced_handler(task: TaskAnnouncement) -> Handler:
    """Return what jobs of an announced task are made with; it cannot be called."""
    try:
        schema: object = msgspec.json.decode(task.schema)
    except (ValueError, RecursionError):
        schema = None
    arguments = SchemaArguments(
        cast("Mapping[str, Any]", schema) if isinstance(schema, dict) else {}, task=task.name
    )
    options = read_options(task).task
    return Handler(name=task.name, function=_not_here, is_async=False, options=options, arguments=arguments)


def _not_here(**_: Any) -> NoReturn:
    raise NotImplementedError
