"""How a worker copes with thousands of jobs that are due at one instant."""

from __future__ import annotations

import asyncio

from benchmarks.ledger import now
from benchmarks.measures import drain
from benchmarks.measures.base import Figure
from benchmarks.places import Limits, Place
from benchmarks.sizes import BATCH, Sizes
from benchmarks.subject import Subject
from benchmarks.working import working

_LEAD = 2_000_000
"""Microseconds from scheduling to the instant."""


class Burst:
    """Seconds from the instant to the last start, against the time the same worker takes to drain as many."""

    name = "burst"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold the share of our own drain time."""
        del store
        return (
            Figure(key="last", title="burst, last start", unit="s", better="less", goal=None),
            Figure(
                key="share",
                title="burst, last start / own drain",
                unit="x",
                better="less",
                goal=1.5,
                must=1.5,
                flat=False,
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Nothing: the burst is held to our own drain, measured on the same database."""
        del limits, sizes
        return {}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Schedule from this process, run in another, then drain as many."""
        with working(place) as worker:
            asyncio.run(_schedule(place.url, sizes.burst))
            entries = worker.finish(expected=sizes.burst)
        place.tidy()
        last = max(entry.late for entry in entries) / 1e6
        drained = sizes.burst / drain.rate(place, jobs=sizes.burst, concurrency=100)
        return {"last": last, "share": last / drained}


async def _schedule(url: str, jobs: int) -> None:
    subject = Subject(url)
    async with subject.scheduler:
        instant = now() + _LEAD
        await subject.enqueue_many(jobs, batch=BATCH, due_at=lambda _: instant)
        assert now() < instant, "scheduling took longer than the lead"
