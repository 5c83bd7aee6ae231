from __future__ import annotations

import json
from typing import Annotated, Any

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
