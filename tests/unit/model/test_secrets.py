from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from duetime.errors import InvalidOption
from duetime.model.secrets import (
    Secret,
    check_secret,
    is_secret,
    mask_arguments,
    mask_payload,
    masks_result,
    secret_texts,
    without_secrets,
)
from duetime.model.task import task_options


@dataclass
class Login:
    user: str
    password: Secret[str]


class Struct(msgspec.Struct):
    token: Annotated[str, "anything"] | Secret[str]


class Model(pydantic.BaseModel):
    logins: dict[str, Login]


class Typed(TypedDict):
    model: NotRequired[Model]


class Named(NamedTuple):
    typed: Typed


class Derived(Login):
    more: int


@dataclass
class Node:
    child: Node | None


class Plain(pydantic.BaseModel):
    when: datetime
    node: Node
    size: Literal["Secret"]


Password = NewType("Password", Secret[str])


@pytest.mark.parametrize("kind", [Login, Struct, Model, Typed, Named, Derived, Password, list[Named | None]])
def test_a_class_is_secret_if_a_field_is_at_any_depth(kind: Any) -> None:
    assert is_secret(kind)


@pytest.mark.parametrize("kind", [Node, Plain, dict[str, Node]])
def test_a_class_without_a_secret_field_is_none(kind: Any) -> None:
    assert not is_secret(kind)


def test_a_field_that_is_called_secret_is_taken_for_one_where_its_type_cannot_be_found() -> None:
    @dataclass
    class Local:
        password: Secret[NotThere]  # type: ignore[name-defined]  # noqa: F821

    @dataclass
    class Other:
        name: NotThere  # type: ignore[name-defined]  # noqa: F821

    assert is_secret(Local)
    assert not is_secret(Other)


@pytest.mark.parametrize(
    "kind", [Secret[str], Secret[str] | None, list[Secret[int]], Annotated[Secret[str], 1]]
)
def test_an_annotation_is_secret_wherever_it_is_marked(kind: Any) -> None:
    assert is_secret(kind)


@pytest.mark.parametrize("kind", [str, Annotated[str, "Secret"], list[int], None])
def test_other_annotations_are_not(kind: Any) -> None:
    assert not is_secret(kind)


def test_arguments_that_are_secret_are_masked_and_no_others() -> None:
    assert mask_arguments({"a": 1, "b": 2}, "|b|return|") == {"a": 1, "b": "***"}
    assert mask_arguments({"a": 1}, None) == {"a": 1}
    # What is no object may hold them anywhere.
    assert mask_arguments("not JSON", "|b|") == "***"
    assert json.loads(mask_payload('{"a":1,"b":{"c":2}}', "|b|")) == {"a": 1, "b": "***"}
    assert mask_payload("[", "|b|") == "***"
    assert mask_payload("[", None) == "["


def test_a_result_is_masked_where_it_is_named() -> None:
    assert masks_result("|b|return|")
    assert not masks_result("|b|")
    assert not masks_result(None)


def test_secrets_are_found_however_they_are_written() -> None:
    payload = json.dumps({"a": "it's\na secret", "b": ["number", 123456], "c": "seen", "d": None, "e": "abc"})
    secrets = secret_texts(payload, {"a", "b", "d", "e"})
    text = f"{'it' + chr(39) + 's' + chr(10) + 'a secret'!r} {123456} number seen abc None"
    hidden = without_secrets(text, secrets)
    assert "secret" not in hidden
    assert "123456" not in hidden
    # What is very short would be found everywhere.
    assert hidden.endswith("*** *** seen abc None")
    assert secret_texts("[", {"a"}) == ()
    assert secret_texts("[1]", {"a"}) == ()


@pytest.mark.parametrize("names", ["password", b"x", 3, ["a", 3], None])
def test_names_that_are_none_are_refused(names: Any) -> None:
    with pytest.raises(InvalidOption, match="secret must be a list"):
        task_options({"secret": names})
    assert check_secret(["a"]) == ("a",)
