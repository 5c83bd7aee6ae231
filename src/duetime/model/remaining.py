"""What a schedule may still make, and when it comes next."""

from __future__ import annotations

from duetime.model.instants import Instant
from duetime.model.triggers.base import Trigger


def left(trigger: Trigger, *, made: int) -> int | None:
    """How many jobs a schedule may still make that has made so many; `None` for any number."""
    return None if trigger.times is None else max(0, trigger.times - made)


def next_after(trigger: Trigger, instant: Instant, *, made: int) -> Instant | None:
    """Return the next occurrence, unless the schedule has made all the jobs it may make."""
    return None if left(trigger, made=made) == 0 else trigger.after(instant)
