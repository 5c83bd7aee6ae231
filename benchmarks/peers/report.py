"""The outcomes for people: tables on the terminal, and a page with tables and plots in the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.peers import sheet
from benchmarks.peers.catalogue import ENGINES, SYSTEMS, TITLES, System
from benchmarks.peers.cells import Cell, Outcome, Results
from benchmarks.peers.sheet import Key, Sheet, gathered, medians
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.workloads import WORKLOADS

_TEMPLATE = Path(__file__).with_name("page.md")
_PAGE = "peers.md"
_FOLDER = "peers"
_FIGURES = "figures.json"
_SUMMED_UP = (
    ("enqueue", "at_once", "rate", "enqueue, 32 at once, jobs/s"),
    ("drain", "one", "rate", "drain, one process, jobs/s"),
    ("start", "idle", "p50", "enqueue to start, p50, ms"),
    ("lateness", "spread", "p99", "lateness, p99, ms"),
    ("schedules", "phase", "p99", "schedules in phase, p99, ms"),
    ("idle", "default", "memory", "memory of an idle worker, MB"),
)
"""The figures of the table that a reader sees first: workload, variant and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All that was measured in a run, and what it depends on."""

    facts: Mapping[str, Any]
    sizes: Mapping[str, Any]
    cells: Sequence[tuple[Cell, Outcome]]

    @classmethod
    def now(cls, results: Results, sizes: Sizes) -> Measured:
        """Take the outcomes in a folder of results."""
        return cls(facts=results.facts(), sizes=asdict(sizes), cells=list(results))

    @classmethod
    def published(cls, folder: Path) -> Measured:
        """Take the figures that the documentation shows."""
        whole = json.loads((folder / _FOLDER / _FIGURES).read_text(encoding="utf-8"))
        names = [field.name for field in fields(Cell)]
        cells = [
            (Cell(**{name: each.pop(name) for name in names}), Outcome(**each)) for each in whole["cells"]
        ]
        return cls(facts=whole["facts"], sizes=whole["sizes"], cells=cells)

    def as_json(self) -> dict[str, Any]:
        """Return all of it for a file."""
        cells = [{**asdict(cell), **asdict(outcome)} for cell, outcome in self.cells]
        return {"facts": self.facts, "sizes": self.sizes, "cells": cells}


def tables(measured: Measured) -> str:
    """Return all tables, for a terminal."""
    parts = [_circumstances(measured)]
    for engine, each in _sheets(medians(measured.cells)):
        parts.append(f"{TITLES[engine]}: {each.workload.title}\n\n{sheet.markdown(each)}")
    return "\n".join(parts)


def write(measured: Measured, folder: Path) -> Iterator[Path]:
    """Write the page, its plots and all outcomes into a folder."""
    pictures = folder / _FOLDER
    pictures.mkdir(parents=True, exist_ok=True)
    texts = {
        pictures / _picture(engine, each): sheet.svg(each, title=_title(engine, each))
        for engine, each in _sheets(medians(measured.cells))
    }
    texts[pictures / _FIGURES] = json.dumps(measured.as_json(), indent=1) + "\n"
    texts[folder / _PAGE] = page(measured)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        yield path


def page(measured: Measured) -> str:
    """Return the page's text."""
    found = medians(measured.cells)
    parts = {
        "{{summary}}": _summary(found),
        "{{measured}}": _circumstances(measured),
        "{{workloads}}": _meanings(),
        "{{systems}}": "".join(map(_system, SYSTEMS)),
        "{{results}}": "".join(_sections(found)),
        "{{versions}}": _versions(measured.facts.get("versions", {})),
    }
    text = _TEMPLATE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(f"{mark}\n", part)
    return text.rstrip("\n") + "\n"


def _summary(found: Mapping[Key, Outcome]) -> str:
    """Return Duetime's figures next to the best ones of others, for the engines that others run on, too."""
    engines = [
        engine
        for engine in ENGINES
        if any(system.engine == engine and not system.ours for system in SYSTEMS)
        and any(key[0] == engine for key in found)
    ]
    rows = [
        [title, *(_compared(found, engine, workload, variant, key) for engine in engines)]
        for workload, variant, key, title in _SUMMED_UP
    ]
    head = ["", *(TITLES[engine] for engine in engines)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---", *["---"] * len(engines)], *rows))


def _compared(found: Mapping[Key, Outcome], engine: str, workload: str, variant: str, key: str) -> str:
    each = gathered(found, engine=engine, workload=WORKLOADS[workload], systems=SYSTEMS)
    columns = [(column.variant, column.key) for column in each.columns]
    if (variant, key) not in columns:
        return ""
    place = columns.index((variant, key))
    pick = max if each.columns[place].better == "more" else min
    shown: list[str] = []
    for ours in (True, False):
        rows = [row for row in each.rows if row.ours is ours and not row.limit]
        known = [
            (value, row.title) for row in rows if (value := row.values[place]) is not None and value >= 0
        ]
        if known:
            value, title = pick(known)
            shown.append(f"**{sheet.number(value)}**" if ours else f"({title} {sheet.number(value)})")
    return " ".join(shown)


def _sections(found: Mapping[Key, Outcome]) -> Iterator[str]:
    last = ""
    for engine, each in _sheets(found):
        if engine != last:
            yield f"\n### {TITLES[engine]}\n"
        last = engine
        yield f"\n#### {each.workload.title} on {TITLES[engine]}\n\n"
        yield f"![{_title(engine, each)}]({_FOLDER}/{_picture(engine, each)})\n\n"
        yield sheet.markdown(each)


def _sheets(found: Mapping[Key, Outcome]) -> Iterator[tuple[str, Sheet]]:
    for engine in ENGINES:
        for workload in WORKLOADS.values():
            each = gathered(found, engine=engine, workload=workload, systems=SYSTEMS)
            if each.rows:
                yield engine, each


def _title(engine: str, each: Sheet) -> str:
    return f"{each.workload.title}, {TITLES[engine]}"


def _picture(engine: str, each: Sheet) -> str:
    return f"{each.workload.name}-{engine}.svg"


def _meanings() -> str:
    rows = (f"| {workload.title} | {workload.meaning} |\n" for workload in WORKLOADS.values())
    return "".join(("| Workload | What is measured |\n", "|---|---|\n", *rows))


def _system(system: System) -> str:
    pins = "".join(f", {pin}" for pin in system.requirements)
    notes = f" {system.notes}" if system.notes else ""
    name = f"**{system.title}, {TITLES[system.engine]}** (`{system.name}`{pins})"
    return f"- {name}: {system.configuration}.{notes}\n"


def _circumstances(measured: Measured) -> str:
    facts, sizes = measured.facts, measured.sizes
    machine: dict[str, Any] = facts.get("machine", {})
    where = ", ".join(str(machine[name]) for name in ("processor", "system") if machine.get(name))
    engines = "; ".join(facts[engine] for engine in ENGINES if engine in facts)
    return (
        f"\n{where}, {machine.get('cores')} cores, Python {machine.get('python')}; {engines}.\n"
        f"A {sizes['name']} run: {sizes['drain']:,} jobs to drain, {sizes['one_offs']:,} one-off jobs over "
        f"{sizes['span']:g} s, {sizes['burst']:,} in the burst, {sizes['future']:,} for later, "
        f"{sizes['in_phase']:,} schedules in phase and {sizes['spread']:,} spread, each every {sizes['period']:g} s; "
        f"idle for {sizes['idle']:g} s.\n\n"
    )


def _versions(versions: Mapping[str, Mapping[str, str]]) -> str:
    lines = (
        f"- {name}: {', '.join(f'{package} {version}' for package, version in found.items())}\n"
        for name, found in versions.items()
    )
    return "".join(lines)
