"""Values as JSON and back: what msgspec knows, and by its hooks models such as pydantic's, paths, and unions of them."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin

import msgspec
import msgspec.inspect

from duetime.model.text import MAX_DIGITS, TOO_DEEP, TOO_LONG, shown

ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What encoding raises for what cannot be written as JSON."""

STORABLE_TYPES: Final = (
    "JSON types, dataclasses, pydantic models, msgspec structs, dates, UUID, Decimal, paths or enums"
)
_MOST_PROBLEMS = 3
"""How many of the problems of a model an error names."""


def is_model(kind: Any) -> bool:
    """Whether a class reads and writes its instances itself, as pydantic's do; pydantic is not needed for that."""
    return callable(getattr(kind, "model_validate", None)) and callable(getattr(kind, "model_dump", None))


def is_readable(kind: Any) -> bool:
    """Whether a class that msgspec does not know can be written as JSON and read from it."""
    return isinstance(kind, type) and (
        isinstance(kind, _Union) or is_model(cast("Any", kind)) or issubclass(kind, PurePath)
    )


class _Union(type):
    """The class of classes that stand for unions with models or paths, which msgspec takes only alone."""

    members: tuple[Any, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        """Msgspec looks at what our hook has returned, which is an instance of a member."""
        return True


def union_members(kind: type) -> tuple[Any, ...] | None:
    """Return what a class stands for that `readable_type` has put in place of a union."""
    return kind.members if isinstance(kind, _Union) else None


def readable_type(kind: Any) -> Any:
    """Return a type in the form in which msgspec reads it."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {None, Literal}:
        return kind
    found = tuple(map(readable_type, parts))
    if origin in {Union, types.UnionType}:
        origin, others = Union, [part for part in found if part is not types.NoneType]
        if len(others) > 1 and any(is_readable(_bare(part)) for part in others):
            return _Union("OneOf", (), {"members": found})
    return kind if all(map(operator.is_, found, parts)) else origin[found]


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def type_parts(kind: Any) -> Iterator[object]:
    """Return what msgspec knows of a type and all that it is made of, each class once; `TypeError` if it cannot be read."""
    return _parts_of(msgspec.inspect.type_info(kind), set())


def custom_types(kind: Any) -> Iterator[Any]:
    """Return the classes in a type that msgspec does not know."""
    return (part.cls for part in type_parts(kind) if isinstance(part, msgspec.inspect.CustomType))


def _parts_of(info: object, seen: set[type]) -> Iterator[object]:
    yield info
    cls = getattr(info, "cls", None)
    if isinstance(cls, type):
        if cls in seen:
            return
        seen.add(cls)
    if isinstance(cls, _Union):
        for member in cls.members:
            yield from _parts_of(msgspec.inspect.type_info(member), seen)
    for name in getattr(info, "__struct_fields__", ()):
        value: object = getattr(info, name)
        for part in cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,):
            yield from _parts_of(part, seen)


def encode_problem(error: Exception) -> str:
    """Say why a value cannot be written as JSON."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    # Python's message says how to raise its limit, which would not help the processes that read the value.
    return TOO_LONG if f"({MAX_DIGITS} digits)" in str(error) else str(error)


def plain_values(value: object) -> Any:
    """Return the lists, dicts and scalars that a value is written as."""
    return msgspec.to_builtins(value, enc_hook=_dump)


def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads JSON as a type that `readable_type` has returned."""
    return msgspec.json.Decoder(kind, dec_hook=_read)


def read_text(text: str, kind: Any) -> Any:
    """Read what someone has typed as a type; raises `msgspec.ValidationError` or `TypeError` if it does not fit."""
    return msgspec.convert(text, readable_type(kind), strict=False, dec_hook=_read)


def _dump(value: Any) -> object:
    """Return what is written for a value that msgspec does not know."""
    if isinstance(value, PurePath):
        return str(value)
    name = type(value).__name__
    if not is_model(type(value)):
        raise TypeError(f"Encoding objects of type {name} is unsupported")
    try:
        return value.model_dump(mode="json", by_alias=True, round_trip=True, warnings=False)
    except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
        raise ValueError(f"{name} cannot be written: {shown(error)}") from None


encode_json: Final = msgspec.json.Encoder(enc_hook=_dump).encode
"""Returns the JSON of a value, or raises one of `ENCODE_ERRORS`."""
encode_in_order: Final = msgspec.json.Encoder(enc_hook=_dump, order="deterministic").encode
"""Returns equal JSON for equal values."""


def _read(kind: Any, value: object) -> object:
    """Return what was written for a type that msgspec does not know."""
    if isinstance(kind, _Union):
        return _read_member(kind, value)
    if is_model(kind):
        return _read_model(kind, value)
    if not is_readable(kind):
        return value
    if isinstance(value, str):
        return kind(value)
    raise ValueError(f"Expected `str`, got `{type(value).__name__}`")


def _read_member(union: _Union, value: object) -> object:
    """Return the value as the first member that takes it."""
    problems: list[str] = []
    for member in union.members:
        try:
            return msgspec.convert(value, member, dec_hook=_read)
        except msgspec.ValidationError as error:
            problems.append(str(error))
    raise ValueError("; ".join(problems))


def _read_model(kind: Any, value: object) -> object:
    # From JSON, pydantic reads dates and the like in strict models, too.
    from_json = getattr(kind, "model_validate_json", None)
    try:
        return kind.model_validate(value) if from_json is None else from_json(msgspec.json.encode(value))
    except Exception as error:  # noqa: BLE001 - whatever code of the user's raises
        raise ValueError(f"no valid {kind.__name__}: {_problems(error)}") from None


def _problems(error: Any) -> str:
    """Say what is wrong with a value; in pydantic's errors field by field, without the values, which may be secret."""
    try:
        found = [_problem(one["loc"], one["msg"]) for one in error.errors()]
    except Exception:  # noqa: BLE001 - it is no error of pydantic's
        return shown(error)
    more = len(found) - _MOST_PROBLEMS
    return "; ".join(found[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _problem(place: Sequence[str | int], text: str) -> str:
    return f"{'.'.join(map(str, place))}: {text}" if place else text
