from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidDuration
from duetime.model.time import LONGEST_DURATION, describe_duration, parse_duration

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (0, 0),
        (90, 90 * SECOND),
        (0.25, 250_000),
        (1e-6, 1),
        (timedelta(minutes=5, microseconds=7), 300 * SECOND + 7),
        ("15m", 900 * SECOND),
        ("1h30m", 5_400 * SECOND),
        ("1h 30m", 5_400 * SECOND),
        ("250ms", 250_000),
        ("5us", 5),
        ("1.5h", 5_400 * SECOND),
        ("0.1s", 100_000),
        ("2d", 172_800 * SECOND),
        ("1w", 604_800 * SECOND),
        (" 2 hours 5 minutes ", 7_500 * SECOND),
        ("100w", 60_480_000 * SECOND),
        (LONGEST_DURATION // SECOND, LONGEST_DURATION),
    ],
)
def test_a_duration_is_read_as_microseconds(value: Any, micros: int) -> None:
    assert parse_duration(value, what="delay") == micros


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1e-9,
        -0.5,
        timedelta(microseconds=-1),
        float("nan"),
        float("inf"),
        float("-inf"),
        True,
        False,
        None,
        Decimal(1),
        [],
        "",
        "   ",
        "15",
        "m",
        "-5m",
        "5 parsecs",
        "5M",
        "5m5m",
        "5m1h",
        "1h30",
        "1..5h",
        "\N{ARABIC-INDIC DIGIT FIVE}m",
        "nan",
        "9" * 60 + "d",
        pytest.param("1" * 10_000 + "s", id="a very long text"),
        pytest.param(10**400, id="huge"),
        pytest.param(10**5_000, id="too huge to print"),
        pytest.param(-(10**400), id="huge and negative"),
        1e300,
        LONGEST_DURATION // SECOND + 1,
        timedelta.max,
    ],
)
def test_anything_else_is_refused_with_its_name_and_an_example(value: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"(?s)^delay .*'15m'") as caught:
        parse_duration(value, what="delay")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0 seconds"),
        (SECOND, "1 second"),
        (5_400 * SECOND, "1 hour 30 minutes"),
        (250_000, "250 milliseconds"),
        (8 * 86_400 * SECOND + 1, "1 week 1 day 1 microsecond"),
    ],
)
def test_a_duration_is_said_in_english(micros: int, text: str) -> None:
    assert describe_duration(micros) == text


@given(st.integers(0, LONGEST_DURATION))
def test_what_is_said_is_read_back(micros: int) -> None:
    assert parse_duration(describe_duration(micros), what="delay") == micros


@given(st.text(max_size=20) | st.floats() | st.integers() | st.timedeltas())
def test_no_input_escapes_as_another_error(value: Any) -> None:
    try:
        micros = parse_duration(value, what="delay")
    except InvalidDuration:
        return
    assert 0 <= micros <= LONGEST_DURATION
