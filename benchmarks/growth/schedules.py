"""The curve over schedules: as many occurrences a second however many there are, or each as often as the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from benchmarks.figures import spread
from benchmarks.growth.engines import Engine
from benchmarks.growth.feats import Figures
from benchmarks.growth.fleet import fleet
from benchmarks.growth.sizes import Sizes
from benchmarks.ledger import Entry, WrongRun, now
from benchmarks.measures.schedules import store_rules
from duetime.model.triggers.every import Every

_SECOND = 1_000_000
_LEAD = 2 * _SECOND
_STORED_PER_SECOND = 2_000
"""Schedules that are surely stored in a second."""
_PATIENCE = 60.0
_A_DAY = 86_400 * _SECOND


def measure(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Yield the figures of each number of schedules: with a fixed rate in all, and with a fixed period of each."""
    for count in sizes.schedules:
        steady = int(count / sizes.rate * _SECOND)
        yield {
            "schedules": count,
            **_prefixed("steady", _one(engine, sizes, count, steady)),
            **_prefixed("each", _one(engine, sizes, count, int(sizes.period * _SECOND))),
        }


def _one(engine: Engine, sizes: Sizes, count: int, period: int) -> Figures:
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
    checked(found, expected)
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
        else Every(interval=period, start=start + _A_DAY)
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


def checked(found: Sequence[Entry], expected: Sequence[tuple[int, int]]) -> None:
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
