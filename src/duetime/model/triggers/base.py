"""What every trigger can do."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.instants import EARLIEST, LATEST, Instant, Micros, from_datetime, to_datetime
from duetime.model.shown import shown
from duetime.model.triggers.searching import MOST_STEPS, NEVER, Nothing, Search

if TYPE_CHECKING:
    from duetime.model.calendars.base import Calendar
    from duetime.model.durations import Duration
    from duetime.model.triggers.at_most import AtMost
    from duetime.model.triggers.between import Between
    from duetime.model.triggers.intersection import Intersection
    from duetime.model.triggers.jitter import Jitter
    from duetime.model.triggers.minus import Except
    from duetime.model.triggers.union import Union

_MOST_TIMES = 1_000_000_000


@runtime_checkable
class Trigger(Protocol):
    """A pure rule that says when something is due."""

    __slots__ = ()

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
        """Return the rule as JSON-able data that `from_spec` reads back."""
        ...

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence strictly after an aware `moment`, in UTC, or None if none is found."""
        instant = self.after(from_datetime(moment, what="moment"))
        return None if instant is None else to_datetime(instant)

    def seek(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first occurrence strictly after `instant`, or how far there is nothing.

        It is proved that there is nothing up to the end of the search, unless its steps run out before.
        """
        if search.left <= 0:
            return Nothing(instant)
        search.left -= self.cost
        found = self.after(instant)
        return NEVER if found is None else found

    def first(
        self, instant: Instant, *, until: Instant = LATEST, steps: int = MOST_STEPS
    ) -> Instant | Nothing:
        """Return the first occurrence strictly after `instant`, or how far there is nothing; `until` ends the search."""
        return self.seek(instant, Search(until, steps))

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
        """Return the latest occurrence in `after < occurrence <= until`, or None if there is none."""
        found: Instant | None = None
        low, high = after, until
        # While one more follows within the range, the latest lies at or after it: halving needs no walk.
        while low < high:
            middle = (low + high) // 2 if found is not None else low
            following = self.first(middle, until=until)
            if not isinstance(following, Nothing) and following <= until:
                found = low = following
            elif found is None:
                return None
            else:
                high = middle
        return found

    def seeded(self, name: str) -> Self:
        """Return this rule with its hashed fields spread by `name`, unless it already has a seed."""
        del name
        return self

    def anchored(self, instant: Instant) -> Self:
        """Return this rule counting from `instant`, unless it already has a start."""
        del instant
        return self

    def __or__(self, other: Trigger) -> Union:
        from duetime.model.triggers.union import Union

        return Union((self, other))

    def __and__(self, other: Trigger) -> Intersection:
        from duetime.model.triggers.intersection import Intersection

        return Intersection((self, other))

    def __sub__(self, calendar: Calendar) -> Except:
        from duetime.model.triggers.minus import Except

        return Except(self, calendar)

    def between(self, start: datetime | None = None, end: datetime | None = None) -> Between:
        """Return this rule from an aware `start` to an aware `end`, both included."""
        from duetime.model.triggers.between import Between

        first = None if start is None else from_datetime(start, what="start")
        return Between(self, first, None if end is None else from_datetime(end, what="end"))

    def at_most(self, times: int) -> AtMost:
        """Return this rule for a schedule that makes so many jobs and then ends."""
        from duetime.model.triggers.at_most import AtMost

        return AtMost(self, times)

    def jitter(self, most: Duration) -> Jitter:
        """Return this rule with jobs that fall due up to `most` later, each by its own amount."""
        from duetime.model.triggers.jitter import Jitter

        return Jitter(self, durations.parse(most, what="jitter"))


def check_times(value: object, *, what: str) -> None:
    """Raise `InvalidTrigger` unless `value` is how many jobs a schedule may make."""
    check_whole(
        value, what=what, low=1, high=_MOST_TIMES, expected=f"a whole number from 1 to {_MOST_TIMES:,}"
    )


def check_instant(value: object, *, what: str) -> None:
    """Raise `InvalidTrigger` unless `value` is an instant in range."""
    check_whole(value, what=what, low=EARLIEST, high=LATEST, expected="an instant between 1970 and 9000")


def check_length(value: object, *, what: str, low: Micros, high: Micros, expected: str) -> None:
    """Raise `InvalidTrigger` unless `value` is a length of time in range; the message has it in words."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidTrigger(f"{what} must be {expected}, not {shown(value)}")
    if not low <= value <= high:
        raise InvalidTrigger(f"{what} must be {expected}, not {durations.describe(value)}")


def check_whole(value: object, *, what: str, low: int, high: int, expected: str) -> None:
    """Raise `InvalidTrigger` unless `value` is a whole number in range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTrigger(f"{what} must be {expected}, not {shown(value)}")
