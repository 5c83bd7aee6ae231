"""How much the growth benchmark measures."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of one run."""

    workers: tuple[int, ...]
    """Worker processes on one store."""
    crowds: tuple[int, ...]
    """Workers that share a few processes; only what they ask is counted."""
    in_process: int
    """How many of such workers share a process."""
    stored: tuple[int, ...]
    """Jobs stored for later."""
    schedules: tuple[int, ...]
    repeats: int
    """How often an empty and a filled store are measured in turns at each number of stored jobs; the median counts."""
    drain: int
    """No-op jobs to drain, for each worker process up to the number of cores."""
    waiting: int
    """Jobs that wait a little, for each worker process."""
    one_offs: int
    rate: int
    """One-off jobs, and occurrences of schedules, that fall due in a second."""
    pings: int
    """Jobs sent to an idle fleet, one after the other."""
    singles: int
    """Single enqueues, one after the other."""
    bulk: int
    settle_in: float
    """Seconds after which the workers of a fleet know how many they are: more than one heartbeat."""
    idle: float
    """Seconds for which an idle fleet is watched."""
    events: int
    """Single jobs given to a crowd; what it asks because of each is counted."""
    watched: float
    """Seconds for which schedules are watched."""
    period: float
    """Seconds from one occurrence of a schedule to its next, where the rate may grow with their number."""


FULL = Sizes(
    workers=(1, 2, 4, 8, 16),
    crowds=(4, 16, 32, 64, 128),
    in_process=32,
    stored=(0, 10_000, 100_000, 1_000_000),
    schedules=(10, 100, 1_000, 10_000),
    repeats=5,
    drain=20_000,
    waiting=4_000,
    one_offs=2_000,
    rate=200,
    pings=100,
    singles=500,
    bulk=20_000,
    settle_in=13.0,
    idle=60.0,
    events=20,
    watched=15.0,
    period=5.0,
)

QUICK = replace(
    FULL,
    workers=(1, 4, 16),
    crowds=(4, 16, 64),
    stored=(0, 10_000, 100_000),
    schedules=(10, 100, 1_000),
    repeats=3,
    drain=5_000,
    waiting=1_000,
    one_offs=400,
    pings=30,
    singles=200,
    bulk=5_000,
    settle_in=11.0,
    idle=10.0,
    events=5,
    watched=4.0,
    period=2.0,
)

TINY = replace(
    FULL,
    workers=(1,),
    crowds=(2,),
    in_process=2,
    stored=(0,),
    schedules=(5,),
    repeats=1,
    drain=100,
    waiting=20,
    one_offs=10,
    rate=20,
    pings=2,
    singles=5,
    bulk=50,
    settle_in=0.0,
    idle=0.2,
    events=1,
    watched=0.5,
    period=0.25,
)
"""For the benchmark's own tests: nothing it says means anything."""
