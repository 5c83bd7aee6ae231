"""How often schedules may come, checked before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.errors import InvalidTrigger
from duetime.model.instants import EARLIEST, Instant, Micros
from duetime.model.schedule import Change
from duetime.model.shown import shown

if TYPE_CHECKING:
    from duetime.model.triggers.base import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Refuses triggers that are none, never come, or come too often."""

    shortest: Micros

    def check(self, trigger: Trigger, *, name: str, now: Instant) -> Trigger:
        """Return a trigger, spread by the schedule's name, unless it comes too often or never did or will.

        It may be over: what was put or declared once is put and declared again.
        """
        from duetime.model.triggers.base import Trigger
        from duetime.model.triggers.checks import check_comes, check_pace

        if not isinstance(trigger, Trigger):
            text = f"a schedule needs a trigger such as cron('*/5 * * * *') or every('15m'), not {shown(trigger)}"
            raise InvalidTrigger(text)
        seeded = trigger.seeded(name)
        anchored = seeded.anchored(now)
        if anchored.after(now) is None:
            check_comes(anchored, EARLIEST)
        check_pace(anchored, now, self.shortest)
        return seeded

    @staticmethod
    def checked(change: Change | None, *, now: Instant) -> Change | None:
        """Return a change, unless it brings a trigger that will not come any more."""
        if change is not None and (change.before is None or change.before.trigger != change.after.trigger):
            from duetime.model.triggers.checks import check_comes
            from duetime.model.triggers.text import from_text

            check_comes(from_text(change.after.trigger), now)
        return change
