"""A sheet as bars in SVG, written by hand: no library, and readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from benchmarks.drawing import Scale, scale, text
from benchmarks.peers.sheet import Row, Sheet, number

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
    rows = sorted(shown, key=lambda row: _rank(row, column, more=about.better == "more"))
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


def _rank(row: Row, column: int, *, more: bool) -> tuple[bool, bool, float]:
    value = row.values[column]
    if value is None:
        return row.limit, True, 0.0
    return row.limit, False, -value if more else value
