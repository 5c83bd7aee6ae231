"""Runs the cells that have no outcome yet, in an order of chance."""

from __future__ import annotations

import random
import re
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks.peers import peer
from benchmarks.peers.catalogue import ENGINES, Engine, System
from benchmarks.peers.cells import Cell, Outcome, Results
from benchmarks.peers.databases import Databases, opened
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.systems.base import Unsupported
from benchmarks.peers.workloads import WORKLOADS, Bench
from benchmarks.report import machine

LIMIT = "limit"
"""Stands for a system in the cells of what the engine could do at best."""
_ERROR = re.compile(r"^\W*((?:\w+\.)*\w*(?:Error|Exception|Timeout)\b[^\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be measured."""

    engines: Sequence[Engine]
    systems: Sequence[System]
    workloads: Sequence[str]
    sizes: Sizes

    def system(self, cell: Cell) -> System | None:
        """Return the system of a cell; the limit has none."""
        return next((system for system in self.systems if system.name == cell.system), None)


def cells(request: Request, engine: Engine) -> list[Cell]:
    """Return all cells of an engine; a limit that covers several variants is one of them for each."""
    found: list[Cell] = []
    for turn in range(1, request.sizes.rounds + 1):
        for name in request.workloads:
            workload = WORKLOADS[name]
            wanted = [
                (system.name, variant)
                for system in request.systems
                if system.engine == engine
                for variant in workload.variants(system, request.sizes)
            ]
            wanted += [(LIMIT, variant) for variant in workload.bounds if wanted]
            found += [
                Cell(engine=engine, system=system, workload=name, variant=variant, round=turn)
                for system, variant in wanted
            ]
    return found


def forget(request: Request, results: Results) -> None:
    """Remove the outcomes of everything that is asked for."""
    for engine in request.engines:
        for cell in cells(request, engine):
            results.forget(cell)


def run(request: Request, results: Results, *, seed: int) -> list[str]:
    """Measure what is not measured yet; return what went wrong with our own runs."""
    todo = {
        engine: [cell for cell in cells(request, engine) if not results.finished(cell)]
        for engine in ENGINES
        if engine in request.engines
    }
    left = sum(map(len, todo.values()))
    _say(f"{left} cells; order by seed {seed}")
    began = time.perf_counter()
    _make_environments(request.systems, results)
    broken: list[str] = []
    for engine, found in todo.items():
        # Shuffled within a round, so that no system always has the warm, or the busy, minute.
        random.Random(seed).shuffle(found)
        found.sort(key=lambda cell: cell.round)
        if not found:
            continue
        with opened(engine) as databases:
            results.note({engine: databases.facts})
            for cell in found:
                left -= 1
                broken += _measured(request, cell, databases, results, left=left)
    _say(f"all of it took {(time.perf_counter() - began) / 60:.0f} minutes")
    return broken


def _make_environments(systems: Iterable[System], results: Results) -> None:
    versions: dict[str, dict[str, str]] = results.facts().get("versions", {})
    for system in systems:
        peer.python(system)
        versions[system.name] = peer.versions(system)
    results.note({"machine": machine(), "versions": versions})


def _measured(
    request: Request, cell: Cell, databases: Databases, results: Results, *, left: int
) -> Iterable[str]:
    """Measure one cell and save what came of it; yield what went wrong if it is ours."""
    if results.finished(cell):
        # The limits of several variants are measured at once.
        return
    began = time.perf_counter()
    outcomes = _outcomes(request, cell, databases)
    took = time.perf_counter() - began
    for each, outcome in outcomes.items():
        wrong = outcome.failed or ", ".join(f"{n} {what}" for what, n in outcome.wrong.items())
        if wrong and (system := request.system(each)) is not None and system.ours:
            outcome = replace(outcome, failed=wrong)  # noqa: PLW2901 - it is judged
            yield f"{each}: {wrong}"
        results.save(each, replace(outcome, seconds=took))
        _say(f"{took:6.1f} s  {each}: {_told(outcome)}  ({left} cells left)")


def _outcomes(request: Request, cell: Cell, databases: Databases) -> dict[Cell, Outcome]:
    workload = WORKLOADS[cell.workload]
    try:
        if (system := request.system(cell)) is not None:
            return {cell: workload.run(Bench(system, databases, request.sizes), cell.variant)}
        found = workload.limit(databases.limits, request.sizes)
        return {replace(cell, variant=variant): outcome for variant, outcome in found.items()}
    except Unsupported as lack:
        return {cell: Outcome(lacks=str(lack))}
    except Exception:  # noqa: BLE001 - one cell that breaks down must not end the run
        words = traceback.format_exc()
        _say(words)
        return {cell: Outcome(failed=brief(words))}


def brief(text: str) -> str:
    """Return the last error of a process's last words."""
    return next(reversed(_ERROR.findall(text)), "no answer")


def _told(outcome: Outcome) -> str:
    if outcome.lacks:
        return outcome.lacks
    if outcome.failed:
        return f"FAILED: {outcome.failed}"
    figures = [f"{name} {value:,.4g}" for name, value in outcome.figures.items()]
    figures += [f"{what.upper()} {n}" for what, n in outcome.wrong.items()]
    return "  ".join([*figures, outcome.note]).rstrip()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
