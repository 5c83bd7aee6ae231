from __future__ import annotations

import pytest

from duetime.runtime.error_text import MAX_ERROR, MAX_TRACEBACK, describe_error, describe_traceback


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
