"""The outcomes for people: tables on the terminal, and a page with tables and plots in the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers import sheet
from benchmarks.peers.catalogue import ENGINES, SYSTEMS, TITLES, System
from benchmarks.peers.cells import Outcome, Results
from benchmarks.peers.sheet import Key, Sheet, gathered, medians
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.workloads import WORKLOADS

_TEMPLATE = Path(__file__).with_name("page.md")
_PAGE = "peers.md"
_FOLDER = "peers"
_FIGURES = "figures.json"
_SEEN = "\n## What we have seen\n"
_NONE = "No figures are published yet; `make bench-peers` prints them.\n"


def tables(results: Results, sizes: Sizes) -> str:
    """Return all tables, for a terminal."""
    found = medians(results)
    parts = [_measured(results, sizes)]
    for engine, each in _sheets(found):
        parts.append(f"{TITLES[engine]}: {each.workload.title}\n\n{sheet.markdown(each)}")
    return "\n".join(parts)


def write(results: Results, sizes: Sizes, folder: Path) -> Iterator[Path]:
    """Write the page, its plots and all outcomes into a folder; without any, only the page's text, around its figures."""
    found = medians(results)
    text = page(results, sizes)
    target = folder / _PAGE
    if not found:
        if target.exists():
            text = text.partition(_SEEN)[0] + "".join(target.read_text(encoding="utf-8").partition(_SEEN)[1:])
        target.write_text(text, encoding="utf-8")
        yield target
        return
    pictures = folder / _FOLDER
    pictures.mkdir(parents=True, exist_ok=True)
    for engine, each in _sheets(found):
        picture = pictures / _picture(engine, each)
        picture.write_text(sheet.svg(each, title=_title(engine, each)), encoding="utf-8")
        yield picture
    whole = {
        "facts": results.facts(),
        "sizes": asdict(sizes),
        "cells": [{**asdict(cell), **asdict(outcome)} for cell, outcome in results],
    }
    figures = pictures / _FIGURES
    figures.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    yield figures
    target.write_text(text, encoding="utf-8")
    yield target


def page(results: Results, sizes: Sizes) -> str:
    """Return the page's text."""
    found = medians(results)
    parts = {
        "{{workloads}}": _meanings(),
        "{{systems}}": "".join(map(_system, SYSTEMS)),
        "{{measured}}": _measured(results, sizes) if found else _NONE,
        "{{results}}": "".join(_sections(found)),
        "{{versions}}": _versions(results.facts().get("versions", {})),
    }
    text = _TEMPLATE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(f"{mark}\n", part)
    return text.rstrip("\n") + "\n"


def _sections(found: Mapping[Key, Outcome]) -> Iterator[str]:
    last = ""
    for engine, each in _sheets(found):
        if engine != last:
            yield f"\n## {TITLES[engine]}\n"
        last = engine
        yield f"\n### {each.workload.title} on {TITLES[engine]}\n\n"
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


def _measured(results: Results, sizes: Sizes) -> str:
    facts = results.facts()
    machine: dict[str, Any] = facts.get("machine", {})
    where = ", ".join(str(machine[name]) for name in ("processor", "system") if machine.get(name))
    engines = "; ".join(facts[engine] for engine in ENGINES if engine in facts)
    return (
        f"{where}, {machine.get('cores')} cores, Python {machine.get('python')}; {engines}.\n"
        f"A {sizes.name} run: {sizes.drain:,} jobs to drain, {sizes.one_offs:,} one-off jobs over {sizes.span:g} s, "
        f"{sizes.burst:,} in the burst, {sizes.future:,} for later, {sizes.in_phase:,} schedules in phase and "
        f"{sizes.spread:,} spread, each every {sizes.period:g} s; idle for {sizes.idle:g} s.\n"
    )


def _versions(versions: Mapping[str, Mapping[str, str]]) -> str:
    lines = (
        f"- {name}: {', '.join(f'{package} {version}' for package, version in found.items())}\n"
        for name, found in versions.items()
    )
    return "".join(lines) or _NONE
