"""The outcomes of one workload on one engine, put in rows: what tables and plots are made from."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.cells import Cell, Outcome
from benchmarks.peers.runner import LIMIT
from benchmarks.peers.systems import System
from benchmarks.peers.workloads.base import Column, Workload

Key = tuple[str, str, str, str]
"""Engine, system, workload and variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system, or the limit."""

    title: str
    values: tuple[float | None, ...]
    """One a column."""
    worse: tuple[float | None, ...]
    """How many times worse than the figure that a column is held against."""
    notes: str
    ours: bool = False
    limit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Rows in the order of the first column, the best first; then those that were early; the limit last."""

    workload: Workload
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def best(self, column: int) -> float | None:
        """Return the best figure of all systems; to be early is not to be good."""
        found = [row.values[column] for row in self.rows if not row.limit]
        known = [value for value in found if value is not None and value >= 0]
        pick = max if self.columns[column].better == "more" else min
        return pick(known, default=None)


def medians(outcomes: Iterable[tuple[Cell, Outcome]]) -> dict[Key, Outcome]:
    """Return one outcome for each cell, whichever round it was measured in."""
    rounds: defaultdict[Key, list[Outcome]] = defaultdict(list)
    for cell, outcome in outcomes:
        rounds[cell.engine, cell.system, cell.workload, cell.variant].append(outcome)
    return {key: _median(found) for key, found in rounds.items()}


def sheet(
    found: Mapping[Key, Outcome], *, engine: str, workload: Workload, systems: Sequence[System]
) -> Sheet:
    """Gather the rows of one table."""
    seen = {variant for where, _, name, variant in found if (where, name) == (engine, workload.name)}
    shown = {
        (variant, key)
        for (where, _, name, variant), outcome in found.items()
        for key in outcome.figures
        if (where, name) == (engine, workload.name)
    }
    columns = tuple(column for column in workload.columns if (column.variant, column.key) in shown)

    def row(name: str, title: str, *, ours: bool = False) -> Row:
        outcomes = {variant: found.get((engine, name, workload.name, variant)) for variant in seen}
        values = tuple(_value(outcomes[column.variant], column.key) for column in columns)
        return Row(
            title=title,
            values=values,
            worse=tuple(
                _worse(found, (engine, name), column, value)
                for column, value in zip(columns, values, strict=True)
            ),
            notes=_notes(workload, outcomes),
            ours=ours,
            limit=name == LIMIT,
        )

    measured = {name for where, name, what, _ in found if (where, what) == (engine, workload.name)}
    rows = [row(system.name, system.title, ours=system.ours) for system in systems if system.name in measured]
    if LIMIT in measured:
        rows.append(row(LIMIT, "limit"))
    return Sheet(
        workload=workload, columns=columns, rows=tuple(sorted(rows, key=lambda row: _rank(row, columns)))
    )


def number(value: float) -> str:
    """Show three digits, and all before the point."""
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3f}"


def _median(outcomes: Sequence[Outcome]) -> Outcome:
    keys = {key for outcome in outcomes for key in outcome.figures}
    known = {key: [each.figures[key] for each in outcomes if key in each.figures] for key in keys}
    kinds = {kind for outcome in outcomes for kind in outcome.wrong}
    return Outcome(
        figures={key: statistics.median(values) for key, values in known.items()},
        wrong={kind: max(each.wrong.get(kind, 0) for each in outcomes) for kind in sorted(kinds)},
        note=next((each.note for each in outcomes if each.note), ""),
        lacks=next((each.lacks for each in outcomes if each.lacks), ""),
        failed=next((each.failed for each in outcomes if each.failed), ""),
    )


def _value(outcome: Outcome | None, key: str) -> float | None:
    return None if outcome is None else outcome.figures.get(key)


def _worse(
    found: Mapping[Key, Outcome], where: tuple[str, str], column: Column, value: float | None
) -> float | None:
    if column.against is None or not value:
        return None
    workload, variant, key = column.against
    other = _value(found.get((*where, workload, variant)), key)
    if not other:
        return None
    return other / value if column.better == "more" else value / other


def _notes(workload: Workload, outcomes: Mapping[str, Outcome | None]) -> str:
    said: list[str] = []
    for column in workload.columns:
        outcome = outcomes.get(column.variant)
        if outcome is None:
            continue
        parts = [f"{count:,} {kind}" for kind, count in outcome.wrong.items()]
        parts += [text for text in (outcome.note, outcome.lacks) if text]
        parts += ["failed"] if outcome.failed else []
        text = ", ".join(parts)
        if text and len(outcomes) > 1 and not outcome.note.startswith("bare"):
            text = f"{column.title.partition(', ')[0]}: {text}"
        if text and text not in said:
            said.append(text)
    return "; ".join(said)


def _rank(row: Row, columns: Sequence[Column]) -> tuple[bool, bool, float]:
    value = row.values[0] if row.values else None
    if value is None or value < 0:
        return row.limit, True, 0.0
    return row.limit, False, -value if columns[0].better == "more" else value
