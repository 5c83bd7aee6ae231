from __future__ import annotations

import json
from collections.abc import Callable
from json import JSONDecodeError

import pytest

from duetime.runtime.error_text import (
    MAX_ERROR,
    MAX_TRACEBACK,
    describe_error,
    describe_traceback,
    error_place,
    error_type,
)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("never")


def fail(error: BaseException) -> None:
    raise error


def test_an_error_is_its_type_and_its_message() -> None:
    assert describe_error(ValueError("too big")) == "ValueError: too big"
    assert describe_error(KeyError()) == "KeyError"
    assert describe_error(SystemExit(3)) == "SystemExit: 3"


def test_an_error_that_cannot_be_printed_still_has_a_name() -> None:
    assert describe_error(Unprintable()) == "Unprintable: <its message cannot be printed>"
    with pytest.raises(Unprintable) as caught:
        fail(Unprintable())
    text = describe_traceback(caught.value)
    assert "raise error" in text
    assert "Unprintable" in text


def test_a_text_that_no_database_takes_is_escaped() -> None:
    text = describe_error(ValueError("\x00\ud800é"))
    assert text == "ValueError: \\x00\\ud800é"
    text.encode()


def test_a_long_message_is_cut_in_its_middle() -> None:
    text = describe_error(ValueError("a" * 5_000 + "z" * 5_000))
    assert len(text) < MAX_ERROR + 50
    assert text.startswith("ValueError: aaa")
    assert text.endswith("zzz")
    assert "9,012 characters cut" in text


def test_a_long_traceback_keeps_both_ends() -> None:
    def deep(depth: int) -> None:
        if depth == 0:
            raise ValueError("x" * 50_000 + "the end")
        deep(depth - 1)

    with pytest.raises(ValueError, match="the end") as caught:
        deep(30)
    text = describe_traceback(caught.value)
    assert len(text) < MAX_TRACEBACK + 50
    assert text.startswith("Traceback")
    assert text.rstrip().endswith("the end")


def test_the_traceback_shows_the_line_that_raised_and_the_cause() -> None:
    def fail_twice() -> None:
        try:
            fail(KeyError("inner"))
        except KeyError as inner:
            raise ValueError("outer") from inner

    with pytest.raises(ValueError, match="outer") as caught:
        fail_twice()
    text = describe_traceback(caught.value)
    assert 'raise ValueError("outer") from inner' in text
    assert "KeyError: 'inner'" in text


def test_the_class_of_an_error_is_told_with_its_module() -> None:
    assert error_type(ValueError()) == "ValueError"
    assert error_type(JSONDecodeError("x", "", 0)) == "json.decoder.JSONDecodeError"
    assert error_type(Unprintable()) == f"{__name__}.Unprintable"
    assert len(error_type(type("E" * 900, (Exception,), {})())) <= 200


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("it did not fail")


def parse() -> object:
    return json.loads("{")


def test_the_place_of_an_error_is_the_innermost_function_of_ones_own_code() -> None:
    assert error_place(caught(parse)) == f"{__name__}:parse"
    assert error_place(caught(lambda: fail(ValueError()))) == f"{__name__}:fail"


def test_an_error_that_no_code_of_ones_own_is_in_has_the_outermost_place() -> None:
    error = caught(parse)
    assert error.__traceback__ is not None
    inside = error.__traceback__.tb_next
    assert inside is not None
    assert error_place(error.with_traceback(inside.tb_next)) == "json:loads"


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert error_place(ValueError()) is None
