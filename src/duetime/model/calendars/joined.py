"""Several calendars as one."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.calendars.base import Calendar
from duetime.model.instants import Instant
from duetime.model.shown import shown

MOST_PARTS = 50


@dataclass(frozen=True, slots=True)
class Joined(Calendar):
    """Excludes what any of its parts excludes."""

    parts: tuple[Calendar, ...]

    def __post_init__(self) -> None:
        flat: list[Calendar] = []
        for part in self.parts:
            if not isinstance(part, Calendar):
                text = "calendars are joined with calendars, such as calendars.weekends()"
                raise InvalidTrigger(f"{text}, not {shown(part)}")
            flat += part.parts if isinstance(part, Joined) else [part]
        object.__setattr__(self, "parts", tuple(dict.fromkeys(flat)))
        if not 1 <= len(self.parts) <= MOST_PARTS:
            text = f"from 1 to {MOST_PARTS} calendars can be joined, not {len(self.parts)}"
            raise InvalidTrigger(f"{text}; holidays() takes many dates at once")

    def until(self, instant: Instant) -> Instant | None:
        """Return the latest end that a part says."""
        ends = (part.until(instant) for part in self.parts)
        return max((end for end in ends if end is not None), default=None)

    def edge(self, instant: Instant) -> Instant:
        """Return the latest end that a part says, or where the first part may begin to exclude."""
        end = self.until(instant)
        return min(part.edge(instant) for part in self.parts) if end is None else end

    def why(self, instant: Instant) -> str | None:
        """Say why the first part that excludes `instant` does so."""
        return next((why for part in self.parts if (why := part.why(instant)) is not None), None)

    def describe(self, *, beside: str = "") -> str:
        """Say in English what is excluded."""
        told = [part.describe(beside=beside) for part in self.parts]
        return " and ".join(told)

    def to_spec(self) -> dict[str, object]:
        """Return the calendar as JSON-able data."""
        return {"type": "joined", "parts": [part.to_spec() for part in self.parts]}

    def placed(self, tz: str) -> Joined:
        """Return these calendars read in `tz`, except those with a zone of their own."""
        return Joined(tuple(part.placed(tz) for part in self.parts))
