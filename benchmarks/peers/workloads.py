"""What all systems are given to do."""

from __future__ import annotations

import math
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from benchmarks import children
from benchmarks.ledger import spread
from benchmarks.limits import loop
from benchmarks.peers.catalogue import System
from benchmarks.peers.cells import Outcome, Start, judge, lateness, occurrences
from benchmarks.peers.databases import Databases
from benchmarks.peers.peer import Peer, Workers
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems.base import Plan, Settings
from benchmarks.places import Limits
from benchmarks.processes import Usage, held, spent, usage
from benchmarks.sizes import BATCHES, QUICK

WIDTH = 100
"""Jobs at once, where no better width is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of a workload, as it stands in tables and plots."""

    variant: str
    key: str
    title: str
    unit: str
    better: Literal["more", "less"]
    plotted: bool = True
    against: tuple[str, str, str] | None = None
    """Workload, variant and key of the figure that this one is shown as a multiple of."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One system about to be measured."""

    system: System
    databases: Databases
    sizes: Sizes

    @contextmanager
    def fresh(self) -> Iterator[Peer]:
        """Give the system an empty database with its tables in it."""
        with tempfile.TemporaryDirectory(prefix="duetime-peer-") as name:
            folder = Path(name)
            with self.databases.empty(folder) as url:
                peer = Peer(self.system, url=url, folder=folder)
                peer.prepare()
                yield peer

    def server(self) -> Usage:
        """Return what the database server has used until now."""
        return {} if self.databases.server is None else usage([self.databases.server])


class Workload(ABC):
    """One kind of work that all systems are given."""

    name: str
    """As on the command line and in file names."""
    title: str
    meaning: str
    """What is measured, in a sentence or two."""
    columns: tuple[Column, ...]
    ways: tuple[str, ...]
    """The variants in which every system is measured."""
    bounds: tuple[str, ...] = ()
    """The variants that have a limit."""

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """Return the ways in which a system is measured."""
        return self.ways

    @abstractmethod
    def run(self, bench: Bench, variant: str) -> Outcome:
        """Measure."""

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        """Measure what the engine could do at best, by variant of `bounds`, and say in the notes what that was."""
        return {}


_TITLES = {"single": "one at a time", "at_once": "32 at once", "bulk": "1,000 a call"}


class Enqueue(Workload):
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
    ways = tuple(_TITLES)
    bounds = ("single", "at_once", "bulk")

    def run(self, bench: Bench, variant: str) -> Outcome:
        figures = {"rate": _measured(bench, variant)}
        if variant != "single" or not bench.system.blocks:
            return Outcome(figures=figures)
        figures["awaited"] = _measured(bench, "awaited")
        return Outcome(figures=figures, note=f"by await {figures['awaited']:,.0f}")

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        singles = min(sizes.enqueues, 1_000)
        counts = replace(QUICK, singles=singles, at_once=min(sizes.enqueues, 6_400), bulk=sizes.enqueues)
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


_PROCESSES = {"one": 1, "two": 2}
_AFTER = 0.2
"""Seconds in which a job that runs twice would show."""


class Drain(Workload):
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
    ways = tuple(_PROCESSES)
    bounds = ("one",)

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        return tuple(name for name, count in _PROCESSES.items() if count <= system.processes)

    def run(self, bench: Bench, variant: str) -> Outcome:
        found: list[Outcome] = []
        for width in bench.system.widths:
            with bench.fresh() as peer:
                found.append(drained(bench, peer, width=width, processes=_PROCESSES[variant]))
        return max(found, key=lambda outcome: outcome.figures["rate"])

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
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


class Starting(Workload):
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
    ways = ("idle",)
    bounds = ("idle",)

    def run(self, bench: Bench, variant: str) -> Outcome:
        with bench.fresh() as peer:
            return started(peer, bench.sizes)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
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


_LEAD = 1.5
"""Seconds from scheduling to the first due time, beside those that storing takes."""


class Lateness(Workload):
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
    ways = ("spread",)
    bounds = ("spread",)

    def run(self, bench: Bench, variant: str) -> Outcome:
        sizes = bench.sizes
        late, outcome = _scheduled(bench, count=sizes.one_offs, span=sizes.span, width=WIDTH)
        return replace(outcome, figures=spread(late))

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
        late = children.run(loop.late, timers=sizes.one_offs, span=sizes.span)
        return {"spread": Outcome(figures=late, note="bare timer of the event loop")}


class Burst(Workload):
    """Seconds from one instant to the start of the last job that is due at it."""

    name = "burst"
    title = "Burst"
    meaning = "Jobs that are all due at one instant: seconds from that instant to the start of the last one."
    columns = (
        Column(variant="instant", key="last", title="last start", unit="s", better="less"),
        Column(variant="instant", key="p50", title="p50", unit="ms", better="less", plotted=False),
    )
    ways = ("instant",)
    bounds = ("instant",)

    def run(self, bench: Bench, variant: str) -> Outcome:
        """Schedule from one process, run in another, with each width; return the best."""
        found = [self._one(bench, width) for width in bench.system.widths]
        return min(found, key=lambda outcome: (len(outcome.wrong), outcome.figures["last"]))

    def _one(self, bench: Bench, width: int) -> Outcome:
        late, outcome = _scheduled(bench, count=bench.sizes.burst, span=0.0, width=width)
        figures = {"last": max(late) / 1000, "p50": spread(late)["p50"], "width": float(width)}
        return replace(outcome, figures=figures)

    def limit(self, limits: Limits, sizes: Sizes) -> dict[str, Outcome]:
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


_FILLS_PER_SECOND = 20_000
_FILLS_AT_LEAST = 2_000
_PATIENCE = 120.0
_PINGS = 60
"""Enough for a median."""
_ORIGIN = 1_000_000_000
"""Numbers of drained jobs begin here: one that was to start earlier may still come."""


class Filled(Workload):
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
    ways = ("future",)

    def run(self, bench: Bench, variant: str) -> Outcome:
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


_VARIANTS = ("phase", "spread")


class Schedules(Workload):
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
    ways = _VARIANTS
    bounds = _VARIANTS

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
        phase = children.run(loop.late, timers=sizes.in_phase, span=0.0)
        spread_out = children.run(loop.late, timers=sizes.spread, span=sizes.period)
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


class Idle(Workload):
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
    ways = ("default", "eager")

    def variants(self, system: System, sizes: Sizes) -> tuple[str, ...]:
        """With its defaults and, in a full run, with the poll of the other workloads."""
        return ("default", "eager") if system.polls and sizes.name != "quick" else ("default",)

    def run(self, bench: Bench, variant: str) -> Outcome:
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


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (Enqueue(), Drain(), Starting(), Lateness(), Burst(), Filled(), Schedules(), Idle())
}
