"""What of a value would come back from JSON as something else, and where."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias, cast

import msgspec
import msgspec.inspect

from duetime.model.text import shown
from duetime.runtime.codec.json_values import is_model, readable_type, type_parts

NO_NAN = "JSON has no NaN or infinity"

FindChange: TypeAlias = Callable[[object, object, str], str | None]
"""Tells what of a value would come back as something else, and where: given the value, what would come back, and a path."""


def find_nan(value: object, path: str) -> str | None:
    """Return where among built-in values NaN or infinity is, which the encoder writes as null."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    found = (find_nan(item, where) for where, item, _ in _pairs(value, value, path))
    return next((place for place in found if place is not None), None)


def change_finders(kind: Any) -> Iterator[FindChange]:
    """Return what is to look at values of a type: most types need nothing."""
    parts = [*type_parts(readable_type(kind))]
    if any(isinstance(part, msgspec.inspect.AnyType) for part in parts):
        yield find_json_change
    if any(isinstance(part, msgspec.inspect.CustomType) for part in parts):
        yield find_model_change


def find_json_change(value: object, rebuilt: object, path: str) -> str | None:
    """Tell what no type says how to rebuild, so that it would come back as JSON has it; `None` when nothing would."""
    if (was := _as_dict(value)) is not None and (now := _as_dict(rebuilt)) is not None:
        foreign = next((key for key in was if key not in now), None)
        if foreign is not None:
            return f"JSON has only text keys, not {shown(foreign)} - at `$.{path}`"
    elif type(value) is not type(rebuilt):
        return None if _equals_its_base(value, rebuilt) else _describe_change(value, path)
    changes = (find_json_change(a, b, where) for where, a, b in _pairs(value, rebuilt, path))
    return next((change for change in changes if change is not None), None)


def find_model_change(value: object, rebuilt: object, path: str, *, inside: bool = False) -> str | None:
    """Tell what a model or a path would come back as, if not as it is: a model of another class, or without a secret."""
    if is_model(type(value)) or isinstance(value, PurePath):
        if type(value) is not type(rebuilt):
            return f"{type(value).__name__} would come back as {type(rebuilt).__name__} - at `$.{path}`"
        inside = True
    pairs = [*_pairs(value, rebuilt, path)]
    whole = not pairs or type(value) is not type(rebuilt)
    if inside and whole and not _equal(value, rebuilt):
        return f"it would come back as another value - at `$.{path}`"
    changes = (find_model_change(a, b, where, inside=inside) for where, a, b in pairs)
    return next((change for change in changes if change is not None), None)


def _pairs(value: object, rebuilt: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Return the parts of two values in pairs; none where they have none, or not the same."""
    if (was := _as_dict(value)) is not None and (now := _as_dict(rebuilt)) is not None:
        if was.keys() == now.keys():
            yield from ((f"{path}.{key}", item, now[key]) for key, item in was.items())
    elif (some := _as_sequence(value)) is not None and (others := _as_sequence(rebuilt)) is not None:
        if len(some) == len(others):
            yield from ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(some, others, strict=True)))
    elif type(value) is type(rebuilt):
        found = _fields(rebuilt)
        yield from (
            (f"{path}.{name}", item, found[name]) for name, item in _fields(value).items() if name in found
        )


def _as_dict(value: object) -> dict[object, object] | None:
    return cast("dict[object, object]", value) if isinstance(value, dict) else None


def _as_sequence(value: object) -> Sequence[object] | None:
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else None


def _fields(value: Any) -> dict[str, object]:
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if is_model(type(value)):
        return getattr(value, "__dict__", {}) | (getattr(value, "model_extra", None) or {})
    return {}


def _equal(value: object, rebuilt: object) -> bool:
    try:
        return bool(value == rebuilt)
    except Exception:  # noqa: BLE001 - a value that cannot tell is not known to be the same
        return False


def _equals_its_base(value: object, rebuilt: object) -> bool:
    """Whether it comes back as an equal value of a wider type: a text for a StrEnum, 1.0 for 1."""
    wider = isinstance(value, type(rebuilt)) or (type(value) is int and type(rebuilt) is float)
    return wider and value == rebuilt


def _describe_change(value: object, path: str) -> str:
    if isinstance(value, float):
        return f"{NO_NAN} - at `$.{path}`"
    name = type(value).__name__
    return f"a {name} would not come back as one; annotate the parameter with its type - at `$.{path}`"
