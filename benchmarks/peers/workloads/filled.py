"""The same with many jobs stored for later."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.cells import Outcome
from benchmarks.peers.peer import Peer
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, Bench, Column
from benchmarks.peers.workloads.drain import Drain, drained
from benchmarks.peers.workloads.enqueue import Enqueue, rate
from benchmarks.peers.workloads.start import Starting, started
from benchmarks.places import Limits

_FILLS_PER_SECOND = 20_000
_FILLS_AT_LEAST = 2_000
_PATIENCE = 120.0
_PINGS = 60
"""Enough for a median."""
_ORIGIN = 1_000_000_000
"""Numbers of drained jobs begin here: one that was to start earlier may still come."""


class Filled:
    """Start, drain and enqueue, in a database with many jobs for later."""

    name = "filled"
    title = "With many jobs stored for later"
    meaning = (
        "The start p50, the drain by one process and the enqueues one at a time of the tables above, in a database that "
        "holds many jobs for later: one a second, from a day ahead. In parentheses how many times worse than empty."
    )
    columns = (
        Column(
            variant="future", key="start", title="enqueue to start, p50", unit="ms", better="less",
            against=("start", "idle", "p50"),
        ),
        Column(
            variant="future", key="drain", title="drain, one process", unit="jobs/s", better="more",
            against=("drain", "one", "rate"),
        ),
        Column(
            variant="future", key="enqueue", title="enqueue, one at a time", unit="jobs/s", better="more",
            against=("enqueue", "single", "rate"),
        ),
    )  # fmt: skip
    bounds: tuple[str, ...] = ()

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """One database for all three."""
        del system, sizes
        return ("future",)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Fill, start, drain and enqueue."""
        parts = (
            Starting().estimate(system, _few_pings(sizes), variant),
            Drain().estimate(system, sizes, variant),
            Enqueue().estimate(system, sizes, variant),
        )
        return START_UP + sizes.future / _FILLS_PER_SECOND + sum(parts)

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Fill it once, then measure one after the other."""
        del variant
        sizes = bench.sizes
        with bench.fresh() as peer:
            peer.call("fill", count=sizes.future, within=_PATIENCE + sizes.future / _FILLS_AT_LEAST)
            bench.databases.rest(peer.url)
            start = started(peer, _few_pings(sizes))
            drain = _best_drain(bench, peer)
            enqueue = peer.call(
                "enqueue",
                mode="single",
                count=sizes.enqueues,
                seconds=sizes.enqueue_seconds,
                origin=9 * _ORIGIN,
            )
        figures = {"start": start.figures["p50"], "drain": drain.figures["rate"], "enqueue": rate(enqueue)}
        wrong = {
            name: start.wrong.get(name, 0) + drain.wrong.get(name, 0) for name in start.wrong | drain.wrong
        }
        return Outcome(figures=figures, wrong=wrong, note=drain.note)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """The limits do not depend on it."""
        del limits, sizes
        return {}


def _best_drain(bench: Bench, peer: Peer) -> Outcome:
    found: list[Outcome] = []
    for n, width in enumerate(bench.system.widths, 1):
        found.append(drained(bench, peer, width=width, origin=n * _ORIGIN))
        # What was left over would be drained first, at the cost of the next width.
        if found[-1].note:
            break
    return max(found, key=lambda outcome: outcome.figures["rate"])


def _few_pings(sizes: Sizes) -> Sizes:
    return replace(sizes, pings=min(sizes.pings, _PINGS))
