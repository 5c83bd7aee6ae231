from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from duetime.errors import InvalidName, InvalidOption
from duetime.model.locks import check_lock_name, lock_template


def fill(text: str, **values: object) -> str:
    template = lock_template(text)
    assert template is not None
    return template.fill(lambda name: json.dumps(values[name], default=str))


@pytest.mark.parametrize(
    ("text", "values", "name"),
    [
        ("reindex", {}, "reindex"),
        ("reindex:{tenant}", {"tenant": "é/1"}, "reindex:é/1"),
        ("{a}-{b}-{a}", {"a": 1, "b": UUID(int=2)}, f"1-{UUID(int=2)}-1"),
        ("{{{a}}}", {"a": -5}, "{-5}"),
        ("{{a}}", {}, "{a}"),
    ],
)
def test_arguments_fill_in_the_name_of_a_lock(text: str, values: dict[str, object], name: str) -> None:
    assert fill(text, **values) == name


@pytest.mark.parametrize("text", ["{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>9}", "{a", "a}", "{ a }"])
def test_what_is_no_template_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"reindex:{tenant}"):
        lock_template(text)


@pytest.mark.parametrize("text", ["", "x" * 201, "a\0b", "\ud800", 7])
def test_a_template_obeys_the_rules_of_names(text: Any) -> None:
    with pytest.raises((InvalidName, InvalidOption), match="lock"):
        lock_template(text)


@pytest.mark.parametrize("value", [None, True, 1.0, [1], {"a": 1}])
def test_a_value_that_is_neither_text_nor_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidName, match=r"lock='reindex:{tenant}' cannot be filled in: tenant is"):
        fill("reindex:{tenant}", tenant=value)


@pytest.mark.parametrize("value", ["", "x" * 201, "\0"])
def test_a_name_that_is_filled_in_obeys_the_rules_of_names(value: str) -> None:
    with pytest.raises((InvalidName, InvalidOption), match="lock name"):
        fill("{tenant}", tenant=value)


def test_no_template_is_none() -> None:
    assert lock_template(None) is None
    assert check_lock_name("x" * 200) == "x" * 200
