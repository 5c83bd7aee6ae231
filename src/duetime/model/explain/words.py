"""The words of an explanation: times, lengths and workers."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from duetime.model.durations import DAY, HOUR, MINUTE, describe
from duetime.model.explain.facts import Situation
from duetime.model.instants import MILLISECOND, SECOND, Instant, Micros, to_datetime


def moment(facts: Situation, instant: Instant) -> str:
    """Say a point in time to the second."""
    return f"{to_datetime(instant).astimezone(ZoneInfo(facts.tz)):%Y-%m-%d %H:%M:%S} {facts.tz}"


def length(micros: Micros) -> str:
    """Say a length of time as exactly as anybody cares to know it."""
    for size, step in ((DAY, HOUR), (HOUR, MINUTE), (MINUTE, SECOND), (SECOND, 100 * MILLISECOND)):
        if micros >= size:
            return describe(micros // step * step)
    return f"{micros // MILLISECOND} milliseconds"


def since(facts: Situation, instant: Instant) -> str:
    """Say how long ago something was, or how far ahead it is."""
    ago = facts.ago(instant)
    return f"in {length(-ago)}" if ago < 0 else f"{length(ago)} ago"


def worker_name(facts: Situation, worker_id: str | None) -> str:
    """Name a worker so that an operator finds it."""
    known = facts.worker(worker_id)
    if known is None:
        return f"worker {worker_id or 'unknown'}"
    return f"worker {known.id} (pid {known.pid} on {known.host})"


def first_line(text: str) -> str:
    """Return the beginning of a text that others wrote, to go on after it."""
    return text.partition("\n")[0].rstrip(".")
