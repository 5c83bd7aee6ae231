"""The load to come, told from triggers alone."""

from __future__ import annotations

from duetime.model.forecast.figures import BusyMinute, Collision, busiest, by_hour, collisions
from duetime.model.forecast.looking import Group, Plan, Survey, survey
from duetime.model.forecast.spreading import JITTER, Peaks, peaks

__all__ = [
    "JITTER",
    "BusyMinute",
    "Collision",
    "Group",
    "Peaks",
    "Plan",
    "Survey",
    "busiest",
    "by_hour",
    "collisions",
    "peaks",
    "survey",
]
