"""What is timed, the same for every database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from benchmarks.figures import percentile
from benchmarks.ledger import checked, now
from benchmarks.limits.hint import byte
from benchmarks.moments import odd_moment
from benchmarks.sizes import BATCH
from benchmarks.watch import Watch

Row = tuple[str, str, str, int, int]
"""The id, the task, the payload, when it is due and when it was made."""


class Bare(Protocol):
    """One caller of a database, straight on its driver."""

    async def insert(self, row: Row) -> None:
        """Store one job."""
        ...

    async def insert_all(self, rows: Sequence[Row]) -> None:
        """Store many jobs in one transaction."""
        ...

    async def claim(self, batch: int) -> Sequence[Sequence[Any]]:
        """Take due jobs, each with its id, task, payload and due time."""
        ...

    async def settle(self, ids: Sequence[str]) -> None:
        """Note that jobs are done."""
        ...

    async def left(self) -> int:
        """Count the jobs that are not done."""
        ...


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
