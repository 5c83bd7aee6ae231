"""Calendars: the pure rules that say when a trigger must not come."""

from __future__ import annotations

from duetime.model.calendars.base import Calendar
from duetime.model.calendars.blackouts import Span, Window
from duetime.model.calendars.holidays import Holidays
from duetime.model.calendars.joined import Joined
from duetime.model.calendars.making import blackout, days_off, holidays, weekdays, weekends
from duetime.model.calendars.specs import from_spec
from duetime.model.calendars.weekdays import Weekdays

__all__ = [
    "Calendar",
    "Holidays",
    "Joined",
    "Span",
    "Weekdays",
    "Window",
    "blackout",
    "days_off",
    "from_spec",
    "holidays",
    "weekdays",
    "weekends",
]
