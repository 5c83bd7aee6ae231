"""JSON Schemas of arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest

from duetime.runtime.codec.arguments import Arguments


class Line(pydantic.BaseModel):
    """A model within another."""

    amount: int


class Order(pydantic.BaseModel):
    """A model of the user's."""

    lines: list[Line] = []


class Broken(pydantic.BaseModel):
    """A model that has no schema."""

    call: Callable[[], None]


@dataclass
class Address:
    """A class that msgspec knows."""

    street: str


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    return Arguments(function, task="work").schema()


def test_a_signature_becomes_a_schema_by_parameter_name() -> None:
    def work(a: int, b: str = "x", *, c: bool | None = None, **more: float) -> None: ...

    assert schema(work) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
            "more": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_classes_and_models_are_defined_beside_it() -> None:
    def work(order: Order, address: Address, where: Path = Path("/a")) -> None: ...

    found = schema(work)
    assert found["properties"]["order"]["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}
    assert found["properties"]["address"] == {"$ref": "#/$defs/Address"}
    assert found["properties"]["where"] == {"type": "string", "format": "path", "default": "/a"}
    assert found["$defs"].keys() == {"Line", "Address"}


def test_each_member_of_a_union_with_a_model_is_described() -> None:
    def work(order: Order | int) -> None: ...

    members = schema(work)["properties"]["order"]["anyOf"]
    assert [member["type"] for member in members] == ["object", "integer"]


@pytest.mark.parametrize("annotation", [None, Any])
def test_what_has_no_annotation_may_be_anything(annotation: Any) -> None:
    def work(a, b=object()): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, B008

    if annotation is not None:
        work.__annotations__ = {"a": annotation}
    assert schema(work)["properties"] == {"a": {}, "b": {}}


def test_a_model_without_a_schema_says_nothing_of_the_others_either() -> None:
    def work(broken: Broken, a: int = 3) -> None: ...

    found = schema(work)
    assert found == {"type": "object", "properties": {"broken": {}, "a": {"default": 3}}}
