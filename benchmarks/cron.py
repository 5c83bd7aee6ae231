"""How long the next time of a cron rule takes to find; no database has a part in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from benchmarks.measures import Figure
from benchmarks.runner import Result, Row
from duetime import cron

NAME = "cron"

_CALLS = 5_000
_REPEATS = 5
_START = datetime(2026, 1, 1, tzinfo=UTC)
_END = _START + timedelta(days=3_652)
_BARE = "bare datetime + timedelta"
_RULES = (
    ("* * * * *", "UTC"),
    ("*/5 9-17 * * MON-FRI", "Europe/Riga"),
    ("0 3 * * *", "Europe/Berlin"),
    ("0 0 1 * *", "America/New_York"),
    ("0 9 * * FRI#2", "UTC"),
    ("0 0 L * *", "UTC"),
)

Step = Callable[[datetime], datetime | None]


def measure() -> Result:
    """Walk each rule, and beside it the bare sum and an implementation by other hands."""
    bare = _micros(_sum)
    rows: list[Row] = []
    for expression, tz in _RULES:
        ours = _micros(cron(expression, tz=tz).next_after)
        theirs = _micros(_cronsim(expression, tz))
        rows.append(_row(f"next_after, {expression}, {tz}", ours, bare))
        rows.append(_row("  by cronsim", theirs, bare))
    return Result(store="no database", facts={"calls": f"{_CALLS:,}"}, rows=tuple(rows))


def _micros(step: Step) -> float:
    """Return microseconds for one step, at its best."""
    return min(_walk(step) for _ in range(_REPEATS)) / _CALLS * 1e6


def _walk(step: Step) -> float:
    moment = _START
    began = time.perf_counter()
    for _ in range(_CALLS):
        # Rare rules begin again after ten years: no one asks about the next century.
        following = step(moment)
        moment = _START if following is None or following > _END else following
    return time.perf_counter() - began


def _sum(moment: datetime) -> datetime:
    return moment + timedelta(minutes=1)


def _cronsim(expression: str, tz: str) -> Step:
    # It keeps its own place, and reads the expression only once, as we do.
    times = CronSim(expression, _START.astimezone(ZoneInfo(tz)))
    return lambda _moment: next(times)


def _row(title: str, value: float, bare: float) -> Row:
    figure = Figure(key=title, title=title, unit="us", better="less", limit=_BARE, flat=False)
    ratio = value / bare
    return Row(store=NAME, figure=figure, value=value, limit=bare, ratio=ratio, filled=value, worse=1.0)
