"""A trigger without the times that a calendar excludes."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.calendars.base import Calendar
from duetime.model.instants import Instant
from duetime.model.shown import shown
from duetime.model.triggers.compound import Wrapper, quoted, terms_of
from duetime.model.triggers.counting import Term
from duetime.model.triggers.searching import Nothing, Search


@dataclass(frozen=True, slots=True)
class Except(Wrapper):
    """The occurrences of a trigger that do not lie in a calendar; the others do not come at all.

    A calendar without a zone of its own is read in the zone of the trigger.
    """

    calendar: Calendar

    def __post_init__(self) -> None:
        if not isinstance(self.calendar, Calendar):
            text = "only a calendar can be taken from a trigger, such as calendars.weekends()"
            raise InvalidTrigger(f"{text}, not {shown(self.calendar)}")
        if isinstance(self.trigger, Except):
            object.__setattr__(self, "calendar", self.trigger.calendar | self.calendar)
            object.__setattr__(self, "trigger", self.trigger.trigger)
        Wrapper.__post_init__(self)
        object.__setattr__(self, "calendar", self.calendar.placed(self.tz))

    def look(self, instant: Instant, search: Search) -> Instant | Nothing:
        """Return the first occurrence outside of the calendar, passing each excluded stretch in one step."""
        found = self.trigger.seek(instant, search)
        while not isinstance(found, Nothing) and (end := self.calendar.until(found)) is not None:
            if end > search.until:
                return Nothing(end - 1)
            found = self.trigger.seek(end - 1, search)
        return found

    def terms(self) -> list[Term]:
        """Return the terms of the trigger, outside of the calendar."""
        return [term.without(self.calendar) for term in terms_of(self.trigger)]

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, except {self.calendar.describe(beside=self.tz)}"

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        return {"type": "except", "trigger": self.trigger.to_spec(), "calendar": self.calendar.to_spec()}
