"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of one run."""

    future: int
    """Jobs stored for later in the filled database."""
    pairs: int
    """How often each measure runs on the empty and on the filled database, in turn."""
    drain: int
    singles: int
    """Single enqueues, one after the other."""
    at_once: int
    """Enqueues by 32 callers at once, in all."""
    bulk: int
    locks: int
    """How often a lock is acquired and released."""
    pings: int
    """Jobs sent to an idle worker of another process."""
    one_offs: int
    span: float
    """Seconds over which the one-off jobs fall due."""
    burst: int
    idle: float
    """Seconds an idle worker is watched."""
    in_phase: int
    """Schedules that all come at the same instants."""
    spread: int
    """Schedules that come one after the other."""
    period: float
    """Seconds from one occurrence of such a schedule to its next."""
    periods: int
    """How often each schedule comes while it is watched, after it has come once."""
    fired: int
    """Schedules that are due at once and only fired."""
    each_second: int
    """Cron jobs, and one-off jobs beside them, that come each second."""
    seconds: int
    """For how many seconds they do."""


FULL = Sizes(
    future=1_000_000,
    pairs=5,
    drain=20_000,
    singles=1_000,
    at_once=6_400,
    bulk=20_000,
    locks=2_000,
    pings=200,
    one_offs=1_000,
    span=5.0,
    burst=5_000,
    idle=60.0,
    in_phase=1_000,
    spread=10_000,
    period=5.0,
    periods=3,
    fired=5_000,
    each_second=50,
    seconds=10,
)

QUICK = replace(
    FULL,
    future=100_000,
    pairs=2,
    drain=10_000,
    singles=300,
    at_once=3_200,
    bulk=10_000,
    locks=500,
    pings=60,
    one_offs=400,
    span=2.0,
    idle=10.0,
    in_phase=300,
    spread=600,
    period=2.0,
    periods=2,
    fired=2_000,
    each_second=20,
    seconds=5,
)

GUARD = replace(QUICK, future=0, pairs=2, drain=5_000, singles=600, at_once=3_200, bulk=10_000, idle=20.0)
"""Just enough to see a large change; an idle worker sends one heartbeat every ten seconds."""

CALLERS = 32
"""Callers that enqueue at once."""
BATCH = 1_000
"""Jobs in one call of a bulk enqueue."""
BATCHES = (100, 250, 1_000)
"""Claim sizes of the bare loop; its best one counts."""
