"""How late one-off jobs start: some each second, or many at one instant."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import children
from benchmarks.figures import spread
from benchmarks.limits import timer
from benchmarks.peers.adapters.base import Settings
from benchmarks.peers.cells import Outcome
from benchmarks.peers.check import judge, lateness
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, WIDTH, Bench, Column
from benchmarks.places import Limits
from benchmarks.sizes import BATCHES

_LEAD = 1.5
"""Seconds from scheduling to the first due time, beside those that storing takes."""


class Lateness:
    """Milliseconds from the due time to the first line of the handler."""

    name = "lateness"
    title = "Lateness of one-off jobs"
    meaning = (
        "Milliseconds from the due time of a job to the first line of its handler; the jobs are scheduled by another "
        "process and fall due one after the other, 100 a second."
    )
    columns = (
        Column(variant="spread", key="p50", title="p50", unit="ms", better="less"),
        Column(variant="spread", key="p99", title="p99", unit="ms", better="less"),
    )
    bounds: tuple[str, ...] = ("spread",)

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """One after the other."""
        del system, sizes
        return ("spread",)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Store them, then wait for the last."""
        del variant
        return 3 * START_UP + sizes.settle + _lead(system, sizes.one_offs) + sizes.span

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Schedule from one process, run in another."""
        del variant
        sizes = bench.sizes
        late, outcome = _scheduled(bench, count=sizes.one_offs, span=sizes.span, width=WIDTH)
        return replace(outcome, figures=spread(late))

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Set as many bare timers."""
        del limits
        late = children.run(timer.late, timers=sizes.one_offs, span=sizes.span)
        return {"spread": Outcome(figures=late, note="bare timer of the event loop")}


class Burst:
    """Seconds from one instant to the start of the last job that is due at it."""

    name = "burst"
    title = "Burst"
    meaning = "Jobs that are all due at one instant: seconds from that instant to the start of the last one."
    columns = (
        Column(variant="instant", key="last", title="last start", unit="s", better="less"),
        Column(variant="instant", key="p50", title="p50", unit="ms", better="less", plotted=False),
    )
    bounds: tuple[str, ...] = ("instant",)

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """All at one instant."""
        del system, sizes
        return ("instant",)

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Store them, then wait for the last, for each width."""
        del variant
        each = 3 * START_UP + sizes.settle + _lead(system, sizes.burst) + sizes.wait / 3
        return len(system.widths) * each

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Schedule from one process, run in another, with each width; return the best."""
        del variant
        found = [self._one(bench, width) for width in bench.system.widths]
        return min(found, key=lambda outcome: (len(outcome.wrong), outcome.figures["last"]))

    def _one(self, bench: Bench, width: int) -> Outcome:
        late, outcome = _scheduled(bench, count=bench.sizes.burst, span=0.0, width=width)
        figures = {"last": max(late) / 1000, "p50": spread(late)["p50"], "width": float(width)}
        return replace(outcome, figures=figures)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Run as many jobs in the bare loop."""
        took = min(sizes.burst / limits.drain(sizes.burst, batch) for batch in BATCHES)
        return {"instant": Outcome(figures={"last": took}, note="bare loop")}


def _lead(system: System, count: int) -> float:
    return _LEAD + count / system.pace


def _scheduled(bench: Bench, *, count: int, span: float, width: int) -> tuple[list[float], Outcome]:
    sizes = bench.sizes
    lead = _lead(bench.system, count)
    with bench.fresh() as peer:
        settings = Settings(concurrency=width)
        wanted = {"count": count, "lead": lead, "span": span}
        with peer.serving(settings, "later", settle=sizes.settle, **wanted) as (_, answer):
            peer.wait(count, until=answer["first"] + span + sizes.wait)
        starts = peer.starts()
    over = answer["overrun"]
    note = f"storing them ended {over:.1f} s after the first was due" if over else ""
    late = lateness(starts, expected=count, wait=sizes.wait)
    return late, Outcome(wrong=judge(starts, expected=count).wrong, note=note)
