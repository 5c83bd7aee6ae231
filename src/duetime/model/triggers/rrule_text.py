"""Reads the text of an RFC 5545 recurrence rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn

from duetime.errors import InvalidTrigger
from duetime.model.shown import shown

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")
MOST_TIMES = 100
"""How many times of day one rule may name."""

_EXAMPLE = "FREQ=MONTHLY;BYDAY=-1FR"
_LONGEST = 1_000
_MOST_VALUES = 400
# A hundred years each: a search looks so far ahead at least.
_LONGEST_INTERVALS = dict(zip(FREQUENCIES, (100, 1_200, 5_200, 36_500, 876_000), strict=True))
_TOO_FAST = ("MINUTELY", "SECONDLY")
# The lowest and the highest value; those with a negative lowest count from the end, and have no zero.
_RANGES = {
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
    "BYSETPOS": (-366, 366),
}
_DIGITS = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}")
_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL = re.compile(r"[0-9]{8}(T[0-9]{6}Z?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule in parts; `days` are pairs of which one in the month or year (0 for all) and the weekday, Monday = 0."""

    frequency: str
    interval: int = 1
    week_start: int = 0
    days: tuple[tuple[int, int], ...] = ()
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    until: str | None = None


def check_text(text: object) -> str:
    """Return a rule in capitals and without its `RRULE:`; raise `InvalidTrigger` if it cannot be one."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidTrigger(f"a recurrence rule is a text such as {_EXAMPLE!r}, not {shown(text)}")
    return text.strip().upper().removeprefix("RRULE:").removesuffix(";")


def read(text: str) -> Rule:
    """Return the parts of a rule; raise `InvalidTrigger` naming the part that is wrong."""
    given: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            _refuse(part, text, "expected NAME=VALUE")
        if name in given:
            _refuse(part, text, f"{name} is given twice")
        given[name] = value
    frequency = given.pop("FREQ", "")
    if frequency in _TOO_FAST:
        _refuse(
            f"FREQ={frequency}", text, "use every('90s') or cron('*/10 * * * * *') for what comes so often"
        )
    if frequency not in FREQUENCIES:
        _refuse(f"FREQ={frequency}", text, f"FREQ is needed, one of {', '.join(FREQUENCIES)}")
    if "COUNT" in given:
        _refuse(
            f"COUNT={given['COUNT']}", text, "jobs made are counted by the schedule: rrule(...).at_most(10)"
        )
    rule = Rule(
        frequency=frequency,
        interval=_interval(given.pop("INTERVAL", "1"), text, _LONGEST_INTERVALS[frequency]),
        week_start=_week_start(given.pop("WKST", "MO"), text),
        days=_days(given.pop("BYDAY", ""), text, frequency),
        until=_until(given.pop("UNTIL", None), text),
        values={name: _values(name, value, text) for name, value in given.items()},
    )
    times = 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        times *= len(rule.values.get(name, (0,)))
    if times > MOST_TIMES:
        _refuse(
            "BYHOUR, BYMINUTE, BYSECOND",
            text,
            f"a rule may name {MOST_TIMES} times of day, not {times}; use cron()",
        )
    if "BYSETPOS" in rule.values and not rule.days and len(rule.values) == 1:
        _refuse("BYSETPOS", text, "it chooses among the days of another part, such as BYDAY=MO,TU,WE,TH,FR")
    return rule


def read_until(text: str) -> tuple[datetime, bool]:
    """Return the last moment of an `UNTIL`, and whether it is in UTC; a date means the end of that day."""
    if not _UNTIL.fullmatch(text):
        raise ValueError(text)
    if "T" not in text:
        text += "T235959"
    return datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S"), text.endswith("Z")  # noqa: DTZ007 - told beside


def _interval(value: str, text: str, most: int) -> int:
    if not _DIGITS.fullmatch(value) or not 1 <= int(value) <= most:
        _refuse(f"INTERVAL={value}", text, f"expected 1 to {most} (a hundred years)")
    return int(value)


def _week_start(value: str, text: str) -> int:
    if value not in WEEKDAYS:
        _refuse(f"WKST={value}", text, f"expected one of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(value)


def _days(value: str, text: str, frequency: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for item in value.split(",") if value else ():
        match = _DAY.fullmatch(item)
        number = int(match[1] or 0) if match else 0
        if match is None or abs(number) > 53 or (match[1] and not number):  # noqa: PLR2004 - weeks of a year
            _refuse(
                f"BYDAY={item}", text, "expected days such as MO, 1FR (the first Friday) or -1FR (the last)"
            )
        if number and frequency not in ("YEARLY", "MONTHLY"):
            _refuse(f"BYDAY={item}", text, "which one of its weekday needs FREQ=MONTHLY or FREQ=YEARLY")
        found.append((number, WEEKDAYS.index(match[2])))
    return tuple(dict.fromkeys(found))


def _until(value: str | None, text: str) -> str | None:
    if value is not None:
        try:
            read_until(value)
        except ValueError:
            _refuse(f"UNTIL={value}", text, "expected a date or time such as 20301231 or 20301231T235959Z")
    return value


def _values(name: str, value: str, text: str) -> tuple[int, ...]:
    if name not in _RANGES:
        _refuse(name, text, f"known parts are FREQ, INTERVAL, UNTIL, WKST, BYDAY, {', '.join(_RANGES)}")
    low, high = _RANGES[name]
    items = value.split(",", _MOST_VALUES)
    numbers = [int(item) if _NUMBER.fullmatch(item) else high + 1 for item in items]
    for item, number in zip(items, numbers, strict=True):
        if not low <= number <= high or (low < 0 and not number):
            expected = f"{low} to {high}" if low >= 0 else f"1 to {high}, or -1 to {low} from the end"
            _refuse(f"{name}={item[:20]}", text, f"expected {expected}")
    return tuple(sorted(set(numbers)))


def _refuse(part: str, text: str, expected: str) -> NoReturn:
    raise InvalidTrigger(f"bad part {shown(part)} in the rule {shown(text)}: {expected}; e.g. {_EXAMPLE!r}")
