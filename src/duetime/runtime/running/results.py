"""Results between a function's return annotation and JSON."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from duetime.model.text import beyond_bounds
from duetime.runtime.running.arguments import MAX_PAYLOAD
from duetime.runtime.running.json_values import (
    ENCODE_ERRORS,
    encode_json,
    encode_problem,
    json_decoder,
    plain_values,
    readable_type,
)
from duetime.runtime.running.round_trip import find_nan


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
