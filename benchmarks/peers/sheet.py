"""The outcomes of one workload on one engine in rows, as a table in Markdown and as bars in SVG."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.drawing import Scale, scale, text
from benchmarks.peers.catalogue import System
from benchmarks.peers.cells import Cell, Outcome
from benchmarks.peers.runner import LIMIT
from benchmarks.peers.workloads import Column, Workload

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


def gathered(
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
        rows.append(row(LIMIT, "driver alone"))
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


def markdown(sheet: Sheet) -> str:
    """Return the table; the best system of each column stands out."""
    head = ["", *(f"{column.title}, {column.unit}" for column in sheet.columns), "notes"]
    rules = ["---", *("---:" for _ in sheet.columns), "---"]
    return "".join(_line(cells) for cells in (head, rules, *(_cells(sheet, row) for row in sheet.rows)))


def _cells(sheet: Sheet, row: Row) -> list[str]:
    title = f"**{row.title}**" if row.ours else f"*{row.title}*" if row.limit else row.title
    return [title, *(_cell(sheet, row, n) for n in range(len(sheet.columns))), row.notes]


def _cell(sheet: Sheet, row: Row, column: int) -> str:
    value, worse = row.values[column], row.worse[column]
    if value is None:
        return "" if row.limit else "-"
    shown = number(value)
    if value == sheet.best(column) and not row.limit:
        shown = f"**{shown}**"
    return shown if worse is None else f"{shown} ({worse:.2f} x)"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


_WIDTH = 760
_MARGIN = 20
_NAMES = 205
"""Room for the names of systems."""
_FIGURES = 90
"""Room for a figure behind its bar."""
_BAR = 18
_STEP = 26
_HEAD = 46
_PANEL_HEAD = 34
_PANEL_FOOT = 30
_STYLE = """
.page { fill: #ffffff; stroke: #d8dee4 }
text { font-family: system-ui, sans-serif; font-size: 14px; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.panel { font-weight: 600 }
.tick, .none { font-size: 12px; fill: #57606a }
.grid { stroke: #d8dee4 }
.peer { fill: #8c9bb0 }
.ours { fill: #1a7f5a }
.limit { fill: none; stroke: #57606a; stroke-dasharray: 4 3 }
text.ours { fill: #116149; font-weight: 600 }
text.limit { font-style: italic; fill: #57606a; stroke: none }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #30363d }
  text { fill: #e6edf3 }
  .tick, .none, text.limit { fill: #9aa5b1 }
  .grid { stroke: #30363d }
  .peer { fill: #5f7086 }
  .ours { fill: #3fb68b }
  .limit { stroke: #9aa5b1 }
  text.ours { fill: #56d4a5 }
}
"""


def svg(sheet: Sheet, *, title: str) -> str:
    """Return the picture: one group of bars for each column that is plotted."""
    plotted = [n for n, column in enumerate(sheet.columns) if column.plotted]
    panel = _PANEL_HEAD + len(sheet.rows) * _STEP + _PANEL_FOOT
    height = _HEAD + len(plotted) * panel + _MARGIN // 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
        text(_MARGIN, 32, title, "title"),
    ]
    for place, column in enumerate(plotted):
        lines += _panel(sheet, column, top=_HEAD + place * panel)
    return "\n".join([*lines, "</svg>", ""])


def _panel(sheet: Sheet, column: int, *, top: int) -> Iterator[str]:
    about = sheet.columns[column]
    shown = [row for row in sheet.rows if not row.limit or row.values[column] is not None]
    rows = sorted(shown, key=lambda row: _bar_rank(row, column, more=about.better == "more"))
    known = [value for row in rows if (value := row.values[column]) is not None]
    left = _MARGIN + _NAMES
    axis = scale(known or [0.0], _WIDTH - left - _FIGURES - _MARGIN)
    hint = f"{about.unit}, {about.better} is better" + (", powers of ten" if axis.logarithmic else "")
    yield text(_MARGIN, top + 18, about.title, "panel")
    yield text(left, top + 18, hint, "tick")
    first = top + _PANEL_HEAD
    bottom = first + len(rows) * _STEP
    for tick in axis.ticks():
        x = left + axis(tick)
        yield f'<line class="grid" x1="{x:.1f}" y1="{first - 4}" x2="{x:.1f}" y2="{bottom}"/>'
        yield text(x, bottom + 14, f"{tick:,.10g}", "tick", anchor="middle")
    for n, row in enumerate(rows):
        yield from _bar(row, row.values[column], axis, left=left, top=first + n * _STEP)


def _bar(row: Row, value: float | None, axis: Scale, *, left: int, top: int) -> Iterator[str]:
    kind = "ours" if row.ours else "limit" if row.limit else "peer"
    base = top + _BAR - 4
    yield text(left - 10, base, row.title, kind if kind != "peer" else "name", anchor="end")
    if value is None:
        yield text(left + 6, base, "-", "none")
        return
    length = max(axis(value), 1.0)
    yield f'<rect class="{kind}" x="{left}" y="{top}" width="{length:.1f}" height="{_BAR}" rx="2"/>'
    yield text(left + length + 8, base, number(value), kind if kind != "peer" else "name")


def _bar_rank(row: Row, column: int, *, more: bool) -> tuple[bool, bool, float]:
    value = row.values[column]
    if value is None:
        return row.limit, True, 0.0
    return row.limit, False, -value if more else value
