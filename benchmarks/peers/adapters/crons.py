"""Schedules of some seconds as cron rules, for systems that have nothing finer."""

from __future__ import annotations

from benchmarks.peers.adapters.base import Plan


def starts(plan: Plan) -> list[float]:
    """Return when each schedule comes first: at a full second."""
    return [float(int(start)) for start in plan.starts()]


def seconds(plan: Plan) -> list[str]:
    """Return the field of each rule that tells the seconds; the period must divide a minute."""
    period = int(plan.period)
    return [",".join(map(str, range(int(start) % period, 60, period))) for start in plan.starts()]
