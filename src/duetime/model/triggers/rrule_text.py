"""The text of a recurrence rule, as RFC 5545 has it: checked part by part, with the dates it takes away and adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod
from typing import NoReturn
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger
from duetime.model.text import shown
from duetime.model.time import LATEST, Instant, from_datetime
from duetime.model.triggers.zones import zone

WEEKDAY_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
"""How many seconds a period has, of rules that come more often than daily."""

_EXAMPLE = "FREQ=MONTHLY;BYDAY=-1FR"
_LONGEST = 1_000
_LONGEST_TEXT = 100_000
_MOST_DATES = 1_000
_MOST_TIMES = 100
"""How many times of day a rule that is asked through dateutil may name."""
# A hundred years each: a search looks that far ahead at least.
_LONGEST_INTERVALS = {
    "YEARLY": 100,
    "MONTHLY": 1_200,
    "WEEKLY": 5_200,
    **{name: 36_500 * 86_400 // size for name, size in {"DAILY": 86_400, **UNITS}.items()},
}
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
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_DAY = re.compile(r"([+-]?0?([1-9]|[1-4][0-9]|5[0-3]))?(MO|TU|WE|TH|FR|SA|SU)")
_MOMENT = re.compile(r"[0-9]{8}(T[0-9]{6}Z?)?")
# A line may go on in the next one after a space; one that is only indented begins with a name.
_FOLD = re.compile(r"\r?\n[ \t](?!\s*(?:RRULE|EXDATE|RDATE|DTSTART|EXRULE|FREQ)[:;=])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedDate:
    """A date that a rule takes away or adds."""

    excluded: bool
    wall: datetime
    tz: str | None
    """The zone of its wall time; that of the rule if there is none."""
    whole_day: bool
    written: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """A recurrence rule as it is written."""

    parts: dict[str, str]
    """Its parts in capitals by name."""
    dates: tuple[ListedDate, ...]

    @property
    def rule(self) -> str:
        """The rule without its dates."""
        return ";".join(f"{name}={value}" for name, value in self.parts.items())

    def __str__(self) -> str:
        return "\n".join([self.rule, *(date.written for date in self.dates)])


def read_rule(text: object) -> RuleText:
    """Read a rule and the lines of dates around it; raise `InvalidTrigger` naming what is wrong."""
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise InvalidTrigger(f"a recurrence rule is a text such as {_EXAMPLE!r}, not {shown(text)}")
    lines = [line.strip() for line in _FOLD.sub("", text.strip()).splitlines()]
    rules: list[str] = []
    dates: list[ListedDate] = []
    for line in filter(None, lines):
        name = re.split("[:;=]", line, maxsplit=1)[0].strip().upper()
        if name in ("EXDATE", "RDATE"):
            dates += _read_dates(name, line)
        elif name in ("DTSTART", "EXRULE"):
            known = "give the start as start=" if name == "DTSTART" else "take dates away with EXDATE"
            _refuse(line, text, known)
        else:
            rules.append(line)
    if len(rules) > 1:
        _refuse(rules[1], text, "there is one rule already; join two with rrule(...) | rrule(...)")
    if len(dates) > _MOST_DATES:
        raise InvalidTrigger(f"a recurrence rule has at most {_MOST_DATES:,} dates, not {len(dates):,}")
    return RuleText(_read_parts(rules[0] if rules else ""), tuple(dates))


def last_instant(parts: Mapping[str, str], tz: str) -> Instant:
    """Return the instant of `UNTIL`, or the end of time."""
    until = parts.get("UNTIL")
    if until is None or (wall := _read_moment(until)) is None:
        return LATEST
    return from_datetime(
        wall.replace(tzinfo=UTC if until.endswith("Z") else ZoneInfo(tz)), what=f"UNTIL={until}"
    )


def _read_dates(name: str, line: str) -> Iterator[ListedDate]:
    head, _, values = line.partition(":")
    options = [option.strip().partition("=") for option in head.split(";")[1:]]
    given = {key.upper(): value.strip('"') for key, _, value in options}
    kind = given.pop("VALUE", "").upper()
    tz = given.pop("TZID", None)
    if given or kind not in ("", "DATE", "DATE-TIME"):
        _refuse(head, line, f"write for example {name};TZID=Europe/Riga:20301231T090000")
    place = None if tz is None else zone(tz).key
    for value in values.split(","):
        moment = value.strip().upper()
        wall = _read_moment(moment)
        whole_day = "T" not in moment
        if wall is None or (kind and (kind == "DATE") is not whole_day):
            _refuse(value, line, "a date or time such as 20301231 or 20301231T090000Z is expected")
        in_utc = moment.endswith("Z")
        if tz is not None and (in_utc or whole_day):
            _refuse(value, line, "TZID goes with the time of a wall clock, such as 20301231T090000")
        said = f"{name};VALUE=DATE" if whole_day else f"{name};TZID={place}" if place else name
        yield ListedDate(name == "EXDATE", wall, "UTC" if in_utc else place, whole_day, f"{said}:{moment}")


def _read_moment(text: str) -> datetime | None:
    """Return the wall time that a text names, for a date its last second; `None` if it names none."""
    if not _MOMENT.fullmatch(text):
        return None
    whole = text if "T" in text else f"{text}T235959"
    try:
        return datetime.strptime(whole.removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - a wall time
    except ValueError:
        return None


def _read_parts(text: str) -> dict[str, str]:
    """Return the parts of a rule in capitals by name; raise `InvalidTrigger` naming the part that is wrong.

    dateutil takes values out of range, and reads a rule with them as another.
    """
    if len(text) > _LONGEST:
        raise InvalidTrigger(f"a recurrence rule is a text such as {_EXAMPLE!r}, not {shown(text)}")
    parts = _split(text)
    frequency = parts.get("FREQ", "")
    if frequency not in _LONGEST_INTERVALS:
        _refuse(f"FREQ={frequency}", text, f"FREQ is needed, one of {', '.join(_LONGEST_INTERVALS)}")
    for name, value in parts.items():
        for item in value.split(","):
            if (expected := _misfit(name, item, frequency)) is not None:
                _refuse(f"{name}={item[:20]}", text, expected)
    times = prod(len({*parts.get(name, "").split(",")}) for name in _TIMES)
    if frequency not in UNITS and times > _MOST_TIMES:
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
    elif name == "WKST" and item not in WEEKDAY_CODES:
        expected = f"expected one of {', '.join(WEEKDAY_CODES)}"
    elif name == "UNTIL" and _read_moment(item) is None:
        expected = "expected a date or time such as 20301231 or 20301231T235959Z"
    elif name == "BYDAY" and not _DAY.fullmatch(item):
        expected = "expected days such as MO, 1FR (the first Friday) or -1FR (the last)"
    elif name == "BYDAY" and item not in WEEKDAY_CODES and frequency not in ("YEARLY", "MONTHLY"):
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
