"""The words of an explanation: times, lengths and workers."""

from __future__ import annotations

from duetime.model.durations import DAY, HOUR, MINUTE, describe
from duetime.model.explain.facts import Facts
from duetime.model.instants import MILLISECOND, SECOND, Instant, Micros, to_datetime


def moment(instant: Instant) -> str:
    """Say a point in time to the second."""
    return to_datetime(instant).strftime("%Y-%m-%d %H:%M:%S UTC")


def length(micros: Micros) -> str:
    """Say a length of time as exactly as anybody cares to know it."""
    for size, step in ((DAY, HOUR), (HOUR, MINUTE), (MINUTE, SECOND), (SECOND, 100 * MILLISECOND)):
        if micros >= size:
            return describe(micros // step * step)
    return f"{micros // MILLISECOND} milliseconds"


def since(facts: Facts, instant: Instant) -> str:
    """Say how long ago something was, or how far ahead it is."""
    ago = facts.ago(instant)
    return f"in {length(-ago)}" if ago < 0 else f"{length(ago)} ago"


def worker_name(facts: Facts, worker_id: str | None) -> str:
    """Name a worker so that an operator finds it."""
    known = facts.worker(worker_id)
    if known is None:
        return f"worker {worker_id or 'unknown'}"
    return f"worker {known.id} (pid {known.pid} on {known.host})"
