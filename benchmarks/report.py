"""The outcome for people and for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measures import Figure
from benchmarks.runner import FLAT, Result, Row
from benchmarks.sizes import Sizes

_HEAD = ("", "Duetime", "limit", "ratio", "goal", "filled", "worse", "")


def machine() -> dict[str, Any]:
    """What the figures depend on, without anything that names this machine."""
    packages = ("duetime", "asyncpg", "asyncmy", "redis", "msgspec")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def as_json(results: Sequence[Result], sizes: Sizes) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "machine": machine(),
        "sizes": asdict(sizes),
        "stores": [
            {"store": result.store, "facts": result.facts, "figures": [_entry(row) for row in result.rows]}
            for result in results
        ],
    }


def as_table(results: Sequence[Result], sizes: Sizes) -> str:
    """Return the table for a terminal."""
    facts = machine()
    lines = [
        f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}; medians of {sizes.pairs} pairs",
        f"filled: {sizes.future:,} jobs stored for later; worse: times worse than empty, at most {FLAT}",
    ]
    for result in results:
        lines += ["", f"{result.store}: " + ", ".join(f"{k} {v}" for k, v in result.facts.items())]
        lines += _aligned([_HEAD, *(_cells(row) for row in result.rows)])
    return "\n".join(lines)


def broken(results: Iterable[Result]) -> list[Row]:
    """Return the rows that do not hold what has to hold."""
    return [row for result in results for row in result.rows if row.holds is False]


def _cells(row: Row) -> tuple[str, ...]:
    figure = row.figure
    verdict = {None: "", True: "holds", False: "DOES NOT HOLD"}[row.holds]
    if figure.reaches(row.judged, figure.goal) is False:
        verdict = f"{verdict}, goal missed".lstrip(", ")
    return (
        figure.title,
        f"{_number(row.value)} {figure.unit}",
        "" if row.limit is None else _number(row.limit),
        "" if row.limit is None else _ratio(row),
        _bound(figure),
        _number(row.filled),
        f"{row.worse:.2f} x" if figure.flat else "",
        verdict,
    )


def _ratio(row: Row) -> str:
    return f"{row.ratio:.0%}" if row.figure.better == "more" else f"{row.ratio:.2f} x"


def _bound(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    if figure.limit is None or figure.held == "value":
        return f"<= {figure.goal:g}"
    return f">= {figure.goal:.0%}" if figure.better == "more" else f"<= {figure.goal:g} x"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if n in (0, len(row) - 1) else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _entry(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.figure),
        "value": row.value,
        "limit_value": row.limit,
        "ratio": row.ratio,
        "filled_value": row.filled,
        "worse": row.worse,
        "reaches_goal": row.figure.reaches(row.judged, row.figure.goal),
        "holds": row.holds,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
