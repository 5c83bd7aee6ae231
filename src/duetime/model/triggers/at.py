"""Moments named one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from duetime.errors import InvalidTrigger
from duetime.model.time import Instant, from_datetime, to_datetime
from duetime.model.triggers.base import Trigger, check_instant, set_fields

_MOST_MOMENTS = 10_000
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class At(Trigger):
    """Occurrences at the given instants, each once and in order."""

    kind = "at"

    instants: tuple[Instant, ...]

    def __post_init__(self) -> None:
        for instant in self.instants:
            check_instant(instant, what="a moment")
        if not 1 <= len(self.instants) <= _MOST_MOMENTS:
            raise InvalidTrigger(f"at() takes at least one and at most {_MOST_MOMENTS} moments")
        set_fields(self, instants=tuple(sorted(set(self.instants))))

    def after(self, instant: Instant) -> Instant | None:
        """Return the first of the instants strictly after `instant`."""
        position = bisect_right(self.instants, instant)
        return self.instants[position] if position < len(self.instants) else None

    def count(self, after: Instant, until: Instant) -> int:
        """Return how many of the instants lie in `after < instant <= until`."""
        return max(0, bisect_right(self.instants, until) - bisect_right(self.instants, after))

    def describe(self) -> str:
        """Say the rule in English."""
        shown = [f"{to_datetime(instant):%Y-%m-%d %H:%M:%S}" for instant in self.instants[:_SHOWN]]
        more = len(self.instants) - len(shown)
        return f"at {', '.join(shown)}{f' and {more} more' if more else ''}, UTC"


def at(moments: datetime | Iterable[datetime]) -> At:
    """Return the trigger for one aware datetime, or for several."""
    if not isinstance(moments, Iterable):
        return At((from_datetime(moments, what="moment"),))
    # No more are read than are needed to see that there are too many.
    numbered = enumerate(islice(moments, _MOST_MOMENTS + 1), 1)
    return At(tuple(from_datetime(moment, what=f"moment {number}") for number, moment in numbered))
