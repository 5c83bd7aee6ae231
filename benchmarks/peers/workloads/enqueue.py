"""How fast one process stores jobs that are due now."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import sizes as bare
from benchmarks.peers.cells import Outcome
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, Bench, Column
from benchmarks.places import Limits

_TITLES = {"single": "one at a time", "at_once": "32 at once", "bulk": "1,000 a call"}


class Enqueue:
    """Durable jobs per second, with no worker running."""

    name = "enqueue"
    title = "Enqueue"
    meaning = (
        "Jobs per second that one process stores: one after the other, by 32 callers at once in one event loop, and by "
        "the bulk call with 1,000 jobs each. No worker runs."
    )
    columns = tuple(
        Column(variant=variant, key="rate", title=title, unit="jobs/s", better="more")
        for variant, title in _TITLES.items()
    )
    bounds: tuple[str, ...] = ("single", "at_once", "bulk")

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """Three ways."""
        del system, sizes
        return tuple(_TITLES)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Until the time is up."""
        times = 2 if variant == "single" and system.blocks else 1
        return times * (START_UP + sizes.enqueue_seconds)

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Put jobs until all are there or the time is up."""
        figures = {"rate": _measured(bench, variant)}
        if variant != "single" or not bench.system.blocks:
            return Outcome(figures=figures)
        figures["awaited"] = _measured(bench, "awaited")
        return Outcome(figures=figures, note=f"by await {figures['awaited']:,.0f}")

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Insert bare rows."""
        singles = min(sizes.enqueues, 1_000)
        counts = replace(bare.QUICK, singles=singles, at_once=min(sizes.enqueues, 6_400), bulk=sizes.enqueues)
        return {
            variant: Outcome(figures={"rate": found}, note="bare inserts")
            for variant, found in limits.inserts(counts).items()
        }


def rate(answer: dict[str, float]) -> float:
    """Return jobs per second."""
    return answer["count"] / answer["seconds"]


def _measured(bench: Bench, mode: str) -> float:
    with bench.fresh() as peer:
        sizes = bench.sizes
        return rate(peer.call("enqueue", mode=mode, count=sizes.enqueues, seconds=sizes.enqueue_seconds))
