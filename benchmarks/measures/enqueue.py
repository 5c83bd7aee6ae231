"""How fast jobs are accepted: one at a time, by many callers at once, and in bulk."""

from __future__ import annotations

import asyncio

from benchmarks import children
from benchmarks.measures.base import Figure
from benchmarks.places import Limits, Place
from benchmarks.sizes import BATCH, CALLERS, Sizes
from benchmarks.subject import Subject
from benchmarks.watch import Watch
from duetime.model.states import State


class Enqueue:
    """Durable enqueues per second; nobody works meanwhile."""

    name = "enqueue"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Compare each way with bare inserts of the same kind."""
        groups = store == "sqlite"
        return (
            Figure(key="single", title="enqueue, one at a time", unit="jobs/s", better="more", limit="bare inserts", goal=0.8),
            Figure(
                key="at_once",
                title=f"enqueue, {CALLERS} at once",
                unit="jobs/s",
                better="more",
                limit="bare inserts, one at a time" if groups else f"bare inserts, {CALLERS} at once",
                goal=5.0 if groups else 0.7,
            ),
            Figure(key="bulk", title=f"enqueue, {BATCH:,} a call", unit="jobs/s", better="more", limit="bare bulk inserts", goal=0.5),
        )  # fmt: skip

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Insert straight through the driver."""
        return limits.inserts(sizes)

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Enqueue in a process of its own."""
        rates: dict[str, float] = children.run(
            client, url=place.url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
        )
        place.tidy()
        return rates


async def client(*, url: str, singles: int, at_once: int, bulk: int) -> dict[str, float]:
    """Return enqueues per second, each way."""
    subject = Subject(url)
    async with subject.scheduler:
        before = await _pending(subject)
        # Opens the connections that many callers at once need.
        await _at_once(subject, CALLERS * 4)
        rates = {
            "single": await _singles(subject, singles),
            "at_once": await _at_once(subject, at_once),
            "bulk": await _bulk(subject, bulk),
        }
        added = await _pending(subject) - before
        assert added == CALLERS * 4 + singles + at_once + bulk
    return rates


async def _singles(subject: Subject, count: int) -> float:
    watch = Watch()
    for n in range(count):
        await subject.note.enqueue(n, 0)
    return count / watch.seconds()


async def _at_once(subject: Subject, count: int) -> float:
    async def caller(first: int) -> None:
        for n in range(first, count, CALLERS):
            await subject.note.enqueue(n, 0)

    watch = Watch()
    await asyncio.gather(*(caller(first) for first in range(CALLERS)))
    return count / watch.seconds()


async def _bulk(subject: Subject, count: int) -> float:
    watch = Watch()
    await subject.enqueue_many(count, batch=BATCH)
    return count / watch.seconds()


async def _pending(subject: Subject) -> int:
    counts = await subject.scheduler.store.counts()
    return sum(n for (_, state), n in counts.items() if state is State.PENDING)
