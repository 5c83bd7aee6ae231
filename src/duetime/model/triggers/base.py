"""What every trigger can do, the bounded search for an occurrence, and what is checked before a schedule is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from duetime.errors import InvalidTime, InvalidTrigger
from duetime.model.text import shown
from duetime.model.time import (
    DAY,
    EARLIEST,
    LATEST,
    LONGEST_DURATION,
    Instant,
    Micros,
    describe_duration,
    from_datetime,
    in_words,
    parse_duration,
    to_datetime,
)

if TYPE_CHECKING:
    from duetime.model.time import Duration
    from duetime.model.triggers.calendars import Calendar
    from duetime.model.triggers.combined import AtMost, Between, Except, Intersection, Jitter, Union
    from duetime.model.triggers.working_days import Rolled


MOST_SEARCH_STEPS = 10_000
"""How many steps one search may take, a step for each question to a simple trigger."""
MOST_CHECK_STEPS = 100_000
"""How many steps a search takes that decides or lists: enough to try each day of a hundred years."""
SEARCH_HORIZON: Micros = LONGEST_DURATION
"""How far ahead combined triggers are searched: a hundred years."""


@dataclass(frozen=True, slots=True)
class NoOccurrence:
    """Nothing comes after the instant asked about, up to and including `through`; what follows is not known."""

    through: Instant

    @property
    def proved(self) -> bool:
        """Whether nothing comes at all."""
        return self.through >= LATEST


NEVER = NoOccurrence(LATEST)


@dataclass(slots=True)
class SearchBudget:
    """The steps that a search has left, and the last instant that is of interest."""

    until: Instant
    left: int = MOST_SEARCH_STEPS


@dataclass(slots=True)
class SearchMemory:
    """The last answer of a trigger that took many steps, and the instant from which it holds.

    Both are replaced in one assignment, so that threads may share it.
    """

    answer: tuple[Instant, Instant | NoOccurrence] | None = None


_MOST_TIMES = 1_000_000_000


@runtime_checkable
class Trigger(Protocol):
    """A pure rule that says when something is due."""

    __slots__ = ()

    kind: ClassVar[str] = ""
    """Its name where it is stored."""
    tz: str = "UTC"
    """The zone to show its times in."""
    times: int | None = None
    """How many jobs its schedule may make in all; the schedule counts them, `after` does not."""
    cost: int = 1
    """How many steps of a bounded search it takes to ask it."""

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`, or None if there is no more.

        None of a combined trigger may also mean that a bounded search found nothing: `first` tells the two apart.
        """
        ...

    def describe(self) -> str:
        """Say the rule in English."""
        ...

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data, which `trigger_from_spec` reads."""
        return spec_of(self)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence strictly after an aware `moment`, in UTC, or None if none is found."""
        instant = self.after(from_datetime(moment, what="moment"))
        return None if instant is None else to_datetime(instant)

    def previous_before(self, moment: datetime) -> datetime | None:
        """Return the last occurrence strictly before an aware `moment`, in UTC, or None if none is found."""
        instant = from_datetime(moment, what="moment")
        found = self.anchored(instant).last(EARLIEST - 1, instant - 1)
        return None if found is None else to_datetime(found)

    def occurrences(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the occurrences from an aware `start` to an aware `end`, both included, in order and in UTC.

        Raises `InvalidTime` where a search for the next one takes too many steps.
        """
        first, until = from_datetime(start, what="start"), from_datetime(end, what="end")
        if until < first:
            raise InvalidTime(f"end {end.isoformat()} lies before start {start.isoformat()}")
        return _walk(self.anchored(first), first - 1, until)

    def seek(self, instant: Instant, search: SearchBudget) -> Instant | NoOccurrence:
        """Return the first occurrence strictly after `instant`, or how far there is nothing: all the way, if steps suffice."""
        if search.left <= 0:
            return NoOccurrence(instant)
        search.left -= self.cost
        found = self.after(instant)
        return NEVER if found is None else found

    def first(
        self, instant: Instant, *, until: Instant = LATEST, steps: int = MOST_SEARCH_STEPS
    ) -> Instant | NoOccurrence:
        """Do as `seek` does; `until` ends the search of a combined trigger, which looks a hundred years ahead at most."""
        return self.seek(instant, SearchBudget(min(until, instant + SEARCH_HORIZON), steps))

    def comes_at(self, instant: Instant) -> bool:
        """Tell whether `instant` is an occurrence."""
        return self.first(instant - 1, until=instant) == instant

    def due(self, occurrence: Instant) -> Instant:
        """Return when the job of an occurrence falls due, the same in every process."""
        return occurrence

    def count(self, after: Instant, until: Instant) -> int | None:
        """Return how many occurrences lie in `after < occurrence <= until`, or None if that takes a walk."""
        del after, until
        return None

    def last(self, after: Instant, until: Instant) -> Instant | None:
        """Return the latest occurrence in `after < occurrence <= until`, or None if a bounded search finds none."""
        search, reach = SearchBudget(until, MOST_CHECK_STEPS), DAY
        # The last stretch that has any is looked for first, each longer than the one after it.
        while after < until:
            low = since = max(after, until - reach)
            high, found = until, None
            # While one more follows within the range, the latest lies at or after it: halving needs no walk.
            while low < high:
                search.until, middle = high, low if found is None else (low + high) // 2
                following = self.seek(middle, search)
                if isinstance(following, NoOccurrence):
                    if following.through < high:
                        return None
                elif following <= high:
                    found = low = following
                    continue
                high = middle
            if found is not None:
                return found
            until, reach = since, 8 * reach
        return None

    def seeded(self, name: str) -> Self:
        """Return this rule with its hashed fields spread by `name`, unless it already has a seed."""
        del name
        return self

    def anchored(self, instant: Instant) -> Self:
        """Return this rule counting from `instant`, unless it already has a start."""
        del instant
        return self

    def __or__(self, other: Trigger) -> Union:
        from duetime.model.triggers.combined import Union

        return Union((self, other))

    def __and__(self, other: Trigger) -> Intersection:
        from duetime.model.triggers.combined import Intersection

        return Intersection((self, other))

    def __sub__(self, calendar: Calendar) -> Except:
        from duetime.model.triggers.combined import Except

        return Except(self, calendar)

    def roll(self, calendar: Calendar, *, to: Literal["next", "previous"] = "next") -> Rolled:
        """Return this rule with what falls on the days of a calendar moved to the next or previous working day."""
        from duetime.model.triggers.working_days import Rolled

        return Rolled(self, calendar, to)

    def between(self, start: datetime | None = None, end: datetime | None = None) -> Between:
        """Return this rule from an aware `start` to an aware `end`, both included."""
        from duetime.model.triggers.combined import Between

        first = None if start is None else from_datetime(start, what="start")
        return Between(self, first, None if end is None else from_datetime(end, what="end"))

    def at_most(self, times: int) -> AtMost:
        """Return this rule for a schedule that ends when it has made this number of jobs."""
        from duetime.model.triggers.combined import AtMost

        return AtMost(self, times)

    def jitter(self, most: Duration) -> Jitter:
        """Return this rule with jobs that fall due up to `most` later, each by its own amount."""
        from duetime.model.triggers.combined import Jitter

        return Jitter(self, parse_duration(most, what="jitter"))


def _walk(trigger: Trigger, after: Instant, until: Instant) -> Iterator[datetime]:
    while after < until:
        search = SearchBudget(until, MOST_CHECK_STEPS)
        found = trigger.seek(after, search)
        if isinstance(found, NoOccurrence):
            if search.left <= 0 and found.through < until:
                shorter = "takes too many steps to tell; ask for a shorter time"
                raise InvalidTime(f"what comes after {in_words(found.through)} {shorter}")
            after = found.through
        else:
            after = found
            if after <= until:
                yield to_datetime(after)


def set_fields(instance: object, **values: object) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def draw_number(text: str) -> int:
    """Return a number that is drawn from a text: the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def spec_of(rule: Any) -> dict[str, object]:
    """Return a trigger or calendar as JSON-able data: its kind, and the fields that are not left as they are."""
    spec: dict[str, object] = {"type": rule.kind}
    for one in fields(rule):
        value = getattr(rule, one.name)
        if one.init and value is not None and (value != one.default or one.name == "tz"):
            spec[one.name] = _plain(value)
    return spec


def _plain(value: Any) -> Any:
    match value:
        case ((date(), _), *_):
            return {str(day): name for day, name in value}
        case (*parts,):
            return [_plain(part) for part in parts]
        case _:
            return value.to_spec() if hasattr(value, "to_spec") else value


def check_times(value: object, *, what: str) -> None:
    """Raise `InvalidTrigger` unless `value` is how many jobs a schedule may make."""
    expected = f"a whole number from 1 to {_MOST_TIMES:,}"
    check_whole(value, what=what, low=1, high=_MOST_TIMES, expected=expected)


def check_instant(value: object, *, what: str) -> None:
    """Raise `InvalidTrigger` unless `value` is an instant in range."""
    check_whole(value, what=what, low=EARLIEST, high=LATEST, expected="an instant between 1970 and 9000")


def check_instants(**values: object) -> None:
    """Raise `InvalidTrigger` unless all that are given are instants in range."""
    for name, value in values.items():
        if value is not None:
            check_instant(value, what=name)


def check_length(value: object, *, what: str, low: Micros, high: Micros, expected: str) -> None:
    """Raise `InvalidTrigger` unless `value` is a length of time in range; the message has it in words."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidTrigger(f"{what} must be {expected}, not {shown(value)}")
    if not low <= value <= high:
        raise InvalidTrigger(f"{what} must be {expected}, not {describe_duration(value)}")


def check_whole(value: object, *, what: str, low: int, high: int, expected: str) -> None:
    """Raise `InvalidTrigger` unless `value` is a whole number in range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTrigger(f"{what} must be {expected}, not {shown(value)}")


OCCURRENCES_COMPARED = 100
"""How many occurrences are compared with the shortest interval that is allowed."""


def check_comes(trigger: Trigger, now: Instant) -> None:
    """Raise `InvalidTrigger` if it is proved that nothing is due within a hundred years after `now`.

    A trigger whose search runs out of steps is let through: it may come, and its schedule goes on searching.
    """
    found = trigger.first(now, steps=MOST_CHECK_STEPS)
    if isinstance(found, NoOccurrence) and found.through >= min(now + SEARCH_HORIZON, LATEST):
        since = "" if now == EARLIEST else f" after {in_words(now)}"
        text = f"the trigger ({trigger.describe()}) never comes{since}"
        raise InvalidTrigger(f"{text}; check its dates, its end and the calendars taken from it")


def check_pace(trigger: Trigger, now: Instant, shortest: Micros) -> None:
    """Raise `InvalidTrigger` if two of the next occurrences are closer together than `shortest`."""
    before = trigger.after(now)
    for _ in range(OCCURRENCES_COMPARED):
        if before is None or (following := trigger.after(before)) is None:
            return
        if following - before < shortest:
            both = (to_datetime(instant) for instant in (before, following))
            moments = " and ".join(moment.isoformat(sep=" ", timespec="milliseconds") for moment in both)
            text = f"the trigger ({trigger.describe()}) comes at {moments}, closer than {describe_duration(shortest)}"
            raise InvalidTrigger(f"{text}; make it rarer, or allow it with Scheduler(shortest_interval=...)")
        before = following
