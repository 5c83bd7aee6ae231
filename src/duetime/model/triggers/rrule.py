"""Recurrence rules of RFC 5545: checked and asked for their occurrences by way of dateutil."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import prod
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger, MissingDriver
from duetime.model.text import shown
from duetime.model.time import LATEST, SECOND, Instant, from_datetime
from duetime.model.triggers.base import NoOccurrence, SearchBudget, Trigger, check_instant, set_fields
from duetime.model.triggers.zones import DAY_SECONDS, first_after_wall, wall_second_at, zone, zone_name_of

_EXAMPLE = "FREQ=MONTHLY;BYDAY=-1FR"
_LONGEST = 1_000
_MOST_TIMES = 100
"""How many times of day one rule may name."""
# A hundred years each: a search looks that far ahead at least.
_LONGEST_INTERVALS = {"YEARLY": 100, "MONTHLY": 1_200, "WEEKLY": 5_200, "DAILY": 36_500, "HOURLY": 876_000}
_TOO_FAST = ("MINUTELY", "SECONDLY")
_WEEKDAY_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
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
_TIMES = ("BYHOUR", "BYMINUTE", "BYSECOND")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")
_DAY = re.compile(r"([+-]?0?([1-9]|[1-4][0-9]|5[0-3]))?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL = re.compile(r"[0-9]{8}(T[0-9]{6}Z?)?")

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

    kind = "rrule"

    # A step of a search into a year of days, which is what dateutil looks through.
    cost = 50

    rule: str
    start: Instant
    tz: str = "UTC"
    _parts: dict[str, str] = field(init=False, repr=False, compare=False)
    """The parts of the rule, with what it leaves open taken from the start, so that it can be asked from anywhere."""
    _dates: Any = field(init=False, repr=False, compare=False)
    """The same as dateutil reads it; it begins at the start."""
    _first: int = field(init=False, repr=False, compare=False)
    _end: Instant = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_instant(self.start, what="start")
        parts, place = _read_parts(self.rule), zone(self.tz)
        text = ";".join(f"{name}={value}" for name, value in parts.items())
        start = self.start - self.start % SECOND
        first = wall_second_at(place, start)
        begin = _EPOCH + timedelta(seconds=first)
        end = _end(parts.pop("UNTIL", None), place.key)
        parts = _completed(parts, begin)
        whole, read = ";".join(f"{name}={value}" for name, value in parts.items()), _dateutil().rrulestr
        try:
            dates = read(whole, dtstart=begin)
        except ValueError as error:
            raise InvalidTrigger(f"the rule {text!r} cannot be: {error}") from error
        set_fields(self, rule=text, start=start, tz=place.key)
        set_fields(self, _end=end, _parts=parts, _dates=dates, _first=first)
        if self.after(start - 1) is None:
            raise InvalidTrigger(f"the rule {text!r} never comes: no date fits it from its start to its end")

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        found = first_after_wall(zone(self.tz), max(instant, self.start - 1), self.first_from)
        return found if found is not None and found <= self._end else None

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing."""
        found = Trigger.seek(self, instant, search)
        if not isinstance(found, NoOccurrence) or not found.proved:
            return found
        # That nothing fits is known as far as dateutil looks, less a day for any zone; that the rule is over, for good.
        begin = _begin(self._parts, self._first, wall_second_at(zone(self.tz), max(instant, self.start)))
        searched = from_datetime(datetime(9_999 - _moved(begin) * _REPEATS, 12, 30, tzinfo=UTC))
        return NoOccurrence(searched) if instant < searched < self._end else found

    def describe(self) -> str:
        """Return the rule as it is written, which says its end, too, and its start in words."""
        return f"{self.rule}, from {_EPOCH + timedelta(seconds=self._first):%Y-%m-%d %H:%M:%S}, {self.tz}"

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that the rule names."""
        wall = max(wall, self._first)
        begin = _begin(self._parts, self._first, wall)
        moved = _moved(begin)
        begin = begin.replace(year=begin.year + moved * _REPEATS)
        wanted = _EPOCH + timedelta(seconds=wall + moved * _REPEATS_SECONDS)
        for found in self._dates.replace(dtstart=begin):
            if found >= wanted:
                return int((found - _EPOCH) // timedelta(seconds=1)) - moved * _REPEATS_SECONDS
        return None


def rrule(rule: str, *, start: datetime, tz: str | ZoneInfo | None = None) -> RRule:
    """Return the trigger for an RFC 5545 recurrence rule, such as `FREQ=MONTHLY;BYDAY=-1FR`.

    The rule goes by the wall clock of `tz`, which is the zone of `start` unless given. Needs the extra `rrule`.
    """
    return RRule(rule=rule, start=from_datetime(start, what="start"), tz=zone_name_of(tz, start))


def _read_parts(text: object) -> dict[str, str]:
    """Return the parts of a rule in capitals by name; raise `InvalidTrigger` naming the part that is wrong.

    dateutil takes values out of range, and reads a rule with them as another.
    """
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidTrigger(f"a recurrence rule is a text such as {_EXAMPLE!r}, not {shown(text)}")
    parts = _split(text)
    frequency = parts.get("FREQ", "")
    if frequency not in _LONGEST_INTERVALS:
        advice = "use every('90s') or cron('*/10 * * * * *') for what comes so often"
        known = f"FREQ is needed, one of {', '.join(_LONGEST_INTERVALS)}"
        _refuse(f"FREQ={frequency}", text, advice if frequency in _TOO_FAST else known)
    for name, value in parts.items():
        for item in value.split(","):
            if (expected := _misfit(name, item, frequency)) is not None:
                _refuse(f"{name}={item[:20]}", text, expected)
    times = prod(len({*parts.get(name, "").split(",")}) for name in _TIMES)
    if times > _MOST_TIMES:
        _refuse(", ".join(_TIMES), text, f"at most {_MOST_TIMES} times of day, not {times}; use cron()")
    if "BYSETPOS" in parts and sum(name.startswith("BY") for name in parts) == 1:
        _refuse("BYSETPOS", text, "it chooses among the days of another part, such as BYDAY=MO,TU,WE,TH,FR")
    return parts


def _split(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").removesuffix(";").split(";"):
        name, _, value = part.partition("=")
        if not value:
            _refuse(part, text, "expected NAME=VALUE")
        if name in parts:
            _refuse(part, text, f"{name} is given twice")
        parts[name] = value
    return parts


def _misfit(name: str, item: str, frequency: str) -> str | None:
    """Say what is expected instead of one value of a part; `None` if it is right."""
    expected: str | None = None
    if name == "COUNT":
        expected = "jobs made are counted by the schedule: rrule(...).at_most(10)"
    elif name == "WKST" and item not in _WEEKDAY_CODES:
        expected = f"expected one of {', '.join(_WEEKDAY_CODES)}"
    elif name == "UNTIL" and _read_until(item) is None:
        expected = "expected a date or time such as 20301231 or 20301231T235959Z"
    elif name == "BYDAY" and not _DAY.fullmatch(item):
        expected = "expected days such as MO, 1FR (the first Friday) or -1FR (the last)"
    elif name == "BYDAY" and item not in _WEEKDAY_CODES and frequency not in ("YEARLY", "MONTHLY"):
        expected = "which one of its weekday needs FREQ=MONTHLY or FREQ=YEARLY"
    elif name in _RANGES or name == "INTERVAL":
        low, high = _RANGES.get(name) or (1, _LONGEST_INTERVALS[frequency])
        number = int(item) if _NUMBER.fullmatch(item) else high + 1
        if not low <= number <= high or (low < 0 and not number):
            from_end = f"expected 1 to {high}, or -1 to {low} from the end"
            expected = f"expected {low} to {high}" if low >= 0 else from_end
    elif name not in ("FREQ", "WKST", "UNTIL", "BYDAY"):
        expected = f"known parts are FREQ, INTERVAL, UNTIL, WKST, BYDAY, {', '.join(_RANGES)}"
    return expected


def _refuse(part: str, text: str, expected: str) -> NoReturn:
    raise InvalidTrigger(f"bad part {shown(part)} in the rule {shown(text)}: {expected}; e.g. {_EXAMPLE!r}")


def _read_until(text: str) -> tuple[datetime, bool] | None:
    """Return the last moment of an `UNTIL`, and whether it is in UTC; a date means the end of that day."""
    if not _UNTIL.fullmatch(text):
        return None
    whole = text if "T" in text else f"{text}T235959"
    try:
        return datetime.strptime(whole.removesuffix("Z"), "%Y%m%dT%H%M%S"), text.endswith("Z")  # noqa: DTZ007 - a wall time
    except ValueError:
        return None


def _end(until: str | None, tz: str) -> Instant:
    if until is None or (read := _read_until(until)) is None:
        return LATEST
    wall, is_utc = read
    return from_datetime(wall.replace(tzinfo=UTC if is_utc else ZoneInfo(tz)), what=f"UNTIL={until}")


def _completed(parts: Mapping[str, str], start: datetime) -> dict[str, str]:
    """Return the parts with what they leave open taken from the start."""
    full, frequency = dict(parts), parts["FREQ"]
    if not parts.keys() & {"BYDAY", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"}:
        if frequency == "YEARLY":
            full.setdefault("BYMONTH", str(start.month))
        if frequency in ("YEARLY", "MONTHLY"):
            full["BYMONTHDAY"] = str(start.day)
        if frequency == "WEEKLY":
            full["BYDAY"] = _WEEKDAY_CODES[start.weekday()]
    if frequency != "HOURLY":
        full.setdefault("BYHOUR", str(start.hour))
    full.setdefault("BYMINUTE", str(start.minute))
    full.setdefault("BYSECOND", str(start.second))
    return full


def _begin(parts: Mapping[str, str], first: int, wall: int) -> datetime:
    """Return where the latest period begins that is not after `wall` and a whole number of intervals from the first."""
    start, at = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=wall)
    frequency, size = parts["FREQ"], int(parts.get("INTERVAL", 1))
    if frequency == "HOURLY":
        hours = (wall // _HOUR_SECONDS - first // _HOUR_SECONDS) // size * size
        return _EPOCH + timedelta(hours=first // _HOUR_SECONDS + hours)
    if frequency in ("YEARLY", "MONTHLY"):
        size *= _MONTHS_A_YEAR if frequency == "YEARLY" else 1
        month = start.year * _MONTHS_A_YEAR + (start.month - 1 if frequency == "MONTHLY" else 0)
        month += (at.year * _MONTHS_A_YEAR + at.month - 1 - month) // size * size
        return datetime(month // _MONTHS_A_YEAR, month % _MONTHS_A_YEAR + 1, 1)  # noqa: DTZ001 - a wall time
    day = start.date().toordinal()
    if frequency == "WEEKLY":
        size *= _DAYS_A_WEEK
        day -= (start.weekday() - _WEEKDAY_CODES.index(parts.get("WKST", "MO"))) % _DAYS_A_WEEK
    day += (at.date().toordinal() - day) // size * size
    return datetime.combine(date.fromordinal(day), datetime.min.time())


def _moved(begin: datetime) -> int:
    """Return by how many repetitions of the calendar a search that begins there is moved."""
    return (_LATEST_YEAR - begin.year) // _REPEATS


def _dateutil() -> Any:
    try:
        from dateutil import rrule as module
    except ImportError as error:
        raise MissingDriver('rrule() needs python-dateutil: pip install "duetime[rrule]"') from error
    return module
