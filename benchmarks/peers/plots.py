"""A sheet as bars in SVG, written by hand: no library, and readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

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
_SPAN = 20.0
"""From here on, the smallest of the bars could not be told from none."""
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


@dataclass(frozen=True, slots=True)
class Scale:
    """From a figure to a place on the axis."""

    low: float
    high: float
    logarithmic: bool
    length: float

    def __call__(self, value: float) -> float:
        """Return how far along the axis a figure lies."""
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = value / self.high
        return share * self.length

    def ticks(self) -> list[float]:
        """Return the figures that the axis shows."""
        if self.logarithmic:
            decades = round(math.log10(self.high / self.low))
            return [self.low * 10**n for n in range(0, decades + 1, 1 + decades // 8)]
        step = 10 ** math.floor(math.log10(self.high))
        while self.high / step < 3:
            step /= 2
        return [n * step for n in range(math.floor(self.high / step) + 1)]


def scale(values: Sequence[float], length: float) -> Scale:
    """Choose an axis from zero, or by powers of ten where the figures lie far apart."""
    high = max(values)
    if high <= 0:
        return Scale(0.0, 1.0, logarithmic=False, length=length)
    least = min(value for value in values if value > 0)
    if high / least < _SPAN:
        return Scale(0.0, high, logarithmic=False, length=length)
    # The least bar needs some length too.
    low = 10 ** math.floor(math.log10(least / 1.5))
    return Scale(low, 10 ** math.ceil(math.log10(high)), logarithmic=True, length=length)


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
        _text(_MARGIN, 32, title, "title"),
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
    yield _text(_MARGIN, top + 18, about.title, "panel")
    yield _text(left, top + 18, hint, "tick")
    first = top + _PANEL_HEAD
    bottom = first + len(rows) * _STEP
    for tick in axis.ticks():
        x = left + axis(tick)
        yield f'<line class="grid" x1="{x:.1f}" y1="{first - 4}" x2="{x:.1f}" y2="{bottom}"/>'
        yield _text(x, bottom + 14, f"{tick:,.10g}", "tick", anchor="middle")
    for n, row in enumerate(rows):
        yield from _bar(row, row.values[column], axis, left=left, top=first + n * _STEP)


def _bar(row: Row, value: float | None, axis: Scale, *, left: int, top: int) -> Iterator[str]:
    kind = "ours" if row.ours else "limit" if row.limit else "peer"
    base = top + _BAR - 4
    yield _text(left - 10, base, row.title, kind if kind != "peer" else "name", anchor="end")
    if value is None:
        yield _text(left + 6, base, "-", "none")
        return
    length = max(axis(value), 1.0)
    yield f'<rect class="{kind}" x="{left}" y="{top}" width="{length:.1f}" height="{_BAR}" rx="2"/>'
    yield _text(left + length + 8, base, number(value), kind if kind != "peer" else "name")


def _rank(row: Row, column: int, *, more: bool) -> tuple[bool, bool, float]:
    value = row.values[column]
    if value is None:
        return row.limit, True, 0.0
    return row.limit, False, -value if more else value


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
