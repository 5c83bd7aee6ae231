"""Recurrence rules of RFC 5545: read, told in English, and asked for their occurrences."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger, MissingDriver
from duetime.model.text import shown
from duetime.model.time import LATEST, SECOND, Instant, from_datetime, in_words
from duetime.model.triggers.base import NoOccurrence, SearchBudget, Trigger, check_instant
from duetime.model.triggers.zones import (
    DAY_SECONDS,
    Zone,
    first_after_wall,
    wall_second_at,
    zone,
    zone_name_of,
)

WEEKDAY_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
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
class ParsedRRule:
    """A rule in parts; `days` are pairs of which one in the month or year (0 for all) and the weekday, Monday = 0."""

    frequency: str
    interval: int = 1
    week_start: int = 0
    days: tuple[tuple[int, int], ...] = ()
    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    until: str | None = None


def check_rrule_text(text: object) -> str:
    """Return a rule in capitals and without its `RRULE:`; raise `InvalidTrigger` if it cannot be one."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidTrigger(f"a recurrence rule is a text such as {_EXAMPLE!r}, not {shown(text)}")
    return text.strip().upper().removeprefix("RRULE:").removesuffix(";")


def read_rrule(text: str) -> ParsedRRule:
    """Return the parts of a rule; raise `InvalidTrigger` naming the part that is wrong."""
    given: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            _refuse_value(part, text, "expected NAME=VALUE")
        if name in given:
            _refuse_value(part, text, f"{name} is given twice")
        given[name] = value
    frequency = given.pop("FREQ", "")
    if frequency in _TOO_FAST:
        _refuse_value(
            f"FREQ={frequency}", text, "use every('90s') or cron('*/10 * * * * *') for what comes so often"
        )
    if frequency not in FREQUENCIES:
        _refuse_value(f"FREQ={frequency}", text, f"FREQ is needed, one of {', '.join(FREQUENCIES)}")
    if "COUNT" in given:
        _refuse_value(
            f"COUNT={given['COUNT']}", text, "jobs made are counted by the schedule: rrule(...).at_most(10)"
        )
    rule = ParsedRRule(
        frequency=frequency,
        interval=_read_interval(given.pop("INTERVAL", "1"), text, _LONGEST_INTERVALS[frequency]),
        week_start=_week_start(given.pop("WKST", "MO"), text),
        days=_read_days(given.pop("BYDAY", ""), text, frequency),
        until=_read_until(given.pop("UNTIL", None), text),
        values={name: _values(name, value, text) for name, value in given.items()},
    )
    times = 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        times *= len(rule.values.get(name, (0,)))
    if times > MOST_TIMES:
        _refuse_value(
            "BYHOUR, BYMINUTE, BYSECOND",
            text,
            f"a rule may name {MOST_TIMES} times of day, not {times}; use cron()",
        )
    if "BYSETPOS" in rule.values and not rule.days and len(rule.values) == 1:
        _refuse_value(
            "BYSETPOS", text, "it chooses among the days of another part, such as BYDAY=MO,TU,WE,TH,FR"
        )
    return rule


def read_until(text: str) -> tuple[datetime, bool]:
    """Return the last moment of an `UNTIL`, and whether it is in UTC; a date means the end of that day."""
    if not _UNTIL.fullmatch(text):
        raise ValueError(text)
    if "T" not in text:
        text += "T235959"
    return datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S"), text.endswith("Z")  # noqa: DTZ007 - told beside


def _read_interval(value: str, text: str, most: int) -> int:
    if not _DIGITS.fullmatch(value) or not 1 <= int(value) <= most:
        _refuse_value(f"INTERVAL={value}", text, f"expected 1 to {most} (a hundred years)")
    return int(value)


def _week_start(value: str, text: str) -> int:
    if value not in WEEKDAY_CODES:
        _refuse_value(f"WKST={value}", text, f"expected one of {', '.join(WEEKDAY_CODES)}")
    return WEEKDAY_CODES.index(value)


def _read_days(value: str, text: str, frequency: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for item in value.split(",") if value else ():
        match = _DAY.fullmatch(item)
        number = int(match[1] or 0) if match else 0
        if match is None or abs(number) > 53 or (match[1] and not number):  # noqa: PLR2004 - weeks of a year
            _refuse_value(
                f"BYDAY={item}", text, "expected days such as MO, 1FR (the first Friday) or -1FR (the last)"
            )
        if number and frequency not in ("YEARLY", "MONTHLY"):
            _refuse_value(f"BYDAY={item}", text, "which one of its weekday needs FREQ=MONTHLY or FREQ=YEARLY")
        found.append((number, WEEKDAY_CODES.index(match[2])))
    return tuple(dict.fromkeys(found))


def _read_until(value: str | None, text: str) -> str | None:
    if value is not None:
        try:
            read_until(value)
        except ValueError:
            _refuse_value(
                f"UNTIL={value}", text, "expected a date or time such as 20301231 or 20301231T235959Z"
            )
    return value


def _values(name: str, value: str, text: str) -> tuple[int, ...]:
    if name not in _RANGES:
        _refuse_value(name, text, f"known parts are FREQ, INTERVAL, UNTIL, WKST, BYDAY, {', '.join(_RANGES)}")
    low, high = _RANGES[name]
    items = value.split(",", _MOST_VALUES)
    numbers = [int(item) if _NUMBER.fullmatch(item) else high + 1 for item in items]
    for item, number in zip(items, numbers, strict=True):
        if not low <= number <= high or (low < 0 and not number):
            expected = f"{low} to {high}" if low >= 0 else f"1 to {high}, or -1 to {low} from the end"
            _refuse_value(f"{name}={item[:20]}", text, f"expected {expected}")
    return tuple(sorted(set(numbers)))


def _refuse_value(part: str, text: str, expected: str) -> NoReturn:
    raise InvalidTrigger(f"bad part {shown(part)} in the rule {shown(text)}: {expected}; e.g. {_EXAMPLE!r}")


_UNITS = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour"}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_TIMES_TOLD = 4


def describe_rrule(rule: ParsedRRule) -> str:
    """Return one English phrase, such as `every 2 weeks on Monday and Friday at 09:00`; the rule is complete."""
    unit = _UNITS[rule.frequency]
    text = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    values = rule.values
    if months := values.get("BYMONTH"):
        text += f" in {_join([_MONTHS[month - 1] for month in months])}"
    if weeks := values.get("BYWEEKNO"):
        text += f" in {_join([_numbered('week', week, 'year') for week in weeks])}"
    days = [_numbered("day", day, "year") for day in values.get("BYYEARDAY", ())]
    days += [_numbered("day", day, "month") for day in values.get("BYMONTHDAY", ())]
    told = [_join(days)] if days else []
    if rule.days:
        told.append(
            _join([_WEEKDAYS[day] if not nth else _nth(nth, _WEEKDAYS[day]) for nth, day in rule.days])
        )
    if told:
        text += f" on {' if also on '.join(told)}"
    text += _times(rule)
    if chosen := values.get("BYSETPOS"):
        text += f", of these only {_join([_nth(position, 'one') for position in chosen])}"
    return text


def _times(rule: ParsedRRule) -> str:
    hours, minutes, seconds = (rule.values.get(name, ()) for name in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if hours and len(hours) * len(minutes) * len(seconds) <= _MOST_TIMES_TOLD:
        clock = "{:02}:{:02}:{:02}" if seconds != (0,) else "{:02}:{:02}"
        return f" at {_join([clock.format(*time) for time in product(hours, minutes, seconds)])}"
    text = f" at minute {_numbers(minutes)}" if minutes else ""
    if seconds and seconds != (0,):
        text += f" at second {_numbers(seconds)}"
    return f"{text} of hour {_numbers(hours)}" if hours else text


def _numbered(what: str, number: int, whole: str) -> str:
    if number == -1:
        return f"the last {what} of the {whole}"
    return (
        f"{what} {number} of the {whole}" if number > 0 else f"{what} {-number} from the end of the {whole}"
    )


def _nth(number: int, what: str) -> str:
    order = _ORDINALS[abs(number)] if abs(number) < len(_ORDINALS) else f"number {abs(number)}"
    if number == -1:
        return f"the last {what}"
    return f"the {order} {what}" if number > 0 else f"the {order} last {what}"


def _numbers(values: tuple[int, ...]) -> str:
    return _join([str(value) for value in values])


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time
_HOUR_SECONDS = 3600
_MONTHS_A_YEAR = 12
_DAYS_A_WEEK = 7
# The calendar repeats itself, weekdays and all, after 400 years, and dateutil searches up to the year 9999. A search
# that is moved there by whole repetitions looks 100 to 500 years ahead: far enough, and never for ever.
_REPEATS = 400
_REPEATS_SECONDS = 146_097 * DAY_SECONDS
_LATEST_YEAR = 9_899


@dataclass(frozen=True, slots=True, kw_only=True)
class RRule(Trigger):
    """The wall times that a recurrence rule names, from `start` on; whatever the rule leaves open, the start says.

    A wall time that a change of the clock swallows comes once, right after the gap; one that comes twice counts once.
    """

    # A step of a search into a year of days, which is what dateutil looks through.
    cost = 50

    rule: str
    start: Instant
    tz: str = "UTC"
    _zone: Zone = field(init=False, repr=False, compare=False)
    _rule: ParsedRRule = field(init=False, repr=False, compare=False)
    _first: int = field(init=False, repr=False, compare=False)
    _end: Instant = field(init=False, repr=False, compare=False)
    _arguments: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_instant(self.start, what="start")
        text, place = check_rrule_text(self.rule), zone(self.tz)
        start = self.start - self.start % SECOND
        first = wall_second_at(place, start)
        rule = _completed(read_rrule(text), _EPOCH + timedelta(seconds=first))
        end = _end(rule.until, place.key)
        derived = {
            "_zone": place,
            "_rule": rule,
            "_first": first,
            "_end": end,
            "_arguments": _arguments(rule),
        }
        for name, value in {"rule": text, "start": start, "tz": place.key, **derived}.items():
            object.__setattr__(self, name, value)
        if self.after(start - 1) is None:
            raise InvalidTrigger(
                f"the rule {text!r} never comes: no date fits it from its start on, before its end"
            )

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        found = first_after_wall(self._zone, max(instant, self.start - 1), self.first_from)
        return found if found is not None and found <= self._end else None

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing."""
        found = Trigger.seek(self, instant, search)
        if not isinstance(found, NoOccurrence) or not found.proved:
            return found
        # That nothing fits is known as far as dateutil looks; that the rule is over, for good.
        searched = from_datetime(self._last_day(wall_second_at(self._zone, max(instant, self.start))))
        return NoOccurrence(searched) if instant < searched < self._end else found

    def describe(self) -> str:
        """Say the rule in English."""
        start = _EPOCH + timedelta(seconds=self._first)
        text = f"{describe_rrule(self._rule)}, from {start:%Y-%m-%d %H:%M:%S}, {self.tz}"
        return text if self._end == LATEST else f"{text}, until {in_words(self._end)}"

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "rrule", "rule": self.rule, "start": self.start, "tz": self.tz}

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that the rule names."""
        wall = max(wall, self._first)
        begin = _begin(self._rule, self._first, wall)
        moved = _moved(begin)
        begin = begin.replace(year=begin.year + moved * _REPEATS)
        wanted = _EPOCH + timedelta(seconds=wall + moved * _REPEATS_SECONDS)
        try:
            for found in _dateutil().rrule(dtstart=begin, **self._arguments):
                if found >= wanted:
                    return int((found - _EPOCH) // timedelta(seconds=1)) - moved * _REPEATS_SECONDS
        except ValueError as error:
            raise InvalidTrigger(f"the rule {self.rule!r} cannot be: {error}") from error
        return None

    def _last_day(self, wall: int) -> datetime:
        """Return a day that a search from `wall` surely looks at in any zone, next to the last."""
        moved = _moved(_begin(self._rule, self._first, wall))
        return datetime(9_999 - moved * _REPEATS, 12, 30, tzinfo=UTC)


def rrule(rule: str, *, start: datetime, tz: str | ZoneInfo | None = None) -> RRule:
    """Return the trigger for an RFC 5545 recurrence rule, such as `FREQ=MONTHLY;BYDAY=-1FR`.

    The rule goes by the wall clock of `tz`, which is the zone of `start` unless given. Needs the extra `rrule`.
    """
    return RRule(rule=rule, start=from_datetime(start, what="start"), tz=zone_name_of(tz, start))


def _completed(rule: ParsedRRule, start: datetime) -> ParsedRRule:
    """Return the rule with what it leaves open taken from the start, so that it can be asked from anywhere."""
    values = dict(rule.values)
    days = rule.days
    if not days and not values.keys() & {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"}:
        if rule.frequency == "YEARLY":
            values.setdefault("BYMONTH", (start.month,))
        if rule.frequency in ("YEARLY", "MONTHLY"):
            values["BYMONTHDAY"] = (start.day,)
        if rule.frequency == "WEEKLY":
            days = ((0, start.weekday()),)
    if rule.frequency != "HOURLY":
        values.setdefault("BYHOUR", (start.hour,))
    values.setdefault("BYMINUTE", (start.minute,))
    values.setdefault("BYSECOND", (start.second,))
    return replace(rule, values=values, days=days)


def _arguments(rule: ParsedRRule) -> dict[str, Any]:
    module = _dateutil()
    arguments: dict[str, Any] = {name.lower(): values for name, values in rule.values.items()}
    if rule.days:
        arguments["byweekday"] = [module.weekday(day, n=nth or None) for nth, day in rule.days]
    frequency = FREQUENCIES.index(rule.frequency)
    return {"freq": frequency, "interval": rule.interval, "wkst": rule.week_start, **arguments}


def _begin(rule: ParsedRRule, first: int, wall: int) -> datetime:
    """Return where the latest period begins that is not after `wall` and a whole number of intervals from the first."""
    start, at = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=wall)
    if rule.frequency == "HOURLY":
        hours = (wall // _HOUR_SECONDS - first // _HOUR_SECONDS) // rule.interval * rule.interval
        return _EPOCH + timedelta(hours=first // _HOUR_SECONDS + hours)
    if rule.frequency in ("YEARLY", "MONTHLY"):
        size = rule.interval * (_MONTHS_A_YEAR if rule.frequency == "YEARLY" else 1)
        month = start.year * _MONTHS_A_YEAR + (start.month - 1 if rule.frequency == "MONTHLY" else 0)
        month += (at.year * _MONTHS_A_YEAR + at.month - 1 - month) // size * size
        return datetime(month // _MONTHS_A_YEAR, month % _MONTHS_A_YEAR + 1, 1)  # noqa: DTZ001 - a wall time
    size = rule.interval * (_DAYS_A_WEEK if rule.frequency == "WEEKLY" else 1)
    day = start.date().toordinal()
    if rule.frequency == "WEEKLY":
        day -= (start.weekday() - rule.week_start) % _DAYS_A_WEEK
    day += (at.date().toordinal() - day) // size * size
    return datetime.combine(date.fromordinal(day), datetime.min.time())


def _moved(begin: datetime) -> int:
    """Return by how many repetitions of the calendar a search that begins there is moved."""
    return (_LATEST_YEAR - begin.year) // _REPEATS


def _end(until: str | None, tz: str) -> Instant:
    if until is None:
        return LATEST
    wall, is_utc = read_until(until)
    return from_datetime(wall.replace(tzinfo=UTC if is_utc else ZoneInfo(tz)), what=f"UNTIL={until}")


def _dateutil() -> Any:
    try:
        from dateutil import rrule as module
    except ImportError as error:
        raise MissingDriver('rrule() needs python-dateutil: pip install "duetime[rrule]"') from error
    return module
