"""What is told of jobs that are put one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from benchmarks.peers import sheet
from benchmarks.peers.catalogue import SYSTEMS, System, named
from benchmarks.peers.cells import Cell, Outcome
from benchmarks.peers.sheet import gathered, medians
from benchmarks.peers.sizes import TINY, Sizes
from benchmarks.peers.systems.base import Client, Job
from benchmarks.peers.systems.inside import enqueue
from benchmarks.peers.workloads import Bench, Enqueue

RATES = {"single": 5_000.0, "awaited": 2_100.0, "at_once": 9_000.0, "bulk": 80_000.0}


class Desk:
    """Stands in for a bench, and for the peer at it; how fast it is depends on the mode."""

    sizes: Sizes = TINY

    def __init__(self, system: System) -> None:
        self.system = system

    @contextmanager
    def fresh(self) -> Iterator[Desk]:
        yield self

    def call(self, _: str, *, mode: str, count: int, seconds: float) -> dict[str, float]:
        del count, seconds
        return {"count": RATES[mode], "seconds": 1.0}


def measured(name: str, variant: str) -> Outcome:
    return Enqueue().run(cast("Bench", Desk(named(name))), variant)


def test_what_await_does_stands_beside_the_figure_of_the_blocking_call() -> None:
    cell = Cell(engine="sqlite", system="duetime-sqlite", workload="enqueue", variant="single")
    bulk = Cell(engine="sqlite", system="duetime-sqlite", workload="enqueue", variant="bulk")
    found = medians((each, measured(each.system, each.variant)) for each in (cell, bulk))
    shown = sheet.markdown(gathered(found, engine="sqlite", workload=Enqueue(), systems=SYSTEMS))
    assert "| **Duetime** | **5,000** | **80,000** | one at a time: by await 2,100 |" in shown


async def test_to_await_each_is_not_to_block() -> None:
    class Blocking(Client):
        put_count = 0

        async def put(self, job: Job) -> None:
            del job
            self.put_count += 1

        async def put_at(self, job: Job) -> None:
            raise NotImplementedError

        async def put_each(self, jobs: object) -> None:
            raise NotImplementedError

    client = Blocking()
    await enqueue(client, mode="awaited", count=3, seconds=60.0)
    assert client.put_count == 3
