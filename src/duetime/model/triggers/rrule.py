"""Recurrence rules of RFC 5545, as calendars write them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger, MissingDriver
from duetime.model.instants import LATEST, SECOND, Instant, from_datetime, in_words
from duetime.model.triggers.base import Trigger, check_instant
from duetime.model.triggers.rrule_describe import describe
from duetime.model.triggers.rrule_text import FREQUENCIES, Rule, check_text, read, read_until
from duetime.model.triggers.searching import Nothing, Search
from duetime.model.triggers.walls import first_after, wall_at, zone_of
from duetime.model.triggers.zones import DAY, Zone, zone

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time
_HOUR = 3600
_YEAR = 12
_WEEK = 7
# The calendar repeats itself, weekdays and all, after 400 years, and dateutil searches up to the year 9999. A search
# that is moved there by whole repetitions looks 100 to 500 years ahead: far enough, and never for ever.
_REPEATS = 400
_REPEATS_SECONDS = 146_097 * DAY
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
    _rule: Rule = field(init=False, repr=False, compare=False)
    _first: int = field(init=False, repr=False, compare=False)
    _end: Instant = field(init=False, repr=False, compare=False)
    _arguments: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_instant(self.start, what="start")
        text, place = check_text(self.rule), zone(self.tz)
        start = self.start - self.start % SECOND
        first = wall_at(place, start)
        rule = _completed(read(text), _EPOCH + timedelta(seconds=first))
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
        found = first_after(self._zone, max(instant, self.start - 1), self.first_from)
        return found if found is not None and found <= self._end else None

    def seek(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first occurrence strictly after `instant`, or how far there is nothing."""
        found = Trigger.seek(self, instant, search)
        if not isinstance(found, Nothing) or not found.proved:
            return found
        # That nothing fits is known as far as dateutil looks; that the rule is over, for good.
        searched = from_datetime(self._last_day(wall_at(self._zone, max(instant, self.start))))
        return Nothing(searched) if instant < searched < self._end else found

    def describe(self) -> str:
        """Say the rule in English."""
        start = _EPOCH + timedelta(seconds=self._first)
        text = f"{describe(self._rule)}, from {start:%Y-%m-%d %H:%M:%S}, {self.tz}"
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
    return RRule(rule=rule, start=from_datetime(start, what="start"), tz=zone_of(tz, start))


def _completed(rule: Rule, start: datetime) -> Rule:
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


def _arguments(rule: Rule) -> dict[str, Any]:
    module = _dateutil()
    arguments: dict[str, Any] = {name.lower(): values for name, values in rule.values.items()}
    if rule.days:
        arguments["byweekday"] = [module.weekday(day, n=nth or None) for nth, day in rule.days]
    frequency = FREQUENCIES.index(rule.frequency)
    return {"freq": frequency, "interval": rule.interval, "wkst": rule.week_start, **arguments}


def _begin(rule: Rule, first: int, wall: int) -> datetime:
    """Return where the latest period begins that is not after `wall` and a whole number of intervals from the first."""
    start, at = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=wall)
    if rule.frequency == "HOURLY":
        hours = (wall // _HOUR - first // _HOUR) // rule.interval * rule.interval
        return _EPOCH + timedelta(hours=first // _HOUR + hours)
    if rule.frequency in ("YEARLY", "MONTHLY"):
        size = rule.interval * (_YEAR if rule.frequency == "YEARLY" else 1)
        month = start.year * _YEAR + (start.month - 1 if rule.frequency == "MONTHLY" else 0)
        month += (at.year * _YEAR + at.month - 1 - month) // size * size
        return datetime(month // _YEAR, month % _YEAR + 1, 1)  # noqa: DTZ001 - a wall time
    size = rule.interval * (_WEEK if rule.frequency == "WEEKLY" else 1)
    day = start.date().toordinal()
    if rule.frequency == "WEEKLY":
        day -= (start.weekday() - rule.week_start) % _WEEK
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
