"""What a schedule may still make, and when it comes next."""

from __future__ import annotations

from duetime.model.instants import Instant
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.compound import Compound
from duetime.model.triggers.searching import NEVER, Nothing


def left(trigger: Trigger, *, made: int) -> int | None:
    """How many jobs a schedule may still make after `made` of them; `None` for any number."""
    return None if trigger.times is None else max(0, trigger.times - made)


def first_after(trigger: Trigger, instant: Instant, *, made: int) -> Instant | Nothing:
    """Return the next occurrence, or how far there is none; a schedule that has made all its jobs has none at all."""
    return NEVER if left(trigger, made=made) == 0 else trigger.first(instant)


def next_after(trigger: Trigger, instant: Instant, *, made: int) -> Instant | None:
    """Return when a schedule is looked at next: at its next occurrence, or where a search in vain is to go on.

    `None` only if it is proved that nothing comes any more.
    """
    found = first_after(trigger, instant, made=made)
    if isinstance(found, Nothing):
        return None if found.proved else found.through
    return found


def searched_until(trigger: Trigger, next_at: Instant | None) -> Instant | None:
    """Return up to where a search has found nothing, if that is what a next time stands for; else `None`."""
    found = next_at is None or not isinstance(trigger, Compound) or trigger.comes_at(next_at)
    return None if found else next_at
