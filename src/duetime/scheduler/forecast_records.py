"""The load to come, as records that a client reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from duetime.scheduler.forecast_text import report


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLoad:
    """An hour of the wall clock, and how many jobs fall due in it."""

    at: datetime
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteLoad:
    """One of the busiest minutes."""

    at: datetime
    jobs: int
    schedules: int
    """How many schedules make them, without those that come too often to be looked at one by one."""
    names: tuple[str, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """Schedules that start in the same second, again and again."""

    times: int
    schedules: int
    names: tuple[str, ...]
    """A few of them."""
    first: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The jobs that schedules will make, if nothing changes."""

    start: datetime
    end: datetime
    tz: str
    jobs: int
    at_least: bool
    """Whether there is more than could be counted."""
    schedules: int
    """How many were looked at."""
    hours: tuple[HourLoad, ...]
    busiest: tuple[MinuteLoad, ...]
    """The busiest minutes, the busiest first."""
    collisions: tuple[Collision, ...]
    """Which schedules start in the same second, those that do so most often first."""
    peak: int
    """The most jobs in a minute."""
    peak_with_hash: int | None
    """The same with `H` in place of fixed minutes; `None` when no schedule has any."""
    peak_with_jitter: int | None
    """About the same with a jitter of ten minutes; `None` when no schedule could do with one."""
    advice: str
    """What `H` or a jitter would do, in a sentence."""
    counted_only: tuple[str, ...]
    """Schedules that come too often to be looked at one by one: spread evenly over each hour."""
    left_out: dict[str, str]
    """Schedules that will make nothing, and why."""

    def __str__(self) -> str:
        return "\n".join(report(self))
