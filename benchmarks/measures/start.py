"""How long an idle worker takes to start a job that another process enqueues."""

from __future__ import annotations

import asyncio

from benchmarks.figures import spread
from benchmarks.ledger import now
from benchmarks.measures.base import Figure
from benchmarks.moments import odd_moment
from benchmarks.places import Limits, Place
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject
from benchmarks.working import working

_HINTS = {"sqlite": "byte", "postgres": "NOTIFY", "mariadb": "byte", "redis": "PUBLISH"}


class Start:
    """Milliseconds from the call of `enqueue` to the first line of the handler."""

    name = "start"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Compare with the round trips that no design can do without."""
        trips = f"bare insert + {_HINTS[store]} + claim"
        return (
            Figure(key="p50", title="enqueue to start, p50", unit="ms", better="less", limit=trips, goal=2.0),
            Figure(
                key="p99", title="enqueue to start, p99", unit="ms", better="less", limit=trips, flat=False
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Measure the round trips on their own."""
        trips = limits.round_trips(sizes.pings)
        return {"p50": trips, "p99": trips}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Enqueue from this process, at odd moments, to a worker in another."""
        with working(place) as worker:
            asyncio.run(_ping(place.url, sizes.pings))
            entries = worker.finish(expected=sizes.pings)
        place.tidy()
        return spread([entry.late / 1000 for entry in entries])


async def _ping(url: str, pings: int) -> None:
    subject = Subject(url)
    async with subject.scheduler:
        for n in range(pings):
            await odd_moment()
            await subject.note.enqueue(n, now())
