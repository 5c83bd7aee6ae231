"""Lengths of time, as people write them: `90`, `timedelta(minutes=5)`, `"15m"`, `"1h30m"`."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from duetime.errors import InvalidDuration
from duetime.model.instants import MILLISECOND, SECOND, Micros
from duetime.model.shown import shown

if TYPE_CHECKING:
    from fractions import Fraction

Duration: TypeAlias = float | int | timedelta | str

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
WEEK: Micros = 7 * DAY
LONGEST: Micros = 36_525 * DAY

_EXAMPLES = "90 (seconds), timedelta(minutes=5), '15m' or '1h30m'"
_LONGEST_TEXT = 200
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_SIZES: dict[str, Micros] = {
    "week": WEEK,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": MILLISECOND,
    "microsecond": 1,
}
_SHORT = ("w", "d", "h", "m", "s", "ms", "us")
_UNITS: dict[str, Micros] = {
    **_SIZES,
    **{f"{name}s": size for name, size in _SIZES.items()},
    **dict(zip(_SHORT, _SIZES.values(), strict=True)),
    "min": MINUTE,
    "sec": SECOND,
}


def parse(value: Duration, *, what: str) -> Micros:
    """Turn a duration into whole microseconds; raise `InvalidDuration` naming `what` for anything else."""
    if isinstance(value, str):
        micros = _parse_text(value, what)
    elif isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse(what, f"cannot be {shown(value)}")
    elif isinstance(value, float) and not math.isfinite(value):
        _refuse(what, f"must be finite, not {value}")
    else:
        # Judged before it is multiplied: a number that is far too long must not become work.
        micros = round(value * SECOND) if abs(value) <= LONGEST else LONGEST + 1
    if micros < 0 or (isinstance(value, (int, float)) and value < 0):
        _refuse(what, f"must not be negative, not {shown(value)}")
    if micros > LONGEST:
        _refuse(what, f"must not be longer than 100 years, not {shown(value)}")
    return micros


def describe(micros: Micros) -> str:
    """Say a duration in English, in a form that `parse` reads back: `1 hour 30 minutes`."""
    parts: list[str] = []
    for name, size in _SIZES.items():
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(parts) or "0 seconds"


def _parse_text(text: str, what: str) -> Micros:
    if len(text) > _LONGEST_TEXT:
        _refuse(what, f"is a text of {len(text)} characters")
    position, previous = 0, WEEK + 1
    total: Fraction | int = 0
    while match := _PART.match(text, position):
        number, unit = match.groups()
        size = _UNITS.get(unit)
        if size is None:
            _refuse(what, f"has the unknown unit {unit!r} in {text!r}; units are {', '.join(_SHORT)}")
        if size >= previous:
            _refuse(what, f"{text!r} must name each unit once, the largest first")
        total += _exact(number) * size
        position, previous = match.end(), size
    if position != len(text) or not text:
        _refuse(what, f"cannot be {text!r}; a text is numbers with units ({', '.join(_SHORT)})")
    return round(total)


def _exact(number: str) -> Fraction | int:
    """Read a decimal number without rounding it; whole ones, which most are, need no fractions."""
    if "." not in number:
        return int(number)
    from fractions import Fraction

    return Fraction(number)


def _refuse(what: str, problem: str) -> NoReturn:
    raise InvalidDuration(f"{what} {problem}; use for example {_EXAMPLES}")
