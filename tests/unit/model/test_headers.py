from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.headers import MAX_HEADERS, headers_to_text, overlay_headers, read_headers
from duetime.model.task import job_options, task_options


def test_headers_are_read_as_they_were_written_and_cannot_be_changed() -> None:
    found = read_headers(headers_to_text({"b": "☃", "a": ""}))
    assert {**found} == {"a": "", "b": "☃"}
    with pytest.raises(TypeError):
        found["c"] = "d"  # type: ignore[index]
    assert headers_to_text({}) is None
    assert {**read_headers(None)} == {}


@pytest.mark.parametrize("text", ["[", "[1]", '"x"', "[" * 100_000])
def test_headers_that_were_edited_by_hand_are_none(text: str) -> None:
    assert {**read_headers(text)} == {}


def test_a_value_that_is_no_text_is_left_out() -> None:
    assert {**read_headers('{"a":"b","n":1}')} == {"a": "b"}


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ([("a", "b")], "headers must be a dict"),
        ("a=b", "headers must be a dict"),
        ({"n": 1}, "header 'n' must be text, not 1"),
        ({1: "n"}, "a header's name must be text, not 1"),
        ({"": "n"}, "empty name"),
        ({"a": "\x00"}, "header 'a' '\\\\x00' has NUL"),
        ({"a": "x" * MAX_HEADERS}, "headers take 2,056 bytes as JSON; at most 2,048 are allowed"),
    ],
)
def test_what_cannot_be_a_header_is_refused(headers: Any, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        job_options({"headers": headers})


def test_headers_of_a_request_are_added_to_those_of_its_task() -> None:
    defaults = task_options({"headers": {"team": "a", "trace": "old"}}).terms
    asked = job_options({"headers": {"trace": "new"}})
    assert {**read_headers(asked.over(defaults).headers)} == {"team": "a", "trace": "new"}
    assert overlay_headers(defaults.headers, None) == defaults.headers


def test_headers_are_bounded_together_with_those_of_the_task() -> None:
    defaults = task_options({"headers": {"a": "x" * 1_500}}).terms
    with pytest.raises(InvalidOption, match="headers take 2,515 bytes"):
        job_options({"headers": {"b": "x" * 1_000}}).over(defaults)
