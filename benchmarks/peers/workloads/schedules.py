"""How late the jobs of many schedules start, and what that costs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks import children
from benchmarks.figures import spread
from benchmarks.limits import timer
from benchmarks.peers.adapters.base import Plan, Settings
from benchmarks.peers.cells import Outcome
from benchmarks.peers.check import Start, judge, lateness, occurrences
from benchmarks.peers.costs import spent, usage
from benchmarks.peers.peer import Peer, Workers
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import START_UP, WIDTH, Bench, Column
from benchmarks.places import Limits

_VARIANTS = ("phase", "spread")


class Schedules:
    """Milliseconds from the due time of each occurrence to the first line of its handler."""

    name = "schedules"
    title = "Schedules"
    meaning = (
        "Schedules that come every few seconds, in one worker process that also fires them: all at the same instants, or "
        "spread evenly. Milliseconds from each occurrence to the first line of its handler, and the processor of that "
        "process. Each occurrence has to run once; one that does not counts with the time that was waited."
    )
    columns = tuple(
        Column(variant=variant, key=key, title=f"{title}, {what}", unit=unit, better="less", plotted=key != "cpu")
        for variant, title in zip(_VARIANTS, ("in phase", "spread"), strict=True)
        for key, what, unit in (("p50", "p50", "ms"), ("p99", "p99", "ms"), ("cpu", "processor", "%"))
    )  # fmt: skip
    bounds: tuple[str, ...] = _VARIANTS

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """In phase and spread."""
        del system, sizes
        return _VARIANTS

    def estimate(self, system: System, sizes: Sizes, variant: str) -> float:
        """Store them, a period to warm up, those that are watched, and one for late ones."""
        if not system.schedules:
            return 2 * START_UP
        count = _count(sizes, variant)
        return 3 * START_UP + count / system.pace + sizes.period * (sizes.periods + 2.5)

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Store the schedules, then watch a worker that fires and runs them."""
        sizes = bench.sizes
        count = _count(sizes, variant)
        step = 0.0 if variant == "phase" else sizes.period / count
        first = math.ceil(time.time() / sizes.period + 1) * sizes.period
        plan = Plan(count=count, period=sizes.period, first=first, step=step)
        settings = Settings(concurrency=WIDTH, plan=plan)
        with bench.fresh() as peer:
            if bench.system.in_process:
                with peer.serving(settings, "schedules", settle=0, plan=asdict(plan)) as (workers, answer):
                    return _watched(peer, workers, answer["starts"], sizes)
            firsts = peer.call("schedules", plan=asdict(plan))["starts"]
            with peer.working(settings) as workers:
                return _watched(peer, workers, firsts, sizes)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Set as many bare timers."""
        del limits
        phase = children.run(timer.late, timers=sizes.in_phase, span=0.0)
        spread_out = children.run(timer.late, timers=sizes.spread, span=sizes.period)
        note = "bare timer of the event loop"
        return {"phase": Outcome(figures=phase, note=note), "spread": Outcome(figures=spread_out, note=note)}


def _count(sizes: Sizes, variant: str) -> int:
    return sizes.in_phase if variant == "phase" else sizes.spread


def _watched(peer: Peer, workers: Workers, firsts: Sequence[float], sizes: Sizes) -> Outcome:
    # Half a period before a grid point, so that neither edge cuts through those in phase.
    begin = math.ceil(max(time.time(), min(firsts)) / sizes.period + 1) * sizes.period - sizes.period / 2
    end = begin + sizes.periods * sizes.period
    _sleep_until(begin)
    before = usage(workers.pids)
    _sleep_until(end)
    used = spent(before, usage(workers.pids))
    while True:
        starts, expected = occurrences(peer.starts(), firsts=firsts, period=sizes.period, window=(begin, end))
        if len(starts) >= expected or time.time() > end + sizes.period:
            return _outcome(starts, expected, wait=time.time() - begin, share=used / (end - begin))
        time.sleep(0.1)


def _outcome(starts: Sequence[Start], expected: int, *, wait: float, share: float) -> Outcome:
    late = lateness(starts, expected=expected, wait=wait)
    return Outcome(figures={**spread(late), "cpu": share * 100}, wrong=judge(starts, expected=expected).wrong)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))
