"""What drawings share: axes and texts as SVG, written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_SPAN = 20.0
"""From here on, the smallest of the figures could not be told from none."""


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


def text(x: float, y: float, words: str, kind: str, *, anchor: str = "start") -> str:
    """Return a text at a place."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
