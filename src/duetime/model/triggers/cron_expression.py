"""Cron expressions: read with a caret under what is wrong, matched as bit masks, and told in English."""

from __future__ import annotations

import re
from calendar import isleap
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import chain
from typing import NoReturn

from duetime.errors import InvalidCron
from duetime.model.text import MONTHS, ORDINALS, WEEKDAYS, join_words, names_in_words, shown, times_in_words
from duetime.model.triggers.base import draw_number, set_fields
from duetime.model.triggers.zones import DAY_SECONDS, EPOCH_DAY

LAST_YEAR = 9_000

_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_SATURDAY, _SUNDAY = 6, 0
_WEEK = 7
_LAST_DAY, _LAST_WEEK = 32, 5
# Times a mask of seven weekdays, this repeats it over six weeks: enough for a month that begins on any weekday.
_SIX_WEEKS = sum(1 << _WEEK * week for week in range(6))
# All fourteen calendars (leap or not, beginning on each weekday) occur in these years.
_EVERY_CALENDAR = range(2000, 2028)


def lowest_bit(mask: int) -> int:
    """Return the position of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def bit_positions(mask: int) -> list[int]:
    """Return the positions of all bits that are set, in order."""
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


def _below(position: int) -> int:
    """Return a mask of all bits below a position."""
    return (1 << position) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CronDays:
    """Which days of a month match; weekdays count from Sunday = 0."""

    dates: int
    """Bit 1 is for the first day of the month, bit 32 for the last."""
    near: int
    """The same, for the Monday to Friday nearest to a day."""
    weekdays: int
    nth: int
    """Seven bits for the first of each weekday in the month, seven for the second and so on, at last for the last."""
    either: bool

    def in_month(self, year: int, month: int) -> int:
        """Return the matching days of one month as a mask, bit 1 for the first."""
        first = date(year, month, 1).isoweekday() % _WEEK
        length = 29 if month == _FEBRUARY and isleap(year) else _MONTH_LENGTHS[month]
        dates = self.dates | self.dates >> _LAST_DAY << length
        weekdays = self.weekdays * _SIX_WEEKS >> first << 1
        for near in bit_positions(self.near):
            day = length if near == _LAST_DAY else near
            if day <= length:
                dates |= 1 << _nearest_workday(day, first=first, length=length)
        for position in bit_positions(self.nth):
            week, weekday = divmod(position, _WEEK)
            last = length - (first + length - 1 - weekday) % _WEEK
            weekdays |= 1 << (last if week == _LAST_WEEK else 1 + (weekday - first) % _WEEK + _WEEK * week)
        return (dates | weekdays if self.either else dates & weekdays) & (2 << length) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """A whole cron rule; `floating` rules follow the wall clock through its changes, `hashed` ones depend on a seed."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: CronDays
    floating: bool
    hashed: bool
    day_minutes: int = field(init=False, repr=False, compare=False)
    """The minutes of a day that match."""

    def __post_init__(self) -> None:
        set_fields(self, day_minutes=sum(self.minutes << 60 * hour for hour in bit_positions(self.hours)))

    def first_from(self, wall: int) -> int | None:
        """Return the first matching wall time at or after `wall`, both as seconds since 1970 on the wall clock."""
        number, second = divmod(wall, DAY_SECONDS)
        today = date.fromordinal(EPOCH_DAY + number)
        due = self._due_in(today.year, today.month) >> today.day
        if due & 1 and (time := self._time_from(second)) is not None:
            return wall - second + time
        rest = due >> 1
        later = number + 1 + lowest_bit(rest) if rest else self._first_day_after(today.year, today.month)
        if later is None:
            return None
        return later * DAY_SECONDS + lowest_bit(self.day_minutes) * 60 + lowest_bit(self.seconds)

    def count(self, start: int, end: int) -> int:
        """Return how many wall times `start <= wall < end` match, in as many steps as there are months between."""
        (first, second), (last, until) = divmod(start, DAY_SECONDS), divmod(end, DAY_SECONDS)
        begins, ends = (date.fromordinal(EPOCH_DAY + number) for number in (first, last))
        found = self._days_between(begins, ends) * self._times_before(DAY_SECONDS)
        if self._due_in(ends.year, ends.month) >> ends.day & 1:
            found += self._times_before(until)
        if self._due_in(begins.year, begins.month) >> begins.day & 1:
            found -= self._times_before(second)
        return found

    def _due_in(self, year: int, month: int) -> int:
        return self.days.in_month(year, month) if self.months >> month & 1 else 0

    def _days_between(self, start: date, end: date) -> int:
        found = (self._due_in(end.year, end.month) & _below(end.day)).bit_count()
        found -= (self._due_in(start.year, start.month) & _below(start.day)).bit_count()
        for number in range(start.year * 12 + start.month - 1, end.year * 12 + end.month - 1):
            year, month = divmod(number, 12)
            found += self._due_in(year, month + 1).bit_count()
        return found

    def _times_before(self, second: int) -> int:
        minute, second = divmod(second, 60)
        found = (self.day_minutes & _below(minute)).bit_count() * self.seconds.bit_count()
        if self.day_minutes >> minute & 1:
            found += (self.seconds & _below(second)).bit_count()
        return found

    def _time_from(self, second: int) -> int | None:
        minute, second = divmod(second, 60)
        if self.day_minutes >> minute & 1 and (rest := self.seconds >> second):
            return minute * 60 + second + lowest_bit(rest)
        if rest := self.day_minutes >> minute + 1:
            return (minute + 1 + lowest_bit(rest)) * 60 + lowest_bit(self.seconds)
        return None

    def _first_day_after(self, year: int, month: int) -> int | None:
        """Return the first matching day of a later month, as days since 1970."""
        while True:
            if rest := self.months >> month + 1:
                month += 1 + lowest_bit(rest)
            else:
                year, month = year + 1, lowest_bit(self.months)
            if year > LAST_YEAR:
                return None
            if due := self.days.in_month(year, month):
                return date(year, month, lowest_bit(due)).toordinal() - EPOCH_DAY


def _nearest_workday(day: int, *, first: int, length: int) -> int:
    weekday = (first + day - 1) % _WEEK
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day


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
_WITHOUT_SECONDS = 5
_WITH_SECONDS = 6

_HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
_NEAR = re.compile(r"(\d+)W", re.ASCII)
_NTH = re.compile(r"(\w+?)(?:#([1-5])|L)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CronFieldKind:
    """What one of the six fields may hold."""

    name: str
    low: int
    high: int
    expected: str
    example: str
    names: dict[str, int] = field(default_factory=dict)
    hash_high: int | None = None


def _numbered(text: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(text.split(), first)}


_DATES = "1-31, L (the last day), LW (the last Monday to Friday) or 15W (the nearest Monday to Friday)"
_DAYS = "0-7 (0 and 7 are Sunday), SUN-SAT, FRI#1 to FRI#5 (the first to the fifth Friday) or FRIL (the last Friday)"
_MONTH_NUMBERS = _numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1)
_DAY_NUMBERS = _numbered("SUN MON TUE WED THU FRI SAT", 0)

SECOND_FIELD = CronFieldKind("second", 0, 59, "0-59", "*/10 * * * * *")
MINUTE_FIELD = CronFieldKind("minute", 0, 59, "0-59", _EXAMPLE)
HOUR_FIELD = CronFieldKind("hour", 0, 23, "0-23", "0 9-17 * * *")
# Every month has 28 days, so that a hashed day comes every month.
DATE_FIELD = CronFieldKind("day", 1, 31, _DATES, "0 9 1,15 * *", hash_high=28)
MONTH_FIELD = CronFieldKind("month", 1, 12, "1-12 or JAN-DEC", "0 9 1 JAN,JUL *", names=_MONTH_NUMBERS)
WEEKDAY_FIELD = CronFieldKind("weekday", 0, 7, _DAYS, "0 9 * * MON-FRI", names=_DAY_NUMBERS, hash_high=6)


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
        raise InvalidCron(f'a cron expression is text such as "{_EXAMPLE}", not {shown(expression)}')
    if len(expression) > _LONGEST:
        raise InvalidCron(f"a cron expression has at most {_LONGEST} characters, not {len(expression)}")
    return " ".join(expression.split())


@lru_cache(maxsize=1024)
def parse_cron(expression: str, *, seed: str) -> CronFields:
    """Read an expression of five or six fields or a macro; raise `InvalidCron` if it makes no rule that ever comes."""
    whole = CRON_MACROS.get(expression.lower(), expression)
    line = CronToken(whole, 0, whole)
    if whole.startswith("@"):
        line.refuse("macro", expected=f"{', '.join(CRON_MACROS)} or @every 15m", example="@daily")
    parts = line.split(r"\S+")
    if len(parts) not in (_WITHOUT_SECONDS, _WITH_SECONDS):
        expected = "5 fields (minute hour day month weekday) or 6 (second first)"
        line.refuse(f"number of fields ({len(parts)})", expected=expected)
    second = parts[0] if len(parts) == _WITH_SECONDS else CronToken(whole, 0, "0")
    minute, hour, day, month, weekday = parts[-_WITHOUT_SECONDS:]
    dates, weekdays = _read(day, DATE_FIELD, seed), _read(weekday, WEEKDAY_FIELD, seed)
    fields = CronFields(
        seconds=_read(second, SECOND_FIELD, seed)["plain"],
        minutes=_read(minute, MINUTE_FIELD, seed)["plain"],
        hours=_read(hour, HOUR_FIELD, seed)["plain"],
        months=_read(month, MONTH_FIELD, seed)["plain"],
        days=CronDays(
            dates=dates["plain"],
            near=dates["near"],
            weekdays=(weekdays["plain"] | weekdays["plain"] >> _WEEK) & _ALL_WEEKDAYS,
            nth=weekdays["nth"],
            either=not (_is_open(day) or _is_open(weekday)),
        ),
        floating=_is_open(minute) or _is_open(hour),
        hashed=any(item.text.upper().startswith("H") for part in parts for item in part.split("[^,]+")),
    )
    months = bit_positions(fields.months)
    if not any(fields.days.in_month(year, number) for year in _EVERY_CALENDAR for number in months):
        day.refuse("day", expected=f"a day that comes in month {month.text!r}", example="0 0 L 2 *")
    return fields


def _is_open(part: CronToken) -> bool:
    return part.text.startswith("*")


def _read(part: CronToken, kind: CronFieldKind, seed: str) -> dict[str, int]:
    """Return the bits of a field: the plain ones, and those of `CronDays` that special forms fill."""
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
    if kind is DATE_FIELD and text in ("L", "LW"):
        return "plain" if text == "L" else "near", 1 << _LAST_DAY
    if kind is DATE_FIELD and (match := _NEAR.fullmatch(text)):
        return "near", 1 << _number(item, kind, match[1])
    if kind is WEEKDAY_FIELD and (match := _NTH.fullmatch(text)):
        week = int(match[2]) - 1 if match[2] else _LAST_WEEK
        return "nth", 1 << _WEEK * week + _number(item, kind, match[1]) % _WEEK
    if match := _HASHED.fullmatch(text):
        return "plain", _hashed(item, kind, match, seed)
    if (match := _RANGE.fullmatch(text)) is None:
        item.refuse(kind.name, expected=kind.expected, example=kind.example)
    return "plain", _range(item, kind, match)


def _range(item: CronToken, kind: CronFieldKind, match: re.Match[str]) -> int:
    star, first, last, step = match.groups()
    low, high = kind.low, kind.high
    if not star:
        low = _number(item, kind, first)
        if last:
            high = _number(item, kind, last)
            # SAT-SUN is a range that people write; only at its end can Sunday be the seventh day.
            high = _WEEK if kind is WEEKDAY_FIELD and last == "SUN" else high
        elif not step:
            high = low
    if low > high:
        expected = f"the smaller value first (past the end, write {first}-{kind.high},{kind.low}-{last})"
        item.refuse(kind.name, expected=expected, example=kind.example)
    return _every(low, high, _step(item, kind, step))


def _hashed(item: CronToken, kind: CronFieldKind, match: re.Match[str], seed: str) -> int:
    first, last, step = match.groups()
    low, high = kind.low, kind.high if kind.hash_high is None else kind.hash_high
    if first:
        low, high = _number(item, kind, first), _number(item, kind, last)
        if low > high:
            item.refuse(kind.name, expected="the smaller value first", example="H(0-29) * * * *")
    draw = draw_number(f"{kind.name}:{seed}")
    if not step:
        return 1 << low + draw % (high - low + 1)
    gap = min(_step(item, kind, step), high - low + 1)
    return _every(low + draw % gap, high, gap)


def _every(low: int, high: int, step: int) -> int:
    return sum(1 << value for value in range(low, high + 1, step))


def _step(item: CronToken, kind: CronFieldKind, text: str | None) -> int:
    size = kind.high - kind.low + 1
    step = int(text) if text else 1
    if not 1 <= step <= size:
        expected = f"a step of 1-{size} after the slash (for a longer interval: @every)"
        item.refuse(kind.name, expected=expected, example="@every 90m")
    return step


def _number(item: CronToken, kind: CronFieldKind, text: str) -> int:
    value = int(text) if text.isdecimal() else kind.names.get(text, -1)
    if not kind.low <= value <= kind.high:
        item.refuse(kind.name, expected=kind.expected, example=kind.example)
    return value


_WEEKDAYS = (WEEKDAYS[-1], *WEEKDAYS[:-1])
_ALL_DATES = (1 << 32) - 2
_ALL_WEEKDAYS = (1 << 7) - 1
_ALL_MONTHS = (1 << 13) - 2
_SHORTEST_RUN = 3
_MINUTES = 60


def describe_cron(fields: CronFields) -> str:
    """Return one English phrase, such as `at 09:00 on Monday to Friday in May`."""
    days = _days(fields.days)
    named = names_in_words(bit_positions(fields.months >> 1), MONTHS)
    months = "" if fields.months == _ALL_MONTHS else f" in {named}"
    time = _time(fields)
    if not days and not months and time.startswith("at ") and " of " not in time:
        days = " every day"
    return f"{time}{days}{months}"


def _time(fields: CronFields) -> str:
    seconds, minutes, hours = map(bit_positions, (fields.seconds, fields.minutes, fields.hours))
    if (times := times_in_words(hours, minutes, seconds)) is not None:
        return times
    if seconds == [0]:
        return _inner(minutes, "minute", 60) + _outer(hours, "hour", 24, told=_is_stride(minutes, 60))
    told = _is_stride(seconds, 60)
    outer = _outer(minutes, "minute", 60, told=told)
    told = (told and not outer) or len(minutes) == _MINUTES
    return _inner(seconds, "second", 60) + outer + _outer(hours, "hour", 24, told=told)


def _inner(values: list[int], unit: str, size: int) -> str:
    if _is_stride(values, size):
        step = size // len(values)
        return f"every {unit}" if step == 1 else f"every {step} {unit}s"
    return f"at {_plural(values, unit)} {_runs(values)}"


def _outer(values: list[int], unit: str, size: int, *, told: bool) -> str:
    if len(values) == size:
        return "" if told else f" of every {unit}"
    return f" of {_plural(values, unit)} {_runs(values)}"


def _is_stride(values: list[int], size: int) -> bool:
    """Tell whether the values go round evenly, beginning at zero."""
    return len(values) > 1 and size % len(values) == 0 and values == list(range(0, size, size // len(values)))


def _days(days: CronDays) -> str:
    dates: list[str] = []
    if plain := bit_positions(days.dates & _ALL_DATES):
        dates.append(f"{_plural(plain, 'day')} {_runs(plain)} of the month")
    if days.dates >> _LAST_DAY:
        dates.append("the last day of the month")
    if days.near >> _LAST_DAY:
        dates.append("the last Monday-to-Friday day of the month")
    near = bit_positions(days.near & _ALL_DATES)
    dates += [f"the Monday-to-Friday day nearest to day {day} of the month" for day in near]
    weekdays = [names_in_words(bit_positions(days.weekdays), _WEEKDAYS)] if days.weekdays else []
    for position in bit_positions(days.nth):
        week, weekday = divmod(position, _WEEK)
        order = "last" if week == _LAST_WEEK else ORDINALS[week + 1]
        weekdays.append(f"the {order} {_WEEKDAYS[weekday]} of the month")
    if days.either:
        return f" on {join_words(dates + weekdays, word='or')}"
    named = [dates] * (days.dates != _ALL_DATES) + [weekdays] * (days.weekdays != _ALL_WEEKDAYS)
    told = [join_words(names, word="or") for names in named]
    return f" on {' if also on '.join(told)}" if told else ""


def _runs(values: list[int]) -> str:
    """Join numbers, with three or more in a row told as a range."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    told = [[f"{run[0]} to {run[-1]}"] if len(run) >= _SHORTEST_RUN else map(str, run) for run in runs]
    return join_words([*chain.from_iterable(told)])


def _plural(values: list[int], unit: str) -> str:
    return unit if len(values) == 1 else f"{unit}s"
