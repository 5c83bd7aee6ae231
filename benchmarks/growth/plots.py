"""Lines over an axis, as SVG written by hand: no library, and readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benchmarks.drawing import Scale, scale, text

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 84, 56
_STYLE = """
.page { fill: #ffffff; stroke: #d8dee4 }
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.tick { font-size: 12px; fill: #57606a }
.grid { stroke: #d8dee4 }
.line { fill: none; stroke-width: 2.5 }
.a { stroke: #1a7f5a } .b { stroke: #b35900; stroke-dasharray: 7 4 }
.c { stroke: #3b6fb6; stroke-dasharray: 2 4 } .d { stroke: #8a4fa3; stroke-dasharray: 9 3 2 3 }
circle.a { fill: #1a7f5a } circle.b { fill: #b35900 } circle.c { fill: #3b6fb6 } circle.d { fill: #8a4fa3 }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #30363d }
  text { fill: #e6edf3 }
  .tick { fill: #9aa5b1 }
  .grid { stroke: #30363d }
  .a { stroke: #3fb68b } .b { stroke: #e0974a } .c { stroke: #7aa7e8 } .d { stroke: #c08ad8 }
  circle.a { fill: #3fb68b } circle.b { fill: #e0974a } circle.c { fill: #7aa7e8 } circle.d { fill: #c08ad8 }
}
"""
_KINDS = "abcd"
"""Lines differ in colour and in their dashes: colour alone is not seen by everybody."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, from point to point."""

    title: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture: lines over the same axes."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


def svg(plot: Plot) -> str:
    """Return the picture."""
    across = scale([x for line in plot.lines for x, _ in line.points], _WIDTH - _LEFT - _RIGHT)
    up = scale([y for line in plot.lines for _, y in line.points], _HEIGHT - _TOP - _BOTTOM)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(plot.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>',
        text(20, 32, f"{plot.title} ({plot.y})", "title"),
        *_grid(plot, across, up),
        *_legend(plot.lines),
    ]
    for kind, line in zip(_KINDS, plot.lines, strict=False):
        lines += _drawn(line, kind, across, up)
    return "\n".join([*lines, "</svg>", ""])


def _grid(plot: Plot, across: Scale, up: Scale) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for tick in up.ticks():
        y = bottom - up(tick)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        yield text(_LEFT - 10, round(y + 4), _short(tick), "tick", anchor="end")
    # No power of ten is nothing; it is drawn where the axis begins.
    none = across.logarithmic and any(x == 0 for line in plot.lines for x, _ in line.points)
    for tick in across.ticks():
        x = _LEFT + across(tick)
        shown = 0.0 if none and tick == across.low else tick
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield text(x, bottom + 18, _short(shown), "tick", anchor="middle")
    scales = [name for name, each in (("across", across), ("up", up)) if each.logarithmic]
    powers = f"; powers of ten {' and '.join(scales)}" if scales else ""
    yield text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 16, f"{plot.x}{powers}", "tick", anchor="middle")


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    x = float(_LEFT)
    for kind, line in zip(_KINDS, lines, strict=False):
        yield f'<path class="line {kind}" d="M{x:.1f} 58 h28"/>'
        yield text(x + 34, 62, line.title, "legend")
        x += 54 + 7.2 * len(line.title)


def _drawn(line: Line, kind: str, across: Scale, up: Scale) -> Iterator[str]:
    places = [(_LEFT + across(x), _HEIGHT - _BOTTOM - up(y)) for x, y in line.points]
    path = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path class="line {kind}" d="M{path}"/>'
    for x, y in places:
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
