"""Cron expressions, read with a caret under what is wrong."""

from __future__ import annotations

import re
from calendar import isleap
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NoReturn

from duetime.errors import InvalidCron
from duetime.model.text import MONTHS, WEEKDAYS, shown
from duetime.model.triggers.base import draw_number
from duetime.model.triggers.cron_fields import (
    ALL_YEARS,
    LAST_DAY,
    LAST_WEEK,
    WEEK,
    CronDays,
    CronFields,
    bit_positions,
)

CRON_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_LONGEST = 512
_MOST_ITEMS = 100
_EXAMPLE = "*/5 * * * *"
_FIELDS, _WITH_SECONDS, _WITH_YEAR = 5, 6, 7
_SHORTEST_NAME = 3
# All fourteen calendars (leap or not, beginning on each weekday) occur in these years.
_EVERY_CALENDAR = range(2000, 2028)

_HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
_BACK = re.compile(r"L(?:-(\d+))?(W?)", re.ASCII)
_NEAR = re.compile(r"(\d+)W", re.ASCII)
_YEAR = re.compile(r"(?:19|20|21)\d\d.*", re.ASCII)
_NTH = re.compile(r"(\w+?)(?:#([1-5])|L)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CronFieldKind:
    """What one of the fields may hold."""

    name: str
    low: int
    high: int
    expected: str
    example: str
    names: tuple[str, ...] = ()
    """In capitals, from the lowest value on; three letters of one are enough."""
    hash_high: int | None = None

    @property
    def size(self) -> int:
        """How many values there are before they begin again."""
        return WEEK if self is WEEKDAY_FIELD else self.high - self.low + 1


_DATES = (
    "1-31, L (the last day), L-3 (the third before it) or, for the nearest Monday to Friday, 15W, LW or L-3W"
)
_DAYS = (
    "0-7 (0 and 7 are Sunday), SUN-SAT, full names, FRI#1 to FRI#5 (the first to the fifth Friday) "
    "or FRIL (the last Friday)"
)
_MONTH_NAMES = tuple(month.upper() for month in MONTHS)
_DAY_NAMES = tuple(day.upper() for day in (WEEKDAYS[-1], *WEEKDAYS[:-1]))

SECOND_FIELD = CronFieldKind("second", 0, 59, "0-59", "*/10 * * * * *")
MINUTE_FIELD = CronFieldKind("minute", 0, 59, "0-59", _EXAMPLE)
HOUR_FIELD = CronFieldKind("hour", 0, 23, "0-23", "0 9-17 * * *")
# Every month has 28 days, so that a hashed day comes every month.
DATE_FIELD = CronFieldKind("day", 1, 31, _DATES, "0 9 1,15 * *", hash_high=28)
MONTH_FIELD = CronFieldKind(
    "month", 1, 12, "1-12, JAN-DEC or full names", "0 9 1 JAN,JUL *", names=_MONTH_NAMES
)
WEEKDAY_FIELD = CronFieldKind("weekday", 0, 7, _DAYS, "0 9 * * MON-FRI", names=_DAY_NAMES, hash_high=6)
YEAR_FIELD = CronFieldKind("year", 1970, 2199, "1970-2199", "0 0 9 1 1 * 2030-2035")
CRON_FIELDS = (
    SECOND_FIELD, MINUTE_FIELD, HOUR_FIELD, DATE_FIELD, MONTH_FIELD, WEEKDAY_FIELD, YEAR_FIELD,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CronToken:
    """A piece of an expression that knows where it stands in the whole."""

    whole: str
    start: int
    text: str

    def refuse(self, name: str, *, expected: str, example: str = _EXAMPLE) -> NoReturn:
        """Raise `InvalidCron` with a caret under this part."""
        whole = "".join(char if char.isprintable() else "?" for char in self.whole)
        shown = whole[self.start : self.start + len(self.text)]
        raise InvalidCron(
            f'bad {name} {shown!r} in "{whole}"\n'
            f"   {whole}\n"
            f"   {' ' * self.start}{'^' * max(1, len(shown))}\n"
            f'expected {expected}, e.g. "{example}"'
        )

    def split(self, pattern: str) -> list[CronToken]:
        """Return the pieces that match `pattern`, each with its place."""
        found = re.finditer(pattern, self.text)
        return [CronToken(self.whole, self.start + match.start(), match.group()) for match in found]


def check_cron_text(expression: object) -> str:
    """Return the expression with single spaces; raise `InvalidCron` if it is not text of a sane length."""
    if not isinstance(expression, str):
        given = f"not {shown(expression)}; its fields may be given instead, as in cron(hour=9, minute=30)"
        raise InvalidCron(f'a cron expression is text such as "{_EXAMPLE}", {given}')
    if len(expression) > _LONGEST:
        raise InvalidCron(f"a cron expression has at most {_LONGEST} characters, not {len(expression)}")
    return " ".join(expression.split())


@lru_cache(maxsize=1024)
def parse_cron(expression: str, *, seed: str) -> CronFields:
    """Read an expression of five to seven fields or a macro; raise `InvalidCron` if it makes no rule that ever comes."""
    whole = CRON_MACROS.get(expression.lower(), expression)
    line = CronToken(whole, 0, whole)
    if whole.startswith("@"):
        line.refuse("macro", expected=f"{', '.join(CRON_MACROS)} or @every 15m", example="@daily")
    parts = line.split(r"\S+")
    if not _FIELDS <= len(parts) <= _WITH_YEAR:
        expected = "5 fields (minute hour day month weekday), 6 (second first) or 7 (and the year last)"
        line.refuse(f"number of fields ({len(parts)})", expected=expected)
    if len(parts) < _WITH_SECONDS:
        parts.insert(0, CronToken(whole, 0, "0"))
    if len(parts) < _WITH_YEAR:
        parts.append(CronToken(whole, 0, "*"))
    _, minute, hour, day, month, weekday, year = parts
    read = {
        kind.name: read_cron_field(part, kind, seed) for part, kind in zip(parts, CRON_FIELDS, strict=True)
    }
    fields = CronFields(
        seconds=read["second"]["plain"],
        minutes=read["minute"]["plain"],
        hours=read["hour"]["plain"],
        months=read["month"]["plain"],
        years=read["year"]["plain"],
        days=CronDays(
            dates=read["day"]["plain"],
            near=read["day"]["near"],
            weekdays=read["weekday"]["plain"],
            nth=read["weekday"]["nth"],
            either=not (_is_open(day) or _is_open(weekday)),
        ),
        floating=_is_open(minute) or _is_open(hour),
        hashed=any(item.text.upper().startswith("H") for part in parts for item in part.split("[^,]+")),
    )
    if not _comes(fields):
        within = f"month {month.text!r}" + (f" of {year.text!r}" if fields.years != ALL_YEARS else "")
        advice = "to switch a schedule off, pause it: duetime schedules pause NAME"
        day.refuse("day", expected=f"a day that comes in {within} ({advice})", example="0 0 L 2 *")
    return fields


def _comes(fields: CronFields) -> bool:
    years: Collection[int] = _EVERY_CALENDAR
    if fields.years != ALL_YEARS:
        years = {
            (isleap(year), date(year, 1, 1).weekday()): year for year in bit_positions(fields.years)
        }.values()
    months = bit_positions(fields.months)
    return any(fields.days.in_month(year, month) for year in years for month in months)


def _is_open(part: CronToken) -> bool:
    return part.text.startswith("*") or part.text == "?"


def read_cron_field(part: CronToken, kind: CronFieldKind, seed: str) -> dict[str, int]:
    """Return the bits of a field: the plain ones, and those of `CronDays` that special forms fill."""
    if part.text == "?" and kind in (DATE_FIELD, WEEKDAY_FIELD):
        part = CronToken(part.whole, part.start, "*")
    if not part.text:
        _refuse(part, kind)
    items = part.split("[^,]+")
    if len(items) != part.text.count(",") + 1:
        part.refuse(kind.name, expected="a value on both sides of each comma", example=kind.example)
    if len(items) > _MOST_ITEMS:
        part.refuse(kind.name, expected=f"at most {_MOST_ITEMS} values", example=kind.example)
    bits: dict[str, int] = defaultdict(int)
    for item in items:
        slot, mask = _read_item(item, kind, seed)
        bits[slot] |= mask
    return bits


def _read_item(item: CronToken, kind: CronFieldKind, seed: str) -> tuple[str, int]:
    text = item.text.upper()
    if kind is DATE_FIELD and (match := _BACK.fullmatch(text)):
        back = int(match[1] or 0)
        if back >= kind.high:
            _refuse(item, kind)
        return "near" if match[2] else "plain", 1 << LAST_DAY - back
    if kind is DATE_FIELD and (match := _NEAR.fullmatch(text)):
        return "near", 1 << _number(item, kind, match[1])
    if kind is WEEKDAY_FIELD and (match := _NTH.fullmatch(text)):
        week = int(match[2]) - 1 if match[2] else LAST_WEEK
        return "nth", 1 << WEEK * week + _number(item, kind, match[1]) % WEEK
    if kind is not YEAR_FIELD and (match := _HASHED.fullmatch(text)):
        return "plain", _hashed(item, kind, match, seed)
    if (match := _RANGE.fullmatch(text)) is None:
        _refuse(item, kind)
    return "plain", _range(item, kind, match)


def _range(item: CronToken, kind: CronFieldKind, match: re.Match[str]) -> int:
    star, first, last, step = match.groups()
    if star and not step and kind is YEAR_FIELD:
        return ALL_YEARS
    low, high = kind.low, kind.high
    if not star:
        low = _number(item, kind, first)
        if last:
            high = _number(item, kind, last)
            # SUN-SUN is the whole week; only at its end can Sunday be the seventh day.
            high = kind.high if kind is WEEKDAY_FIELD and last.startswith("SUN") else high
        elif not step:
            high = low
    if low > high and kind is YEAR_FIELD:
        item.refuse(kind.name, expected="the earlier year first", example=kind.example)
    return _span(kind, low, high, _step(item, kind, step))


def _hashed(item: CronToken, kind: CronFieldKind, match: re.Match[str], seed: str) -> int:
    first, last, step = match.groups()
    low, high = kind.low, kind.high if kind.hash_high is None else kind.hash_high
    if first:
        low, high = _number(item, kind, first), _number(item, kind, last)
    count = high - low + 1 if low <= high else high - low + 1 + kind.size
    draw = draw_number(f"{kind.name}:{seed}")
    if not step:
        return _span(kind, low + draw % count, low + draw % count, 1)
    gap = min(_step(item, kind, step), count)
    return _span(kind, low + draw % gap, low + count - 1, gap)


def _span(kind: CronFieldKind, low: int, high: int, step: int) -> int:
    """Return the bits of the values from `low` to `high` in steps; past the end of the field they begin again."""
    first, size = kind.low, kind.size
    last = high if low <= high else high + size
    return sum({1 << first + (value - first) % size for value in range(low, last + 1, step)})


def _step(item: CronToken, kind: CronFieldKind, text: str | None) -> int:
    size = kind.high - kind.low + 1
    step = int(text) if text else 1
    if not 1 <= step <= size:
        expected = f"a step of 1-{size} after the slash (for a longer interval: @every)"
        item.refuse(kind.name, expected=expected, example="@every 90m")
    return step


def _number(item: CronToken, kind: CronFieldKind, text: str) -> int:
    if text.isdecimal():
        value = int(text)
    else:
        known = (number for number, name in enumerate(kind.names, kind.low) if name.startswith(text))
        value = next(known, -1) if len(text) >= _SHORTEST_NAME else -1
    if not kind.low <= value <= kind.high:
        _refuse(item, kind)
    return value


def _refuse(item: CronToken, kind: CronFieldKind) -> NoReturn:
    """Refuse a value, with what may have been meant by one that other programs read differently."""
    expected = kind.expected
    if "?" in item.text:
        expected += "; ? stands for * alone, in the day or the weekday, and six fields begin with the second"
    elif kind is WEEKDAY_FIELD and _YEAR.fullmatch(item.text):
        expected += "; a year is the last of seven fields, of which the first is the second"
    item.refuse(kind.name, expected=expected, example=kind.example)
