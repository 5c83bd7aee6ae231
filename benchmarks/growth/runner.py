"""Takes every curve of every engine, one after the other, and keeps what came of it in one value."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.growth import fleets
from benchmarks.growth.engines import ENGINES, Engine, Load
from benchmarks.growth.fleets import Figures, Fleet, FleetTasks, fleet
from benchmarks.growth.sizes import Sizes
from benchmarks.ledger import Entry, WrongRun, checked, now, spread
from benchmarks.places import fill
from benchmarks.report import machine
from benchmarks.schedules import store_rules
from duetime.model.triggers.every import Every


def over_workers(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Yield the figures of each number of processes."""
    for workers in sizes.workers:
        yield {"workers": workers, **_with_workers(engine, sizes, workers)}
        engine.tidy()


def _with_workers(engine: Engine, sizes: Sizes, workers: int) -> Figures:
    with fleet(engine.url, processes=workers) as started:
        time.sleep(sizes.settle_in)
        idle, _ = fleets.idle(engine, started, seconds=sizes.idle)
        begun = fleets.start(started, pings=sizes.pings)
        late = fleets.on_time(started, jobs=sizes.one_offs, rate=sizes.rate)
        waited = fleets.drain(engine, started, jobs=sizes.waiting * workers, waiting=True)
        # More workers than cores share the cores; more jobs would only take longer.
        drained = fleets.drain(engine, started, jobs=sizes.drain * min(workers, os.cpu_count() or 1))
    return {
        **idle,
        "start_p50": begun["p50"],
        "start_p99": begun["p99"],
        "late_p50": late["p50"],
        "late_p99": late["p99"],
        "drain_waiting": waited.rate,
        "drain": drained.rate,
        "worker_us": drained.processor / len(drained.entries) * 1e6,
        **_cost(drained),
    }


def _cost(drained: fleets.Drained) -> Figures:
    if drained.load is None:
        return {}
    load, jobs = drained.load, len(drained.entries)
    return {
        "statements_per_job": load.statements / jobs,
        "statements_per_second": load.statements / load.seconds,
        "commits_per_job": load.commits / jobs,
        "server_us": load.processor / jobs * 1e6,
        "wal_per_job": load.wal / jobs,
    }


_GAP = 0.5
"""Seconds between single jobs: longer than it takes even a large crowd to answer a hint."""
_PATIENCE = 60.0


def over_crowds(engine: Engine, sizes: Sizes) -> Iterator[tuple[Figures, dict[str, float]]]:
    """Yield the figures of each crowd, and its statements per second by name."""
    for workers in sizes.crowds:
        each = min(workers, sizes.in_process)
        with fleet(engine.url, processes=workers // each, each=each) as started:
            time.sleep(sizes.settle_in)
            idle, load = fleets.idle(engine, started, seconds=sizes.idle)
            if load is None:
                raise ValueError(f"what a crowd asks is counted by a server, which {engine.name} has not")
            answered = asyncio.run(_answered(engine, started, sizes.events))
        rate = load.statements / load.seconds
        named = {name: calls.count / load.seconds for name, calls in sorted(load.calls.items())}
        beside = (answered.statements - rate * answered.seconds) / sizes.events
        yield {"workers": workers, **idle, "statements_per_event": max(0.0, beside)}, named
        engine.tidy()


async def _answered(engine: Engine, crowd: Fleet, events: int) -> Load:
    """Give the crowd one job after the other, and return what the server was asked meanwhile."""
    tasks = crowd.client()
    crowd.notes.clear()
    async with tasks.scheduler:
        before = engine.load()
        for n in range(events):
            await tasks.note.enqueue(n, 0)
            await asyncio.sleep(_GAP)
        found = await asyncio.to_thread(crowd.notes.wait, events, within=_PATIENCE)
        after = engine.load()
    checked(found, expected=events)
    assert before is not None
    assert after is not None
    return after.since(before)


_A_DAY = 86_400 * 1_000_000
_CLAIM = ("claim", "take")
_SETTLE = ("succeed", "settle")
_RATES = ("drain", "enqueue", "bulk")
_TIMES = ("start_p50",)
_NOWHERE = Path("/dev/null")


def over_stored(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Fill one database in steps, and yield the figures of each, also as multiples of an empty one's."""
    stored = 0
    empty = engine.beside()
    fill(url=empty.url, future=0)
    empty.tidy()
    for wanted in sizes.stored:
        asyncio.run(_fill(engine.url, stored, wanted))
        stored = wanted
        engine.tidy()
        # In turns, because the machine is not the same from one minute to the next.
        pairs = [(_with_stored(empty, sizes), _with_stored(engine, sizes)) for _ in range(sizes.repeats)]
        yield {"stored": stored, **_medians([full for _, full in pairs]), **multiples(pairs)}


async def _fill(url: str, first: int, last: int) -> None:
    tasks = FleetTasks(url, _NOWHERE)
    due = now() + _A_DAY
    async with tasks.scheduler:
        await tasks.put(last - first, tasks.later, lambda n: due + (first + n) * 1_000_000)


def _with_stored(engine: Engine, sizes: Sizes) -> Figures:
    figures = fleets.enqueue(engine, FleetTasks(engine.url, _NOWHERE), singles=sizes.singles, bulk=sizes.bulk)
    engine.tidy()
    with fleet(engine.url, processes=1) as started:
        begun = fleets.start(started, pings=sizes.pings)
        drained = fleets.drain(engine, started, jobs=sizes.drain)
    engine.tidy()
    return {**figures, "start_p50": begun["p50"], "drain": drained.rate, **_pages(drained)}


def _pages(drained: fleets.Drained) -> Figures:
    """Return how many pages of the database a job touches when it is claimed, settled, and looked out for."""
    if drained.load is None:
        return {}
    calls, jobs = drained.load.calls, len(drained.entries)

    def per_job(names: Sequence[str]) -> float:
        return sum(calls[name].pages for name in names if name in calls) / jobs

    looks = drained.load.pages("next_due")
    return {"pages_claim": per_job(_CLAIM), "pages_settle": per_job(_SETTLE), "pages_look": looks}


def multiples(pairs: Sequence[tuple[Figures, Figures]]) -> Figures:
    """Return how many times as long everything takes, by the median of all pairs of an empty and a filled store."""
    longer = {key: [full[key] / empty[key] for empty, full in pairs] for key in _TIMES}
    longer |= {key: [empty[key] / full[key] for empty, full in pairs] for key in _RATES}
    return {f"{key}_times": statistics.median(found) for key, found in longer.items()}


def _medians(rounds: Sequence[Figures]) -> Figures:
    return {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}


_SECOND = 1_000_000
_LEAD = 2 * _SECOND
_STORED_PER_SECOND = 2_000
"""Schedules that are surely stored in a second."""
_TOMORROW = 86_400 * _SECOND


def over_schedules(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Yield the figures of each number of schedules: with a fixed rate in all, and with a fixed period of each."""
    for count in sizes.schedules:
        steady = int(count / sizes.rate * _SECOND)
        yield {
            "schedules": count,
            **_prefixed("steady", _with_schedules(engine, sizes, count, steady)),
            **_prefixed("each", _with_schedules(engine, sizes, count, int(sizes.period * _SECOND))),
        }


def _with_schedules(engine: Engine, sizes: Sizes, count: int, period: int) -> Figures:
    with fleet(engine.url, processes=1) as started:
        first = now() + _LEAD + count * _SECOND // _STORED_PER_SECOND
        until = first + int(sizes.watched * _SECOND) - 1
        rules = spread_rules(count, period, first=first, until=until)
        # Ten schedules come every 50 ms: those policies would merge what a busy moment has delayed.
        asyncio.run(store_rules(engine.url, rules, before=first, overlap="allow", misfire="all"))
        before, used = engine.load(), started.processor()
        expected = occurrences(rules, until=until)
        found = started.notes.wait(len(expected), within=sizes.watched + _PATIENCE)
        after, used = engine.load(), started.processor() - used
    engine.tidy()
    all_started(found, expected)
    figures = {
        **spread([entry.late / 1000 for entry in found]),
        "rate": len(expected) / sizes.watched,
        "worker_us": used / len(expected) * 1e6,
    }
    if before is not None and after is not None:
        load = after.since(before)
        figures["statements_per_job"] = load.statements / len(expected)
        figures["server_us"] = load.processor / len(expected) * 1e6
    return figures


def spread_rules(count: int, period: int, *, first: int, until: int) -> list[Every]:
    """Return rules that come one after the other, evenly, and not past `until`; some may come on another day only."""
    starts = (first + n * period // count for n in range(count))
    return [
        Every(interval=period, start=start, end=until)
        if start <= until
        else Every(interval=period, start=start + _TOMORROW)
        for start in starts
    ]


def occurrences(rules: Sequence[Every], *, until: int) -> list[tuple[int, int]]:
    """Return the number of the rule and the moment of all that it comes to until then."""
    found: list[tuple[int, int]] = []
    for number, rule in enumerate(rules):
        moment = rule.after(0)
        while moment is not None and moment <= until:
            found.append((number, moment))
            moment = rule.after(moment)
    return found


def all_started(found: Sequence[Entry], expected: Sequence[tuple[int, int]]) -> None:
    """Raise unless each occurrence has started once, and none before its time."""
    started = sorted((entry.number, entry.due_at) for entry in found)
    if started != sorted(expected):
        raise WrongRun(
            f"{len(expected)} occurrences were due, {len(set(started) & set(expected))} of them ran, "
            f"{len(started)} jobs in all"
        )
    if early := [entry for entry in found if entry.late < 0]:
        raise WrongRun(f"{len(early)} jobs started before they were due, the first by {-early[0].late} us")


def _prefixed(prefix: str, figures: Figures) -> Figures:
    return {f"{prefix}_{key}": value for key, value in figures.items()}


CURVES = ("workers", "crowds", "schedules", "stored")
"""In this order: the last one leaves the store full."""

Results = dict[str, Any]


def run(engines: Iterable[str], curves: Sequence[str], sizes: Sizes) -> Results:
    """Measure, and return all figures with what they depend on."""
    found: Results = {"machine": machine(), "sizes": asdict(sizes), "engines": {}}
    for name in engines:
        with ENGINES[name]() as engine:
            fill(url=engine.url, future=0)
            engine.tidy()
            found["engines"][name] = {"facts": engine.facts, **_curves(engine, curves, sizes)}
    return found


def _curves(engine: Engine, curves: Sequence[str], sizes: Sizes) -> Results:
    found: Results = {}
    for curve in CURVES:
        if curve not in curves or (curve == "crowds" and engine.load() is None):
            continue
        _say(f"{engine.name}: {curve}")
        points: list[Any] = []
        found[curve] = points
        try:
            for point in _measured(curve, engine, sizes):
                _say(f"  {point}")
                points.append(point)
        except WrongRun as error:
            # What was measured before is worth keeping, and so are the curves to come.
            _say(f"  broken off: {error}")
            found.setdefault("broken", {})[curve] = str(error)
            engine.tidy()
    return found


def _measured(curve: str, engine: Engine, sizes: Sizes) -> Iterable[Any]:
    match curve:
        case "workers":
            return over_workers(engine, sizes)
        case "crowds":
            return ({**figures, "by_name": named} for figures, named in over_crowds(engine, sizes))
        case "schedules":
            return over_schedules(engine, sizes)
        case _:
            return over_stored(engine, sizes)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
