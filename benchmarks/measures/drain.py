"""How fast one worker runs no-op jobs that are already stored and due."""

from __future__ import annotations

from benchmarks import children
from benchmarks.ledger import checked
from benchmarks.measures.base import Figure
from benchmarks.places import Limits, Place
from benchmarks.sizes import BATCH, BATCHES, Sizes
from benchmarks.stopwatch import Stopwatch
from benchmarks.subject import Subject

WIDTHS = (100, 1_000)
"""Concurrencies measured: the default, held to claims of as many jobs, and the largest, held to the best claims."""
_CLAIMS = {100: "100 a claim", 1_000: "best claim size"}


class Drain:
    """Jobs per second from the first claim to the last settlement."""

    name = "drain"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Compare the default with the bare loop at the same width, and the largest with the bare loop at its best."""
        del store
        return tuple(
            Figure(
                key=f"drain_{width}",
                title=f"drain, concurrency {width:,}",
                unit="jobs/s",
                better="more",
                limit=f"bare loop, {_CLAIMS[width]}",
                goal=0.6,
                must=0.4,
            )
            for width in WIDTHS
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Run the bare loop with each claim size."""
        rates = {batch: limits.drain(sizes.drain, batch) for batch in BATCHES}
        return {"drain_100": rates[100], "drain_1000": max(rates.values())}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Run one worker process with each concurrency."""
        rates: dict[str, float] = {}
        for width in WIDTHS:
            rates[f"drain_{width}"] = rate(place, jobs=sizes.drain, concurrency=width)
        return rates


def rate(place: Place, *, jobs: int, concurrency: int) -> float:
    """Return how many jobs per second a worker process of its own gets done."""
    done = float(children.run(worker, url=place.url, jobs=jobs, concurrency=concurrency))
    place.tidy()
    return done


async def worker(*, url: str, jobs: int, concurrency: int) -> float:
    """Store jobs, run them in one worker, and return how many it got done per second."""
    subject = Subject(url)
    async with subject.scheduler:
        await subject.enqueue_many(jobs, batch=BATCH)
        watch = Stopwatch(subject.scheduler.store, expected=jobs)
        async with subject.scheduler.worker(concurrency=concurrency, dedicated=True):
            took = await watch.took(within=120)
    checked(subject.ran, expected=jobs)
    return jobs / took
