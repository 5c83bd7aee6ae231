"""Recurrence rules of RFC 5545: what a rule names, less the dates it excludes, and those it adds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.errors import InvalidTrigger, MissingDriver
from duetime.model.text import short_list
from duetime.model.time import EARLIEST, SECOND, Instant
from duetime.model.triggers.base import (
    NEVER,
    NoOccurrence,
    SearchBudget,
    Trigger,
    check_instant,
    check_whole,
    set_fields,
)
from duetime.model.triggers.rrule_text import UNITS, ListedDate, RuleText, last_instant, read_rule
from duetime.model.triggers.rrule_times import RuleTimes, rule_times, wall_second
from duetime.model.triggers.zones import (
    DAY_SECONDS,
    first_after_wall,
    read_start,
    shown_wall,
    wall_second_at,
    zone,
    zone_name_of,
)

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RRule(Trigger):
    """The wall times that a recurrence rule names, from `start` on; whatever the rule leaves open, the start says.

    A wall time that a change of the clock swallows comes once, right after the gap; one that comes twice counts once.
    A rule by the hour, minute or second follows the clock instead.
    """

    kind = "rrule"

    # A step of a search into a year of days, which is what dateutil looks through.
    cost = 50

    rule: str
    start: Instant
    tz: str = "UTC"
    past: int = 0
    """How many seconds the clock has been set past the wall time of the start, where a gap swallows that."""
    repeats: bool = field(init=False, repr=False, compare=False)
    """Whether it follows the clock."""
    _text: RuleText = field(init=False, repr=False, compare=False)
    _first: int = field(init=False, repr=False, compare=False)
    _end: Instant = field(init=False, repr=False, compare=False)
    _times: RuleTimes = field(init=False, repr=False, compare=False)
    _added: list[Instant] = field(init=False, repr=False, compare=False)
    _excluded: set[Instant] = field(init=False, repr=False, compare=False)
    _excluded_days: set[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_instant(self.start, what="start")
        check_whole(self.past, what="past", low=0, high=DAY_SECONDS, expected="seconds of up to a day")
        text, place = read_rule(self.rule), zone(self.tz)
        start = self.start - self.start % SECOND
        first = wall_second_at(place, start) - self.past
        try:
            times = rule_times(text.parts, first)
        except MissingDriver:
            raise
        except ValueError as error:
            raise InvalidTrigger(f"the rule {text.rule!r} cannot be: {error}") from error
        set_fields(self, rule=str(text), start=start, tz=place.key, repeats=text.parts["FREQ"] in UNITS)
        set_fields(self, _text=text, _first=first, _end=last_instant(text.parts, place.key), _times=times)
        self._read_dates()
        if self.after(start - 1) is None:
            raise InvalidTrigger(
                f"the rule {text.rule!r} never comes: no date fits it from its start to its end"
            )

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        found = self._first_after(instant)
        return None if isinstance(found, NoOccurrence) else found

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing."""
        if search.left <= 0:
            return NoOccurrence(instant)
        search.left -= self.cost
        return self._first_after(instant)

    def describe(self) -> str:
        """Return the rule as it is written, which says its end, too; its dates and its start in words."""
        place = zone(self.tz)
        excluded = [_shown_moment(wall_second_at(place, instant)) for instant in self._excluded]
        excluded += [f"{shown_wall(day * DAY_SECONDS):%Y-%m-%d}" for day in self._excluded_days]
        added = [_shown_moment(wall_second_at(place, instant)) for instant in self._added]
        text = self._text.rule
        for word, dates in (("except", excluded), ("also", added)):
            text += f", {word} on {short_list(sorted(dates), most=_SHOWN)}" if dates else ""
        return f"{text}, from {_shown_moment(self._first)}, {self.tz}"

    def first_from(self, wall: int) -> int | None:
        """Return the first wall second at or after `wall` that the rule names."""
        found = self._times.first_from(max(wall, self._first))
        while found is not None and (day := found // DAY_SECONDS) in self._excluded_days:
            found = self._times.first_from((day + 1) * DAY_SECONDS)
        return found

    def _first_after(self, instant: Instant) -> Instant | NoOccurrence:
        named, position = self._named_after(instant), bisect_right(self._added, instant)
        if position == len(self._added):
            return named
        added, known = self._added[position], named.through if isinstance(named, NoOccurrence) else named
        return added if added <= known else named

    def _named_after(self, instant: Instant) -> Instant | NoOccurrence:
        """Return the first occurrence that the rule itself names, or up to where there is none."""
        found = self._reached(instant, self.first_from, repeats=self.repeats)
        while found is not None and found in self._excluded:
            found = self._reached(found, self.first_from, repeats=self.repeats)
        if found is not None:
            return found if found <= self._end else NEVER
        # That nothing fits is known as far as was searched, less a day for any zone; that the rule is over, for good.
        searched = self._times.searched(wall_second_at(zone(self.tz), max(instant, self.start)))
        through = (searched - DAY_SECONDS) * SECOND
        return NoOccurrence(through) if instant < through < self._end else NEVER

    def _reached(
        self, instant: Instant, first_from: Callable[[int], int | None], *, repeats: bool = False
    ) -> Instant | None:
        """Return when the clock first shows, after `instant` and not before the start, what `first_from` finds."""
        if instant < self.start:
            wall = first_from(self._first)
            # What a gap has swallowed comes with the start.
            if wall is None or wall <= self._first + self.past:
                return None if wall is None else self.start
        return first_after_wall(
            zone(self.tz), max(instant, self.start), first_from, begun=self.start, repeats=repeats
        )

    def _instant_of(self, date: ListedDate) -> Instant | None:
        """Return when a date comes, as if the rule named it; `None` if that is before the start."""
        wall = wall_second(date.wall)
        if date.whole_day:
            wall += (self._first - wall) % DAY_SECONDS - DAY_SECONDS
        since = max(EARLIEST, (wall - 2 * DAY_SECONDS) * SECOND)

        def named(seen: int) -> int | None:
            return wall if seen <= wall else None

        if date.tz in (None, self.tz):
            return self._reached(max(since, self.start - 1), named)
        found = first_after_wall(zone(date.tz), since, named)
        return found if found is not None and found >= self.start else None

    def _read_dates(self) -> None:
        """Find out when the dates come; one that is excluded is not added."""
        days: set[int] = set()
        excluded: set[Instant] = set()
        added: set[Instant] = set()
        for date in self._text.dates:
            instant = self._instant_of(date)
            if date.excluded and date.whole_day:
                days.add(wall_second(date.wall) // DAY_SECONDS)
            elif instant is not None:
                (excluded if date.excluded else added).add(instant)
            elif not date.excluded:
                raise InvalidTrigger(f"{date.written} lies before the start of its rule")
        place = zone(self.tz)
        kept = (one for one in added - excluded if wall_second_at(place, one) // DAY_SECONDS not in days)
        set_fields(self, _excluded_days=days, _excluded=excluded, _added=sorted(kept))


def rrule(rule: str, *, start: datetime, tz: str | ZoneInfo | None = None) -> RRule:
    """Return the trigger for an RFC 5545 recurrence rule, such as `FREQ=MONTHLY;BYDAY=-1FR`.

    Lines with `EXDATE` and `RDATE` take dates away and add some. The rule goes by the wall clock of `tz`, which is
    the zone of `start` unless given. Needs the extra `rrule`.
    """
    place = zone(zone_name_of(tz, start))
    first, past = read_start(start, place)
    return RRule(rule=rule, start=first, tz=place.key, past=past)


def _shown_moment(wall: int) -> str:
    return f"{shown_wall(wall):%Y-%m-%d %H:%M:%S}"
