"""How late one-off jobs start, when another process has scheduled them."""

from __future__ import annotations

import asyncio

from benchmarks import children
from benchmarks.figures import spread
from benchmarks.ledger import now
from benchmarks.limits import timer
from benchmarks.measures.base import Figure
from benchmarks.places import Limits, Place
from benchmarks.sizes import BATCH, Sizes
from benchmarks.subject import Subject
from benchmarks.working import working

_LEAD = 1_500_000
"""Microseconds from scheduling to the first due time."""


class Lateness:
    """Milliseconds from the due time to the first line of the handler; never negative."""

    name = "lateness"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Compare with the bare timer of the event loop."""
        del store
        return (
            Figure(key="p50", title="lateness, p50", unit="ms", better="less", limit="bare timer, p50"),
            Figure(
                key="p99",
                title="lateness, p99",
                unit="ms",
                better="less",
                limit="bare timer, p99",
                goal=2.5,
                must=5.0,
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Set as many timers over the same time."""
        del limits
        late: dict[str, float] = children.run(timer.late, timers=sizes.one_offs, span=sizes.span)
        return late

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Schedule from this process, run in another."""
        with working(place) as worker:
            asyncio.run(_schedule(place.url, sizes))
            entries = worker.finish(expected=sizes.one_offs)
        place.tidy()
        return spread([entry.late / 1000 for entry in entries])


async def _schedule(url: str, sizes: Sizes) -> None:
    subject = Subject(url)
    async with subject.scheduler:
        first = now() + _LEAD
        step = int(sizes.span * 1_000_000) // sizes.one_offs
        await subject.enqueue_many(sizes.one_offs, batch=BATCH, due_at=lambda n: first + n * step)
        assert now() < first, "scheduling took longer than the lead"
