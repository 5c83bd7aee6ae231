"""The public object: a registry of tasks and the verbs of a client."""

from __future__ import annotations

from duetime.scheduler.explaining import Explanation, ScheduleExplanation
from duetime.scheduler.forecast_records import Forecast
from duetime.scheduler.handle import JobHandle
from duetime.scheduler.job_class import Job
from duetime.scheduler.pages import Page
from duetime.scheduler.porting import ScheduleExport, ScheduleImport
from duetime.scheduler.records import (
    AttemptRecord,
    CommandRecord,
    JobRecord,
    QueueRecord,
    WorkerRecord,
)
from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.task import Task

__all__ = [
    "AttemptRecord",
    "Backfill",
    "CommandRecord",
    "Explanation",
    "Forecast",
    "Job",
    "JobHandle",
    "JobRecord",
    "Page",
    "QueueRecord",
    "ScheduleChange",
    "ScheduleExplanation",
    "ScheduleExport",
    "ScheduleImport",
    "ScheduleRecord",
    "Scheduler",
    "Task",
    "WorkerRecord",
]
