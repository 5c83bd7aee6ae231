"""Duetime runs your Python functions when they are due, once, however many processes are up."""

from __future__ import annotations

from duetime import calendars, errors
from duetime.model.callbacks import Ended
from duetime.model.events import Event, EventKind
from duetime.model.limits import Limit, Rate
from duetime.model.outcome import Cancel, Retry, Snooze
from duetime.model.queues import Registry
from duetime.model.reports import LogPart
from duetime.model.retry import computed, exponential, fixed
from duetime.model.schedule.forecast import Forecast
from duetime.model.secrets import Secret
from duetime.model.states import State
from duetime.model.triggers.at import at
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.working_days import working_day
from duetime.runtime.dependencies import Depends
from duetime.runtime.running.context import JobContext, current_job
from duetime.scheduler.announced import TaskRecord
from duetime.scheduler.audit import AuditRecord
from duetime.scheduler.enqueue_hooks import JobRequest
from duetime.scheduler.explanations import Explanation, ScheduleExplanation, WorkerExplanation
from duetime.scheduler.job_class import Job
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.pages import Page
from duetime.scheduler.records import (
    AttemptRecord,
    Backfill,
    CommandRecord,
    JobRecord,
    LastRun,
    QueueRecord,
    ScheduleChange,
    ScheduleRecord,
    WorkerRecord,
)
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.stats import Figures, Spread, Statistics
from duetime.scheduler.task import Task
from duetime.scheduler.transfer.schedule_files import ScheduleExport, ScheduleImport
from duetime.timer_wheel import Timer, TimerWheel

__all__ = [
    "AttemptRecord",
    "AuditRecord",
    "Backfill",
    "Cancel",
    "CommandRecord",
    "Depends",
    "Ended",
    "Event",
    "EventKind",
    "Explanation",
    "Figures",
    "Forecast",
    "Job",
    "JobContext",
    "JobHandle",
    "JobRecord",
    "JobRequest",
    "LastRun",
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
    "Secret",
    "Snooze",
    "Spread",
    "State",
    "Statistics",
    "Task",
    "TaskRecord",
    "Timer",
    "TimerWheel",
    "Upcoming",
    "WorkerExplanation",
    "WorkerRecord",
    "at",
    "calendars",
    "computed",
    "cron",
    "current_job",
    "errors",
    "every",
    "exponential",
    "fixed",
    "rrule",
    "working_day",
]


def __dir__() -> list[str]:
    """Return the public names alone."""
    return [*__all__]
