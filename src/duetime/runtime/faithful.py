"""Whether a value came back from JSON as what it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from duetime.model.shown import shown

Parts: TypeAlias = Iterator[tuple[str, object, object]]


def find_change(value: object, rebuilt: object, path: str) -> str | None:
    """Tell what would come back as something else, and where; `None` when nothing would."""
    was, now = _as_dict(value), _as_dict(rebuilt)
    if was is not None and now is not None:
        return _in_dict(was, now, path)
    if type(value) is not type(rebuilt):
        return None if _equals_its_base(value, rebuilt) else _describe(value, path)
    if isinstance(value, (list, tuple)):
        return _first(_items(cast("Sequence[object]", value), cast("Sequence[object]", rebuilt), path))
    return _first((f"{path}.{name}", getattr(value, name), getattr(rebuilt, name)) for name in _fields(value))


def _as_dict(value: object) -> dict[object, object] | None:
    return cast("dict[object, object]", value) if isinstance(value, dict) else None


def _in_dict(value: dict[object, object], rebuilt: dict[object, object], path: str) -> str | None:
    foreign = next((key for key in value if key not in rebuilt), None)
    if foreign is not None:
        return f"JSON has only text keys, not {shown(foreign)} - at `$.{path}`"
    return _first((f"{path}.{key}", item, rebuilt[key]) for key, item in value.items())


def _items(value: Sequence[object], rebuilt: Sequence[object], path: str) -> Parts:
    return ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(value, rebuilt, strict=True)))


def _first(parts: Parts) -> str | None:
    return next((found for path, a, b in parts if (found := find_change(a, b, path)) is not None), None)


def _fields(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    return ()


def _equals_its_base(value: object, rebuilt: object) -> bool:
    """Whether it comes back as an equal value of a wider type: a text for a StrEnum, 1.0 for 1."""
    wider = isinstance(value, type(rebuilt)) or (type(value) is int and type(rebuilt) is float)
    return wider and value == rebuilt


def _describe(value: object, path: str) -> str:
    if isinstance(value, float):
        return f"JSON has no NaN or infinity - at `$.{path}`"
    name = type(value).__name__
    return f"a {name} would not come back as one; annotate the parameter with its type - at `$.{path}`"
