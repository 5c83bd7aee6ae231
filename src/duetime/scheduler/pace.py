"""How often schedules may come, checked before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.errors import InvalidTrigger
from duetime.model.instants import EARLIEST, Instant, Micros
from duetime.model.triggers import Trigger
from duetime.model.triggers.checks import check_comes, check_pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Refuses triggers that are none, never come, or come too often."""

    shortest: Micros

    def check(self, trigger: Trigger, *, name: str, now: Instant) -> Trigger:
        """Return a trigger, spread by the schedule's name, that comes once more from now, and not too often."""
        seeded = self.check_declared(trigger, name=name, now=now)
        check_comes(seeded.anchored(now), now)
        return seeded

    def check_declared(self, trigger: Trigger, *, name: str, now: Instant) -> Trigger:
        """Do the same for one that code declares: that may be over, since code outlives its last time."""
        if not isinstance(trigger, Trigger):
            text = f"a schedule needs a trigger such as cron('*/5 * * * *') or every('15m'), not {trigger!r}"
            raise InvalidTrigger(text)
        seeded = trigger.seeded(name)
        anchored = seeded.anchored(now)
        if anchored.after(now) is None:
            check_comes(anchored, EARLIEST)
        check_pace(anchored, now, self.shortest)
        return seeded
