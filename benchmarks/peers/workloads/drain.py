"""How fast worker processes run jobs that wait for them."""

from __future__ import annotations

import time

from benchmarks.peers.adapters.base import Settings
from benchmarks.peers.cells import Outcome
from benchmarks.peers.check import Start, judge
from benchmarks.peers.costs import spent, usage
from benchmarks.peers.peer import Peer
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, Bench, Column
from benchmarks.places import Limits
from benchmarks.sizes import BATCHES

_PROCESSES = {"one": 1, "two": 2}
_AFTER = 0.2
"""Seconds in which a job that runs twice would show."""


class Drain:
    """Jobs per second, from the moment a worker begins to the last start."""

    name = "drain"
    title = "Drain"
    meaning = (
        "Jobs per second that worker processes run when all jobs are stored before they start, from the moment they "
        "are let go to the start of the last job, or until the time is up. Processor time is that of "
        "workers and server together."
    )
    columns = (
        Column(variant="one", key="rate", title="one process", unit="jobs/s", better="more"),
        Column(variant="two", key="rate", title="two processes", unit="jobs/s", better="more"),
        Column(
            variant="one", key="cost", title="processor, one process", unit="µs/job", better="less", plotted=False
        ),
    )  # fmt: skip
    bounds: tuple[str, ...] = ("one",)

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """One process and, where they can share the work, two."""
        del sizes
        return tuple(name for name, count in _PROCESSES.items() if count <= system.processes)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Stock, then drain, for each width."""
        del variant
        stock = min(sizes.stock_seconds, sizes.drain / system.pace)
        return len(system.widths) * (3 * START_UP + stock + sizes.drain_seconds / 2)

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Drain with each width and return the best."""
        found: list[Outcome] = []
        for width in bench.system.widths:
            with bench.fresh() as peer:
                found.append(drained(bench, peer, width=width, processes=_PROCESSES[variant]))
        return max(found, key=lambda outcome: outcome.figures["rate"])

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Run the bare loop with each batch and return the best."""
        best = max(limits.drain(sizes.drain, batch) for batch in BATCHES)
        return {"one": Outcome(figures={"rate": best}, note="bare loop")}


def drained(bench: Bench, peer: Peer, *, width: int, processes: int = 1, origin: int = 0) -> Outcome:
    """Store jobs, numbered from `origin`, and let workers run them."""
    sizes = bench.sizes
    stocked = peer.call("stock", count=sizes.drain, seconds=sizes.stock_seconds, origin=origin)["count"]
    bench.databases.rest(peer.url)
    peer.forget()
    served = bench.server()
    with peer.working(Settings(concurrency=width), processes=processes) as workers:
        until = workers.began + sizes.drain_seconds
        _wait(peer, stocked, origin=origin, until=until)
        used = sum(usage(workers.pids).values()) - workers.used + spent(served, bench.server())
        time.sleep(_AFTER)
    starts = _own(peer, origin)
    times = [start.at for start in starts if start.at <= until]
    cut = len(times) < stocked
    took = (until if cut else max(times, default=until)) - min([workers.began, *times])
    figures = {"rate": len(times) / took, "width": float(width)}
    if times:
        figures["cost"] = used / len(times) * 1e6
    notes = [f"{len(times):,} of {stocked:,} in {sizes.drain_seconds:g} s"] if cut else []
    if stocked < sizes.drain:
        notes.append(f"{stocked:,} stored in {sizes.stock_seconds:g} s")
    return Outcome(
        figures=figures, wrong=judge(starts, expected=stocked, whole=not cut).wrong, note="; ".join(notes)
    )


def _own(peer: Peer, origin: int) -> list[Start]:
    """Return the starts of the jobs from `origin`: what an earlier part of the cell has left behind is not counted."""
    numbered = (start._replace(number=start.number - origin) for start in peer.starts())
    return [start for start in numbered if start.number >= 0]


def _wait(peer: Peer, count: int, *, origin: int, until: float) -> None:
    left = count
    while left > 0 and time.time() < until:
        peer.wait(peer.ran() + left, until=until)
        left = count - len(_own(peer, origin))
