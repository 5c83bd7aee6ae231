"""Results between a function's return annotation and JSON."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from duetime.errors import InvalidTask
from duetime.model.outcome import Cancel, Retry, Snooze
from duetime.model.text import beyond_bounds
from duetime.runtime.codec.arguments import MAX_PAYLOAD
from duetime.runtime.codec.json_values import (
    ENCODE_ERRORS,
    STORABLE_TYPES,
    custom_types,
    encode_json,
    encode_problem,
    is_readable,
    json_decoder,
    plain_values,
    readable_type,
)
from duetime.runtime.codec.round_trip import find_nan

_STORABLE: Final = (dict, Cancel, Retry, Snooze)
"""Whose subclasses msgspec writes, and what a handler may return to say something else."""
_NEVER_STORABLE: Final[tuple[Any, ...]] = (Iterator, AsyncIterator, Awaitable, Callable)


def encode_result(value: object) -> tuple[str | None, str | None]:
    """Return the JSON of a result, or why there is none: a job that ran has succeeded all the same."""
    if value is None:
        return None, None
    try:
        raw = encode_json(value)
    except ENCODE_ERRORS as error:
        return None, f"the result cannot be stored as JSON: {encode_problem(error)}"
    if len(raw) > MAX_PAYLOAD:
        return None, f"the result takes {len(raw):,} bytes as JSON; at most {MAX_PAYLOAD:,} are stored"
    if (problem := beyond_bounds(raw)) is not None:
        return None, f"the result cannot be stored as JSON: {problem}"
    if b"null" in raw and find_nan(plain_values(value), "result") is not None:
        return None, "the result cannot be stored as JSON: it holds NaN or infinity"
    return raw.decode(), None


@functools.lru_cache(maxsize=1024)
def result_decoder(function: Callable[..., Any]) -> Callable[[str], Any]:
    """Return what reads the results of a function, as the type that it is annotated with if JSON can be rebuilt into it."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        return json_decoder(readable_type(hints["return"])).decode
    except (KeyError, NameError, TypeError, ValueError, AttributeError):
        return msgspec.json.decode


def check_result_type(function: Callable[..., Any], *, task: str) -> None:
    """Raise `InvalidTask` for a function whose annotation says that it returns what can never be stored."""
    kind = typing.get_type_hints(function, include_extras=True).get("return", Any)
    try:
        found = [*custom_types(readable_type(kind))]
    except (TypeError, ValueError):
        # What cannot be read by its annotation may be written all the same.
        return
    for cls in found:
        if not _may_be_stored(cls):
            raise InvalidTask(
                f"{task}{inspect.signature(function)} returns {cls.__module__}.{cls.__qualname__}, which can never be "
                f"stored as JSON. Return {STORABLE_TYPES}, or nothing; with result_ttl=0 no result is stored"
            )


def _may_be_stored(cls: Any) -> bool:
    """Whether JSON can be made of some instances of a class; of a concrete one, this means of its own."""
    if is_readable(cls) or cls is object or issubclass(cls, _STORABLE):
        return True
    if issubclass(cls, _NEVER_STORABLE):
        return False
    return inspect.isabstract(cls) or getattr(cls, "_is_protocol", False)
