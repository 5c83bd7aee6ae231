"""Triggers: the pure rules that say when something is due."""

from __future__ import annotations

from duetime.model.triggers.at import At, at
from duetime.model.triggers.at_most import AtMost
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.between import Between
from duetime.model.triggers.checks import check_comes, check_pace
from duetime.model.triggers.cron import Cron, cron
from duetime.model.triggers.every import Every, every
from duetime.model.triggers.intersection import Intersection
from duetime.model.triggers.jitter import Jitter
from duetime.model.triggers.minus import Except
from duetime.model.triggers.notes import note
from duetime.model.triggers.rrule import RRule, rrule
from duetime.model.triggers.specs import from_spec
from duetime.model.triggers.steps import Steps
from duetime.model.triggers.union import Union

__all__ = [
    "At",
    "AtMost",
    "Between",
    "Cron",
    "Every",
    "Except",
    "Intersection",
    "Jitter",
    "RRule",
    "Steps",
    "Trigger",
    "Union",
    "at",
    "check_comes",
    "check_pace",
    "cron",
    "every",
    "from_spec",
    "note",
    "rrule",
]
