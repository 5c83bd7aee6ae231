"""Duetime runs your Python functions when they are due, once, however many processes are up."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from duetime.lazy_names import lazy_getattr
from duetime.model.callbacks import Ended
from duetime.model.events import Event, EventKind
from duetime.model.limits import Limit, Rate
from duetime.model.outcome import Cancel, Retry, Snooze
from duetime.model.retry import computed, exponential, fixed
from duetime.model.states import State
from duetime.runtime.running.context import JobContext, current_job
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import Task

if TYPE_CHECKING:
    from duetime import calendars
    from duetime.model.queues import Registry
    from duetime.model.reports import LogPart
    from duetime.model.triggers.at import at
    from duetime.model.triggers.cron import cron
    from duetime.model.triggers.every import every
    from duetime.model.triggers.preview import Upcoming
    from duetime.model.triggers.rrule import rrule
    from duetime.scheduler.explanations import Explanation, ScheduleExplanation
    from duetime.scheduler.forecast import Forecast
    from duetime.scheduler.job_class import Job
    from duetime.scheduler.jobs import Page
    from duetime.scheduler.records import AttemptRecord, CommandRecord, JobRecord, QueueRecord, WorkerRecord
    from duetime.scheduler.schedule_files import ScheduleExport, ScheduleImport
    from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord

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

_LATER: Final = {
    "AttemptRecord": "duetime.scheduler.records",
    "Backfill": "duetime.scheduler.schedule_records",
    "CommandRecord": "duetime.scheduler.records",
    "Explanation": "duetime.scheduler.explanations",
    "Forecast": "duetime.scheduler.forecast",
    "Job": "duetime.scheduler.job_class",
    "JobRecord": "duetime.scheduler.records",
    "LogPart": "duetime.model.reports",
    "Page": "duetime.scheduler.jobs",
    "QueueRecord": "duetime.scheduler.records",
    "Registry": "duetime.model.queues",
    "ScheduleChange": "duetime.scheduler.schedule_records",
    "ScheduleExplanation": "duetime.scheduler.explanations",
    "ScheduleExport": "duetime.scheduler.schedule_files",
    "ScheduleImport": "duetime.scheduler.schedule_files",
    "ScheduleRecord": "duetime.scheduler.schedule_records",
    "Upcoming": "duetime.model.triggers.preview",
    "WorkerRecord": "duetime.scheduler.records",
    "at": "duetime.model.triggers.at",
    "cron": "duetime.model.triggers.cron",
    "every": "duetime.model.triggers.every",
    "rrule": "duetime.model.triggers.rrule",
}
"""Where the names live that are loaded when they are first asked for: most processes use few of them, and each has a price in memory."""

if not TYPE_CHECKING:
    _load = lazy_getattr(globals(), _LATER)

    def __getattr__(name: str) -> object:
        return import_module("duetime.calendars") if name == "calendars" else _load(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
