"""Cron rules whose fields are given by name."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidCron
from duetime.model.triggers.cron import cron


def refusal(*expression: str, **fields: Any) -> str:
    with pytest.raises(InvalidCron) as caught:
        cron(*expression, **fields)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"hour": 9, "minute": 30}, "30 9 * * *"),
        ({"hour": 9}, "0 9 * * *"),
        ({"hour": 0}, "0 0 * * *"),
        ({"minute": 30}, "30 * * * *"),
        ({"minute": "*/15", "hour": "9-17"}, "*/15 9-17 * * *"),
        ({"second": 10}, "10 * * * * *"),
        ({"second": 10, "minute": 5, "hour": 9}, "10 5 9 * * *"),
        ({"second": 0, "minute": 5}, "5 * * * *"),
        ({"weekday": "MON-FRI", "hour": 9}, "0 9 * * MON-FRI"),
        ({"weekday": "Monday"}, "0 0 * * Monday"),
        ({"weekday": "FRI#2", "month": 6}, "0 0 * 6 FRI#2"),
        ({"day": 1}, "0 0 1 * *"),
        ({"day": "L-3W", "hour": 18}, "0 18 L-3W * *"),
        ({"day": 13, "weekday": "FRI"}, "0 0 13 * FRI"),
        ({"month": "January"}, "0 0 1 January *"),
        ({"month": 6, "hour": 9}, "0 9 * 6 *"),
        ({"year": 2030}, "0 0 0 1 1 * 2030"),
        ({"year": "2030-2035", "month": 7}, "0 0 0 1 7 * 2030-2035"),
        ({"year": 2030, "second": 5}, "5 * * * * * 2030"),
    ],
)
def test_fields_by_name_are_an_expression_in_which_smaller_ones_are_lowest(
    fields: dict[str, Any], expression: str
) -> None:
    assert cron(**fields, tz="Europe/Riga") == cron(expression, tz="Europe/Riga")


def test_what_is_drawn_is_drawn_from_the_seed() -> None:
    assert cron(hour=3, minute="H", seed="nightly") == cron("H 3 * * *", seed="nightly")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hour", 25, "expected 0-23"),
        ("hour", -1, "expected 0-23"),
        ("minute", 60, "expected 0-59"),
        ("day", 0, "expected 1-31"),
        ("month", 13, "expected 1-12"),
        ("weekday", "Fryday", "expected 0-7"),
        ("year", 1969, "expected 1970-2199"),
        ("hour", "9 *", "expected 0-23"),
        ("hour", "", "expected 0-23"),
        ("hour", "9,", "on both sides of each comma"),
        ("second", "?", "expected 0-59"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(field: str, value: object, said: str) -> None:
    first, line, caret, expected = refusal(**{field: value}).split("\n")
    assert first == f'bad {field} {str(value)!r} in "{field}={value}"'
    assert line == f"   {field}={value}"
    assert caret == f"   {' ' * len(f'{field}=')}{'^' * max(1, len(str(value)))}"
    assert said in expected


@pytest.mark.parametrize("value", [True, 9.0, [9, 17], b"9"])
def test_a_value_is_a_number_or_text(value: object) -> None:
    assert refusal(hour=value).startswith("hour is a number, or text such as")


def test_an_expression_and_fields_are_not_given_together() -> None:
    told = refusal("0 9 * * *", hour=9, minute=30)
    assert told == "give cron() an expression or its fields, not both: '0 9 * * *' and minute, hour"


def test_nothing_at_all_is_refused_with_both_ways() -> None:
    told = refusal()
    assert "*/5 * * * *" in told
    assert "cron(hour=9, minute=30)" in told


def test_a_second_of_an_hour_needs_its_minute() -> None:
    assert "say minute=0" in refusal(hour=9, second=30)
    assert cron(hour=9, minute="*", second=30) == cron("30 * 9 * * *")


def test_a_date_that_never_comes_is_refused() -> None:
    assert "expected a day that comes in month '2'" in refusal(day=31, month=2)


def test_a_long_text_is_refused_before_it_is_read() -> None:
    assert "at most 512 characters" in refusal(hour="1," * 1_000_000)
