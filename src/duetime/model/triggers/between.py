"""A trigger with a start and an end."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.instants import LATEST, Instant, in_words, to_datetime
from duetime.model.triggers.base import check_instant
from duetime.model.triggers.compound import Wrapper, quoted, terms_of
from duetime.model.triggers.counting import Term
from duetime.model.triggers.searching import NEVER, Nothing, Search


@dataclass(frozen=True, slots=True)
class Between(Wrapper):
    """The occurrences of a trigger from `start` to `end`, both included."""

    start: Instant | None = None
    end: Instant | None = None

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        if self.start is None and self.end is None:
            raise InvalidTrigger(
                "between() needs a start or an end, such as between(end=datetime(2030, 1, 1, tzinfo=UTC))"
            )
        for name, value in (("start", self.start), ("end", self.end)):
            if value is not None:
                check_instant(value, what=name)
        if self.start is not None and self.end is not None and self.end < self.start:
            text = f"end {to_datetime(self.end)} must not lie before start {to_datetime(self.start)}"
            raise InvalidTrigger(f"{text}; nothing would ever be due")

    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first occurrence after `instant` that lies between; past the end, there is none."""
        until = search.until
        search.until = min(until, self._end)
        start = instant if self.start is None else max(instant, self.start - 1)
        found = self.trigger.seek(start, search)
        search.until = until
        if isinstance(found, Nothing):
            return NEVER if found.through >= self._end else found
        return found if found <= self._end else NEVER

    def terms(self) -> list[Term]:
        """Return the terms of the trigger, from the start to the end."""
        after = -1 if self.start is None else self.start - 1
        return [term.within(after, self._end) for term in terms_of(self.trigger)]

    def describe(self) -> str:
        """Say the rule in English."""
        text = quoted(self.trigger)
        if self.start is not None:
            text += f", from {in_words(self.start)}"
        if self.end is not None:
            text += f", until {in_words(self.end)}"
        return text

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        optional = {"start": self.start, "end": self.end}
        given = {key: value for key, value in optional.items() if value is not None}
        return {"type": "between", "trigger": self.trigger.to_spec(), **given}

    @property
    def _end(self) -> Instant:
        return LATEST if self.end is None else self.end
