"""Duetime runs your Python functions when they are due, once, however many processes are up."""

from __future__ import annotations

from duetime import calendars
from duetime.model.callbacks import Ended
from duetime.model.event import Event, EventKind
from duetime.model.limit import Limit, Rate
from duetime.model.registries import Registry
from duetime.model.reports import LogPart
from duetime.model.retry import computed, exponential, fixed
from duetime.model.signals import Cancel, Retry, Snooze
from duetime.model.states import State
from duetime.model.triggers import at, cron, every, rrule
from duetime.model.triggers.preview import Upcoming
from duetime.runtime.context import JobContext, current_job
from duetime.scheduler import (
    AttemptRecord,
    Backfill,
    CommandRecord,
    Explanation,
    Forecast,
    Job,
    JobHandle,
    JobRecord,
    Page,
    QueueRecord,
    ScheduleChange,
    ScheduleExplanation,
    ScheduleExport,
    ScheduleImport,
    Scheduler,
    ScheduleRecord,
    Task,
    WorkerRecord,
)

__all__ = [
    "AttemptRecord",
    "Backfill",
    "Cancel",
    "CommandRecord",
    "Ended",
    "Event",
    "EventKind",
    "Explanation",
    "Forecast",
    "Job",
    "JobContext",
    "JobHandle",
    "JobRecord",
    "Limit",
    "LogPart",
    "Page",
    "QueueRecord",
    "Rate",
    "Registry",
    "Retry",
    "ScheduleChange",
    "ScheduleExplanation",
    "ScheduleExport",
    "ScheduleImport",
    "ScheduleRecord",
    "Scheduler",
    "Snooze",
    "State",
    "Task",
    "Upcoming",
    "WorkerRecord",
    "at",
    "calendars",
    "computed",
    "cron",
    "current_job",
    "every",
    "exponential",
    "fixed",
    "rrule",
]
