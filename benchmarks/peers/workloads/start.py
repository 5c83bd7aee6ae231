"""How long an idle worker takes to start a job that another process enqueues."""

from __future__ import annotations

import time

from benchmarks.figures import spread
from benchmarks.peers.adapters.base import Settings
from benchmarks.peers.cells import Outcome
from benchmarks.peers.check import judge, lateness
from benchmarks.peers.peer import Peer
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, WIDTH, Bench, Column
from benchmarks.places import Limits


class Starting:
    """Milliseconds from the call to the first line of the handler."""

    name = "start"
    title = "Enqueue to start"
    meaning = (
        "Milliseconds from the call that enqueues a job to the first line of its handler, in an idle worker of another "
        "process; one job at a time, at odd moments."
    )
    columns = (
        Column(variant="idle", key="p50", title="p50", unit="ms", better="less"),
        Column(variant="idle", key="p99", title="p99", unit="ms", better="less"),
    )
    bounds: tuple[str, ...] = ("idle",)

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """To an idle worker."""
        del system, sizes
        return ("idle",)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """One gap for each job."""
        del system, variant
        return 3 * START_UP + sizes.settle + sizes.pings * sizes.gap * 1.2

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Enqueue from one process, run in another."""
        del variant
        with bench.fresh() as peer:
            return started(peer, bench.sizes)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Make the round trips that no design can do without."""
        trips = limits.round_trips(sizes.pings)
        return {"idle": Outcome(figures={"p50": trips}, note="bare insert, hint and claim")}


def started(peer: Peer, sizes: Sizes) -> Outcome:
    """Send jobs to an idle worker."""
    ping = {"count": sizes.pings, "gap": sizes.gap}
    with peer.serving(Settings(concurrency=WIDTH), "ping", settle=sizes.settle, **ping):
        peer.wait(sizes.pings, until=time.time() + sizes.wait)
    starts = peer.starts()
    return Outcome(
        figures=spread(lateness(starts, expected=sizes.pings, wait=sizes.wait)),
        wrong=judge(starts, expected=sizes.pings).wrong,
    )
