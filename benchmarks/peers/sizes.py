"""How much the peers' benchmark measures."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of one run; whatever a slow system does not manage is cut by the seconds beside it."""

    name: str
    rounds: int
    """How often each cell is measured; the median counts."""
    enqueues: int
    enqueue_seconds: float
    drain: int
    drain_seconds: float
    stock_seconds: float
    """How long jobs to be drained are put in, before."""
    pings: int
    """So many that the p99 is not the slowest of all, which is usually the first."""
    gap: float
    """Mean seconds between two jobs to an idle worker."""
    one_offs: int
    span: float
    """Seconds over which the one-off jobs fall due."""
    burst: int
    wait: float
    """Seconds after which a job that has not run counts as missing."""
    future: int
    in_phase: int
    """Schedules that all come at the same instants."""
    spread: int
    """Schedules that come one after the other."""
    period: float
    periods: int
    """How often each schedule comes while it is watched, after a period to warm up."""
    idle: float
    """Seconds an idle worker is watched."""
    settle: float
    """Seconds a worker gets to become idle."""


FULL = Sizes(
    name="full",
    rounds=1,
    enqueues=20_000,
    enqueue_seconds=5.0,
    drain=20_000,
    drain_seconds=12.0,
    stock_seconds=90.0,
    pings=300,
    gap=0.02,
    one_offs=1_000,
    span=10.0,
    burst=5_000,
    wait=25.0,
    future=1_000_000,
    in_phase=1_000,
    spread=10_000,
    period=5.0,
    periods=4,
    idle=30.0,
    settle=3.0,
)

QUICK = replace(
    FULL,
    name="quick",
    enqueues=10_000,
    enqueue_seconds=1.2,
    drain=10_000,
    drain_seconds=2.0,
    stock_seconds=2.0,
    pings=120,
    one_offs=250,
    span=2.5,
    burst=1_000,
    wait=4.0,
    future=100_000,
    in_phase=300,
    spread=600,
    period=2.0,
    periods=1,
    idle=10.0,
    settle=0.7,
)

TINY = replace(
    FULL,
    name="tiny",
    enqueues=40,
    enqueue_seconds=0.5,
    drain=60,
    drain_seconds=3.0,
    stock_seconds=2.0,
    pings=5,
    one_offs=10,
    span=0.5,
    burst=20,
    wait=4.0,
    future=200,
    in_phase=3,
    spread=4,
    period=2.0,
    periods=1,
    idle=1.0,
    settle=0.5,
)

SIZES = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}
