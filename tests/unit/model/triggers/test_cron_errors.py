from __future__ import annotations

import re
from typing import Any

import pytest

from duetime.errors import InvalidCron, InvalidZone
from duetime.model.triggers import zones
from duetime.model.triggers.cron import cron


def message(expression: Any, **options: Any) -> str:
    with pytest.raises(InvalidCron) as caught:
        cron(expression, **options)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_the_message_shows_what_where_and_how() -> None:
    assert message("61 * * * *") == (
        'bad minute \'61\' in "61 * * * *"\n   61 * * * *\n   ^^\nexpected 0-59, e.g. "*/5 * * * *"'
    )


@pytest.mark.covers("never-comes")
@pytest.mark.parametrize(
    ("expression", "field", "part"),
    [
        ("60 * * * * *", "second", "60"),
        ("* 60 * * * *", "minute", "60"),
        ("0,15,75 * * * *", "minute", "75"),
        ("-1 * * * *", "minute", "-1"),
        ("5- * * * *", "minute", "5-"),
        ("1-2-3 * * * *", "minute", "1-2-3"),
        ("1,,2 * * * *", "minute", "1,,2"),
        (",1 * * * *", "minute", ",1"),
        ("1, * * * *", "minute", "1,"),
        ("** * * * *", "minute", "**"),
        ("*-5 * * * *", "minute", "*-5"),
        ("*/0 * * * *", "minute", "*/0"),
        ("*/ * * * *", "minute", "*/"),
        ("*/90 * * * *", "minute", "*/90"),
        ("*/-5 * * * *", "minute", "*/-5"),
        ("1.5 * * * *", "minute", "1.5"),
        ("0x1 * * * *", "minute", "0x1"),
        ("\N{ARABIC-INDIC DIGIT THREE} * * * *", "minute", "\N{ARABIC-INDIC DIGIT THREE}"),
        ("MON * * * *", "minute", "MON"),
        ("H(50-70) * * * *", "minute", "H(50-70)"),
        ("H/0 * * * *", "minute", "H/0"),
        ("HH * * * *", "minute", "HH"),
        ("0 24 * * *", "hour", "24"),
        ("0 0 0 * *", "day", "0"),
        ("0 0 32 * *", "day", "32"),
        ("0 0 0W * *", "day", "0W"),
        ("0 0 32W * *", "day", "32W"),
        ("0 0 W * *", "day", "W"),
        ("0 0 15L * *", "day", "15L"),
        ("0 0 L-31 * *", "day", "L-31"),
        ("0 0 L-3- * *", "day", "L-3-"),
        ("0 0 L-31W * *", "day", "L-31W"),
        ("0 ? * * *", "hour", "?"),
        ("? 0 9 * * *", "second", "?"),
        ("0 10 * * ? *", "month", "?"),
        ("0 0 ?,5 * *", "day", "?"),
        ("0 0 ?/2 * *", "day", "?/2"),
        ("0 0 0 1 1 * ?", "year", "?"),
        ("0 0 0 1 1 * 1969", "year", "1969"),
        ("0 0 0 1 1 * 2200", "year", "2200"),
        ("0 0 0 1 1 * 2035-2030", "year", "2035-2030"),
        ("0 0 0 1 1 * H", "year", "H"),
        ("0 0 0 1 1 * H(2030-2040)", "year", "H(2030-2040)"),
        ("0 0 0 29 2 * 2029,2030", "day", "29"),
        ("0 0 1 1 * 2030", "weekday", "2030"),
        ("0 0 * * MO", "weekday", "MO"),
        ("0 0 * * Mondays", "weekday", "Mondays"),
        ("0 0 * 0 *", "month", "0"),
        ("0 0 * 13 *", "month", "13"),
        ("0 0 * FOO *", "month", "FOO"),
        ("0 0 * L *", "month", "L"),
        ("0 0 * * 8", "weekday", "8"),
        ("0 0 * * L", "weekday", "L"),
        ("0 0 * * MON,FRI#6", "weekday", "FRI#6"),
        ("0 0 * * FRI#0", "weekday", "FRI#0"),
        ("0 0 * * MON-FRI#2", "weekday", "MON-FRI#2"),
        ("0 0 30 2 *", "day", "30"),
        ("0 0 30,31 FEB *", "day", "30,31"),
        ("0 0 31 4,6 *", "day", "31"),
        ("0 0 31W 9,11 *", "day", "31W"),
        ("0 0 15W * */6", "day", "15W"),
        ("@every 0s", "interval", "0s"),
        ("@every 10us", "interval", "10us"),
        ("@every soon", "interval", "soon"),
        ("@reboot", "macro", "@reboot"),
        ("@ daily", "macro", "@ daily"),
        ("TZ=Mars/Olympus 0 3 * * *", "time zone", "Mars/Olympus"),
        ("CRON_TZ=Europe/Berln @daily", "time zone", "Europe/Berln"),
        ("0 9 * * MOON", "weekday", "MOON"),
        ("0 0 1-31/40 * *", "day", "1-31/40"),
        ("0 0 LW,LL * *", "day", "LL"),
        ("0 0 30 feb *", "day", "30"),
    ],
)
def test_the_caret_stands_under_the_bad_part(expression: str, field: str, part: str) -> None:
    lines = message(expression).splitlines()
    assert lines[0] == f'bad {field} {part!r} in "{expression}"'
    assert lines[1] == f"   {expression}"
    start = lines[2].index("^")
    assert lines[1][start : start + lines[2].count("^")] == part
    assert lines[3].startswith("expected ")
    assert ', e.g. "' in lines[3]


@pytest.mark.parametrize(
    "expression", ["", "   ", "*", "* * * *", "* * * * * * * *", "TZ=UTC", "TZ=UTC * *", "@every"]
)
def test_a_wrong_number_of_fields_is_told(expression: str) -> None:
    assert "expected 5 fields" in message(expression) or "expected a duration" in message(expression)


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("0 0 31 2 *", "to switch a schedule off, pause it: duetime schedules pause NAME"),
        ("0 10 * * ? *", "six fields begin with the second"),
        ("0 0 1 1 * 2030", "a year is the last of seven fields"),
    ],
)
def test_what_was_probably_meant_is_told(expression: str, advice: str) -> None:
    assert advice in message(expression)


@pytest.mark.parametrize("expression", [None, 5, b"* * * * *", ["*"] * 5])
def test_an_expression_must_be_text(expression: Any) -> None:
    assert "is text" in message(expression)


def test_control_characters_do_not_reach_the_message() -> None:
    assert "\x1b" not in message("\x1b[31m * * * *")
    assert "\x00" not in message("* * * * \x00")


def test_a_long_expression_is_refused_before_it_is_read() -> None:
    text = message(",".join(["1"] * 1_000_000) + " * * * *")
    assert "at most 512 characters" in text
    assert len(text) < 200


def test_a_long_list_is_refused() -> None:
    assert "at most 100 values" in message(",".join(["1"] * 101) + " * * * *")


def test_a_number_of_many_digits_is_just_out_of_range() -> None:
    assert "expected 0-59" in message("9" * 400 + " * * * *")


@pytest.mark.parametrize(
    ("tz", "hint"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("Asia/Calcuta", "did you mean 'Asia/Calcutta'?"),
        ("Rome", "did you mean 'Europe/Rome'?"),
        ("PST", "did you mean 'America/Los_Angeles'?"),
        ("edt", "did you mean 'America/New_York'?"),
        ("IST ", "did you mean 'Asia/Kolkata'?"),
        ("UTC+2", "did you mean 'Etc/GMT-2', which is UTC+2?"),
        ("-05:00", "did you mean 'Etc/GMT+5', which is UTC-5?"),
        ("+05:30", "such as 'Europe/Berlin'"),
        ("XST", "such as 'Europe/Berlin'"),
        ("Mars/Olympus", "such as 'Europe/Berlin'"),
        ("", "such as 'Europe/Berlin'"),
        ("../../etc/passwd", "such as 'Europe/Berlin'"),
        ("/no/such/file", "such as 'Europe/Berlin'"),
        ("a" * 100_000, "such as 'Europe/Berlin'"),
        ("Europe/Ber\x00lin", "Europe/Berlin"),
        (None, "such as 'Europe/Berlin'"),
        (3600, "such as 'Europe/Berlin'"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_name_that_was_meant(tz: Any, hint: str) -> None:
    with pytest.raises(InvalidZone) as caught:
        cron("0 3 * * *", tz=tz)
    text = str(caught.value)
    assert hint in text
    assert len(text) < 250


def test_every_zone_that_a_message_may_name_exists() -> None:
    offsets = [f"UTC{hours:+}" for hours in range(-12, 15)]
    for written in [*zones._ABBREVIATIONS, *offsets]:
        meant = re.search("did you mean '(.+)'", zones.zone_hint(written))
        assert meant is not None
        assert zones.zone(meant[1]).key == meant[1]


def test_an_unknown_zone_in_front_is_refused_with_the_nearest_name() -> None:
    assert message("TZ=Europe/Rigga 0 3 * * *") == (
        "bad time zone 'Europe/Rigga' in \"TZ=Europe/Rigga 0 3 * * *\"\n"
        "   TZ=Europe/Rigga 0 3 * * *\n"
        "      ^^^^^^^^^^^^\n"
        "expected the IANA name of a time zone (did you mean 'Europe/Riga'?), e.g. \"TZ=Europe/Riga 0 3 * * *\""
    )


def test_a_seed_must_be_text() -> None:
    assert "seed" in message("H * * * *", seed=5)
