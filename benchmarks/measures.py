"""What is measured: each question is a class, and is asked of the empty and of the filled database."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from benchmarks import children, idling
from benchmarks.ledger import checked, now, spread
from benchmarks.limits import loop
from benchmarks.limits.loop import odd_moment
from benchmarks.places import Limits, Place
from benchmarks.processes import Watch, memory, processor_seconds
from benchmarks.sizes import BATCH, BATCHES, CALLERS, Sizes
from benchmarks.subject import Subject
from benchmarks.working import working
from duetime.model.job import Claim, Token
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.stores.base import ClaimRequest, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and the ratio to its limit that it should reach."""

    key: str
    title: str
    unit: str
    better: Literal["more", "less"]
    limit: str | None = None
    """What the limit is; without one the value itself is held to the bounds."""
    goal: float | None = None
    """What we aim at."""
    must: float | None = None
    """What has to hold."""
    held: Literal["ratio", "value"] = "ratio"
    """What is held to the bounds where there is a limit."""
    flat: bool = True
    """Whether it may not get worse than 1.5 times with many jobs stored for later."""

    def reaches(self, ratio: float, bound: float | None) -> bool | None:
        """Whether a ratio keeps a bound; `None` when there is no bound."""
        if bound is None:
            return None
        return ratio >= bound if self.better == "more" else ratio <= bound


class Measure(ABC):
    """One question, asked in turn of the empty and of the filled database."""

    name: str
    once = False
    """Whether one pair is enough, and both of it may run at the same time."""
    pairs: int | None = None
    """How many pairs are enough; `None`: as many as the run makes."""

    @abstractmethod
    def figures(self, store: str) -> tuple[Figure, ...]:
        """The figures this measure gives for a kind of store."""

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Measure the limits, by the key of the figure they belong to."""
        return {}

    @abstractmethod
    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Measure Duetime, by the key of the figure."""


class Enqueue(Measure):
    """Durable enqueues per second; no one works meanwhile."""

    name = "enqueue"

    def figures(self, store: str) -> tuple[Figure, ...]:
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
        return limits.inserts(sizes)

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
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


class Stopwatch:
    """Listens at the doors of a store's parts; it adds little per batch, nothing per job."""

    def __init__(self, parts: Sequence[Store], *, expected: int) -> None:
        self._watch: Watch | None = None
        self._left = expected
        self._took: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        for part in parts:
            part.claim = partial(self._claim, part.claim)  # type: ignore[method-assign]
            part.settle = partial(self._settle, part.settle)  # type: ignore[method-assign]

    async def took(self, *, within: float) -> float:
        """Wait for the last settlement and return the seconds since the first claim."""
        async with asyncio.timeout(within):
            return await self._took

    async def _claim(
        self, claim: Callable[[ClaimRequest], Awaitable[list[Claim]]], demand: ClaimRequest
    ) -> list[Claim]:
        """Claim, and note when that was first asked for."""
        if self._watch is None:
            self._watch = Watch()
        return await claim(demand)

    async def _settle(
        self,
        settle: Callable[[Sequence[Settlement]], Awaitable[frozenset[Token]]],
        settlements: Sequence[Settlement],
    ) -> frozenset[Token]:
        """Settle, and note when the last answer came."""
        accepted = await settle(settlements)
        self._left -= len(accepted)
        if self._left == 0 and self._watch is not None:
            self._took.set_result(self._watch.seconds())
        return accepted


WIDTHS = (100, 1_000)
"""Concurrencies measured: the default, held to claims of as many jobs, and the largest, held to the best claims."""
_CLAIMS = {100: "100 a claim", 1_000: "best claim size"}


class Drain(Measure):
    """Jobs per second from the first claim to the last settlement."""

    name = "drain"

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Compare the default with the bare loop at the same width, and the largest with the bare loop at its best."""
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
        rates = {batch: limits.drain(sizes.drain, batch) for batch in BATCHES}
        return {"drain_100": rates[100], "drain_1000": max(rates.values())}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
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
        # Also of those that are not near: while that store does not answer, what is due at once goes far.
        watch = Stopwatch(subject.scheduler.store.parts, expected=jobs)
        async with subject.scheduler.worker(concurrency=concurrency, dedicated=True):
            took = await watch.took(within=120)
    checked(subject.ran, expected=jobs)
    return jobs / took


_HINTS = {"sqlite": "byte", "postgres": "NOTIFY", "mariadb": "byte", "redis": "PUBLISH"}


class Start(Measure):
    """Milliseconds from the call of `enqueue` to the first line of the handler."""

    name = "start"

    def figures(self, store: str) -> tuple[Figure, ...]:
        trips = f"bare insert + {_HINTS[store]} + claim"
        return (
            Figure(key="p50", title="enqueue to start, p50", unit="ms", better="less", limit=trips, goal=2.0),
            Figure(
                key="p99", title="enqueue to start, p99", unit="ms", better="less", limit=trips, flat=False
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
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


_LEAD = 1_500_000
"""Microseconds from scheduling to the first due time."""


class Lateness(Measure):
    """Milliseconds from the due time to the first line of the handler; never negative."""

    name = "lateness"

    def figures(self, store: str) -> tuple[Figure, ...]:
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
        late: dict[str, float] = children.run(loop.late, timers=sizes.one_offs, span=sizes.span)
        return late

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        with working(place) as worker:
            asyncio.run(_schedule_one_offs(place.url, sizes))
            entries = worker.finish(expected=sizes.one_offs)
        place.tidy()
        return spread([entry.late / 1000 for entry in entries])


async def _schedule_one_offs(url: str, sizes: Sizes) -> None:
    subject = Subject(url)
    async with subject.scheduler:
        first = now() + _LEAD
        step = int(sizes.span * 1_000_000) // sizes.one_offs
        await subject.enqueue_many(sizes.one_offs, batch=BATCH, due_at=lambda n: first + n * step)
        assert now() < first, "scheduling took longer than the lead"


_BURST_LEAD = 2_000_000
"""Microseconds from scheduling to the instant."""


class Burst(Measure):
    """Seconds from the instant to the last start, against the time the same worker takes to drain as many."""

    name = "burst"

    def figures(self, store: str) -> tuple[Figure, ...]:
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

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Schedule from this process, run in another, then drain as many."""
        with working(place) as worker:
            asyncio.run(_schedule_burst(place.url, sizes.burst))
            entries = worker.finish(expected=sizes.burst)
        place.tidy()
        last = max(entry.late for entry in entries) / 1e6
        drained = sizes.burst / rate(place, jobs=sizes.burst, concurrency=100)
        return {"last": last, "share": last / drained}


async def _schedule_burst(url: str, jobs: int) -> None:
    subject = Subject(url)
    async with subject.scheduler:
        instant = now() + _BURST_LEAD
        await subject.enqueue_many(jobs, batch=BATCH, due_at=lambda _: instant)
        assert now() < instant, "scheduling took longer than the lead"


_SETTLE_IN = 3.0
_HEARTBEAT = "pulse"


class Idle(Measure):
    """Processor, memory and statements of an idle worker."""

    name = "idle"
    once = True

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold them to fixed bounds: an idle worker has no limit to be compared with."""
        return (
            Figure(key="cpu", title="idle, processor", unit="%", better="less", goal=0.1, flat=False),
            Figure(key="memory", title="idle, memory (PSS)", unit="MB", better="less", goal=36.0, flat=False),
            Figure(key="beats", title="idle, heartbeats", unit="/min", better="less", flat=False),
            Figure(
                key="writes", title="idle, other writes", unit="/min", better="less", goal=0.0, must=0.0, flat=False
            ),
            Figure(key="reads", title="idle, reads", unit="/min", better="less", flat=False),
        )  # fmt: skip

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Watch a worker process from the outside, and what it sends from the inside."""
        with children.started(idling.worker, url=place.url) as child:
            child.wait_ready()
            time.sleep(_SETTLE_IN)
            began, used = now(), processor_seconds(child.pid)
            time.sleep(sizes.idle)
            ended, used = now(), processor_seconds(child.pid) - used
            held = memory(child.pid)
            sent: list[list[Any]] = child.finish()
        place.tidy()
        seen = [(kind, name) for at, kind, name in sent if began <= at < ended]
        per_minute = 60e6 / (ended - began)
        beats = sum(name == _HEARTBEAT for _, name in seen)
        return {
            "cpu": used / ((ended - began) / 1e6) * 100,
            "memory": held,
            "beats": beats * per_minute,
            "writes": sum(kind == "write" and name not in _BEAT_SCRIPT for kind, name in seen) * per_minute,
            "reads": sum(kind == "read" for kind, _ in seen) * per_minute,
        }


_BEAT_SCRIPT = {_HEARTBEAT, "held_by"}
"""The statements of one heartbeat: it also asks what the worker holds."""
