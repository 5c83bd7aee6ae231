"""Calendars to take from triggers: holidays, weekends, business days and blackout windows."""

from __future__ import annotations

from duetime.model.triggers.calendars import Calendar, blackout, days_off, holidays, weekdays, weekends

__all__ = ["Calendar", "blackout", "days_off", "holidays", "weekdays", "weekends"]
