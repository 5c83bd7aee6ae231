"""Records as answers: their JSON, and the models by which OpenAPI describes it."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.responses import Response

from duetime.model.triggers.base import Trigger

Seconds: TypeAlias = Annotated[float, Field(description="Seconds.")]
_JSON: Final = "application/json"
_PLAIN: Final = frozenset({type(None), str, bool, int, float, datetime})
"""What msgspec writes as it is to be written."""


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as the body of an answer."""
    return Response(msgspec.json.encode(plain(value)), status, headers=headers, media_type=_JSON)


def plain(value: object) -> Any:
    """Return a record, or whatever it holds, as values that JSON has; durations as seconds."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_dataclass(kind):
        return {name: plain(getattr(value, name)) for name in _shown_fields(kind)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, cast("set[Any]", value)))
    return value.total_seconds() if isinstance(value, timedelta) else value


@functools.cache
def _shown_fields(record: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(record) if not one.name.startswith("_"))


@functools.cache
def model_of(record: type, name: str | None = None, **shapes: Any) -> type[BaseModel]:
    """Return the model of a record, field by field, with what the record's own text says of each.

    `shapes` are the types of fields that are not as they are in the record.
    """
    said, hints = _field_texts(record), get_type_hints(record)
    found: dict[str, Any] = {}
    for one in fields(record):
        # A model has some names of its own.
        called = f"{one.name}_" if hasattr(BaseModel, one.name) else one.name
        alias = None if called == one.name else one.name
        shape = shapes.get(one.name) or _shape(hints[one.name])
        found[called] = (shape, Field(alias=alias, description=said.get(one.name)))
    title = name or record.__name__.removesuffix("Record")
    model: type[BaseModel] = create_model(title, __doc__=inspect.getdoc(record), **found)
    return model


def page_of(item: type[BaseModel], *, partial: str | None = None) -> type[BaseModel]:
    """Return the model of a page of a list; `partial` says what it means that the search ended before it was full."""
    said = "What to pass as `cursor` for the next page; null after the last."
    found: dict[str, Any] = {"items": (list[item], ...), "next": (str | None, Field(description=said))}  # type: ignore[valid-type]
    if partial is not None:
        found["partial"] = (bool, Field(description=partial))
    model: type[BaseModel] = create_model(f"{item.__name__}Page", **found)
    return model


_SHAPES: Final[dict[Any, Any]] = {timedelta: Seconds, Trigger: dict[str, Any]}


def _shape(kind: Any) -> Any:
    """Return the type that a field has in JSON."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SHAPES:
        return _SHAPES[kind]
    if origin is None or origin is Literal:
        return model_of(kind) if is_dataclass(kind) else kind  # type: ignore[arg-type]  # never an instance
    if origin in {tuple, frozenset, list}:
        return list[_shape(parts[0])]  # type: ignore[misc]  # made at run time
    if origin in {Union, UnionType}:
        return functools.reduce(_either, map(_shape, parts))
    return dict[str, _shape(parts[-1])]  # type: ignore[misc]


def _either(one: Any, other: Any) -> Any:
    return one | other


def _field_texts(record: type) -> dict[str, str]:
    """Return what stands below each field in the source of a class and its bases."""
    found: dict[str, str] = {}
    for one in reversed(record.__mro__):
        if not is_dataclass(one):
            continue
        body = cast("ast.ClassDef", ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]).body
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                name = cast("ast.Name", field.target).id
                found[name] = inspect.cleandoc(cast("str", cast("ast.Constant", text.value).value))
    return found


def _finish_schema(schema: dict[str, Any], body: type[Body]) -> None:
    """Add the example of a body, and leave out defaults that only say that nothing is given."""
    if body.EXAMPLE is not None:
        schema["examples"] = [body.EXAMPLE]
    for field in schema.get("properties", {}).values():
        if "default" in field and field["default"] is None:
            del field["default"]


NOT_GIVEN: Final[Any] = None
"""The default of what may be left out, and may not be null."""


class Body(BaseModel):
    """What a request brings; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=_finish_schema)
    EXAMPLE: ClassVar[dict[str, Any] | None] = None
    """One that is good for the thing that the examples of paths name."""

    def given(self) -> dict[str, Any]:
        """Return what was named."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}
