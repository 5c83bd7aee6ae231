"""What is asked of a trigger before a schedule is stored with it."""

from __future__ import annotations

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.instants import EARLIEST, LATEST, Instant, Micros, in_words, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.searching import HORIZON, Nothing

WALKED = 100
"""How many occurrences are compared with the shortest interval that is allowed."""
PATIENCE = 100_000
"""How many steps the search takes before a trigger is refused: enough to try each day of a hundred years."""


def check_comes(trigger: Trigger, now: Instant) -> None:
    """Raise `InvalidTrigger` if it is proved that nothing is due within a hundred years after `now`.

    A trigger whose search runs out of steps is let through: it may come, and its schedule goes on searching.
    """
    found = trigger.first(now)
    if isinstance(found, Nothing):
        found = trigger.first(now, steps=PATIENCE)
    if isinstance(found, Nothing) and found.through >= min(now + HORIZON, LATEST):
        since = "" if now == EARLIEST else f" after {in_words(now)}"
        text = f"the trigger ({trigger.describe()}) never comes{since}"
        raise InvalidTrigger(f"{text}; check its dates, its end and the calendars taken from it")


def check_pace(trigger: Trigger, now: Instant, shortest: Micros) -> None:
    """Raise `InvalidTrigger` if two of the next occurrences are closer together than `shortest`."""
    before = trigger.after(now)
    for _ in range(WALKED):
        if before is None or (following := trigger.after(before)) is None:
            return
        if following - before < shortest:
            moments = f"{_exact(before)} and {_exact(following)}"
            text = f"the trigger ({trigger.describe()}) comes at {moments}, closer than {durations.describe(shortest)}"
            raise InvalidTrigger(f"{text}; make it rarer, or allow it with Scheduler(shortest_interval=...)")
        before = following


def _exact(instant: Instant) -> str:
    return to_datetime(instant).isoformat(sep=" ", timespec="milliseconds")
