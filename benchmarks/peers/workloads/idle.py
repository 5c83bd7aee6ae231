"""What a worker with nothing to do costs."""

from __future__ import annotations

import time

from benchmarks.peers.adapters.base import Settings
from benchmarks.peers.cells import Outcome
from benchmarks.peers.costs import held, spent, usage
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, WIDTH, Bench, Column
from benchmarks.places import Limits


class Idle:
    """Processor of worker and server, and memory of the worker."""

    name = "idle"
    title = "Idle"
    meaning = (
        "A worker without work, with its default settings: its share of one core, that of the database server, and its "
        "memory (PSS). Where the tables above needed a shorter poll than the default one, *polling* is what that costs."
    )
    columns = (
        Column(variant="default", key="worker", title="worker", unit="%", better="less"),
        Column(variant="default", key="server", title="server", unit="%", better="less", plotted=False),
        Column(variant="default", key="memory", title="memory", unit="MB", better="less"),
        Column(
            variant="eager", key="worker", title="worker, polling", unit="%", better="less", plotted=False
        ),
    )
    bounds: tuple[str, ...] = ()

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """With its defaults and, in a full run, with the poll of the other workloads."""
        return ("default", "eager") if system.polls and sizes.name != "quick" else ("default",)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Look on."""
        del system, variant
        return 2 * START_UP + sizes.settle + sizes.idle

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Read the processor clocks twice."""
        with bench.fresh() as peer:
            settings = Settings(concurrency=WIDTH, eager=variant == "eager")
            with peer.working(settings) as workers:
                time.sleep(bench.sizes.settle)
                began, worker, server = time.perf_counter(), usage(workers.pids), bench.server()
                time.sleep(bench.sizes.idle)
                took = time.perf_counter() - began
                worked, served = spent(worker, usage(workers.pids)), spent(server, bench.server())
                memory = sum(held(pid) for pid in workers.pids)
        figures = {"worker": worked / took * 100, "memory": memory}
        if bench.databases.server is not None:
            figures["server"] = served / took * 100
        return Outcome(figures=figures)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """No limit but zero."""
        del limits, sizes
        return {}
