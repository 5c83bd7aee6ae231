"""What is timed, the same for every database; the bare hint, and the bare timer."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from benchmarks.ledger import checked, now, percentile, spread
from benchmarks.processes import Watch
from benchmarks.sizes import BATCH


async def odd_moment() -> None:
    """Wait until processors, caches and the disk have turned to other things, for a time that fits no rhythm."""
    await asyncio.sleep(random.uniform(0.01, 0.03))


async def byte(pings: int) -> float:
    """Return the median seconds from writing a byte until the sleeping event loop has seen it."""
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    sent: list[float] = []
    seen: list[float] = []
    done = asyncio.Event()

    def send() -> None:
        for _ in range(pings):
            time.sleep(0.001)
            sent.append(time.perf_counter())
            os.write(writer, b".")

    def see() -> None:
        seen.append(time.perf_counter())
        os.read(reader, 1)
        if len(seen) == pings:
            done.set()

    loop.add_reader(reader, see)
    thread = threading.Thread(target=send)
    thread.start()
    await done.wait()
    thread.join()
    loop.remove_reader(reader)
    os.close(reader)
    os.close(writer)
    return percentile([there - here for here, there in zip(sent, seen, strict=True)], 0.5)


async def late(*, timers: int, span: float) -> dict[str, float]:
    """Return the lateness, in milliseconds, of timers spread evenly over some seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time() + 0.2
    seen: list[float] = []
    done = asyncio.Event()

    def call(due: float) -> None:
        seen.append((loop.time() - due) * 1000)
        if len(seen) == timers:
            done.set()

    for n in range(timers):
        due = started + n * span / timers
        loop.call_at(due, call, due)
    await done.wait()
    return spread(seen)


Row = tuple[str, str, str, int, int]
"""The id, the task, the payload, when it is due and when it was made."""


class Bare(Protocol):
    """One caller of a database, straight on its driver."""

    async def insert(self, row: Row) -> None:
        """Store one job."""

    async def insert_all(self, rows: Sequence[Row]) -> None:
        """Store many jobs in one transaction."""

    async def claim(self, batch: int) -> Sequence[Sequence[Any]]:
        """Take due jobs, each with its id, task, payload and due time."""

    async def settle(self, ids: Sequence[str]) -> None:
        """Note that jobs are done."""

    async def left(self) -> int:
        """Count the jobs that are not done."""


def rows_of(count: int) -> list[Row]:
    """Make jobs that are due."""
    at = now()
    return [
        (f"{at:016x}{n:016x}", "benchmarks.note", f'{{"number":{n},"due_at":{at}}}', at, at)
        for n in range(count)
    ]


async def inserted(
    one: Bare, callers: Sequence[Bare], *, singles: int, at_once: int, bulk: int
) -> dict[str, float]:
    """Return inserts per second: by one caller, by all callers at once, and many at a time by the first of them."""
    return {
        "single": await one_by_one([one], singles),
        "at_once": await one_by_one(callers, at_once),
        "bulk": await in_batches(callers[0], bulk),
    }


async def in_batches(caller: Bare, count: int) -> float:
    """Store jobs many at a time, and return how many per second."""
    rows = rows_of(count)
    watch = Watch()
    for start in range(0, count, BATCH):
        await caller.insert_all(rows[start : start + BATCH])
    return count / watch.seconds()


async def one_by_one(callers: Sequence[Bare], count: int) -> float:
    """Store jobs by callers that wait only for their own, and return how many per second."""

    async def call(caller: Bare, share: Sequence[Row]) -> None:
        for row in share:
            await caller.insert(row)

    rows = rows_of(count)
    watch = Watch()
    await asyncio.gather(*(call(caller, rows[n :: len(callers)]) for n, caller in enumerate(callers)))
    return count / watch.seconds()


async def drained(claimer: Bare, settler: Bare, *, jobs: int, batch: int) -> float:
    """Return how many stored jobs per second are claimed, run and settled."""
    ran: list[tuple[int, int, int]] = []

    async def handle(job_id: str, due_at: int) -> None:
        ran.append((int(job_id[16:], 16), due_at, now()))

    settling: asyncio.Task[None] | None = None
    watch = Watch()
    claiming = asyncio.create_task(claimer.claim(batch))
    while claimed := await claiming:
        claiming = asyncio.create_task(claimer.claim(batch))
        await asyncio.gather(*[asyncio.create_task(handle(row[0], row[3])) for row in claimed])
        if settling is not None:
            await settling
        settling = asyncio.create_task(settler.settle([row[0] for row in claimed]))
    assert settling is not None
    await settling
    took = watch.seconds()
    assert await claimer.left() == 0
    checked(ran, expected=jobs)
    return jobs / took


async def round_trip(
    here: Bare, there: Bare, *, pings: int, hint: Callable[[], Awaitable[float]] | None = None
) -> float:
    """Return the milliseconds of an insert, a hint and a claim, each at its median.

    `hint` returns how many seconds one took; where a database cannot give any, a byte to a sleeping event loop
    stands for it.
    """
    inserting: list[float] = []
    hinting: list[float] = []
    claiming: list[float] = []
    for row in rows_of(pings):
        await odd_moment()
        began = time.perf_counter()
        await here.insert(row)
        inserting.append(time.perf_counter() - began)
        if hint is not None:
            hinting.append(await hint())
        asked = time.perf_counter()
        claimed = await there.claim(100)
        claiming.append(time.perf_counter() - asked)
        assert len(claimed) == 1
    hinted = percentile(hinting, 0.5) if hinting else await byte(pings)
    return (percentile(inserting, 0.5) + hinted + percentile(claiming, 0.5)) * 1000


async def paired(
    take: Callable[[], Awaitable[bool]], release: Callable[[], Awaitable[bool]], count: int
) -> float:
    """Return how often per second a lock is taken and released, after a few times to warm up."""
    for _ in range(count // 10):
        assert await take()
        assert await release()
    watch = Watch()
    for _ in range(count):
        assert await take()
        assert await release()
    return count / watch.seconds()
