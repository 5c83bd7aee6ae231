"""A heat map in plain characters: a line for each day, a place for each hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime

_NONE = "."
_SHADES = ":-=+*#@"
_HOURS = range(24)
_LABELS = range(0, 24, 3)


def heat_map(hours: Iterable[tuple[datetime, int]]) -> Iterator[str]:
    """Yield the lines of the map, with the sum of each day, and the legend; hours that are not given stay blank."""
    days: dict[date, dict[int, int]] = {}
    for begins, jobs in hours:
        # Where clocks are set back, an hour of the wall clock comes twice.
        day = days.setdefault(begins.date(), {})
        day[begins.hour] = day.get(begins.hour, 0) + jobs
    most = max(jobs for day in days.values() for jobs in day.values())
    step = max(1, -(-most // len(_SHADES)))
    yield f"{'':16}{'    '.join(f'{hour:02}' for hour in _LABELS)}"
    for number, day in sorted(days.items()):
        shades = "".join(_shade(day.get(hour), step) * 2 for hour in _HOURS)
        yield f"{number:%a %Y-%m-%d}  {shades}  {sum(day.values()):,}"
    yield f"{'':16}{_legend(step, most)}"


def _shade(jobs: int | None, step: int) -> str:
    if jobs is None:
        return " "
    return _SHADES[(jobs - 1) // step] if jobs else _NONE


def _legend(step: int, most: int) -> str:
    ranges = [f"{_NONE} none"]
    for number, shade in enumerate(_SHADES):
        low, high = number * step + 1, (number + 1) * step
        if low <= most:
            ranges.append(f"{shade} {low:,}" if low == high else f"{shade} {low:,} to {high:,}")
    return "jobs an hour: " + ", ".join(ranges)
