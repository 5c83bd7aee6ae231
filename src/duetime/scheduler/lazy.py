"""What most processes never use of the scheduler, loaded when it is first asked for, be it to read an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetime.lazy_names import lazy_getattr

if TYPE_CHECKING:
    from duetime.model.schedule.options import ScheduleOptionValues
    from duetime.model.triggers.base import Trigger
    from duetime.scheduler.job_class import Job
    from duetime.scheduler.jobs import Jobs, Pruning
    from duetime.scheduler.queues import Queues
    from duetime.scheduler.records import JobRecord
    from duetime.scheduler.scheduler import Scheduler
    from duetime.scheduler.scheduler_worker import SchedulerWorker, WorkerSettings
    from duetime.scheduler.schedules import Schedules
    from duetime.scheduler.sync import BlockingRequest, BlockingScheduler
    from duetime.scheduler.task import ScheduleDecorator, TaskDecorator
    from duetime.scheduler.workers import Workers
    from duetime.stores.base.protocols import Store

__all__ = [
    "BlockingRequest",
    "BlockingScheduler",
    "Job",
    "JobRecord",
    "Jobs",
    "Pruning",
    "Queues",
    "ScheduleDecorator",
    "ScheduleOptionValues",
    "Scheduler",
    "SchedulerWorker",
    "Schedules",
    "Store",
    "TaskDecorator",
    "Trigger",
    "WorkerSettings",
    "Workers",
]

_HOMES: Final = {
    "BlockingRequest": "duetime.scheduler.sync",
    "BlockingScheduler": "duetime.scheduler.sync",
    "Job": "duetime.scheduler.job_class",
    "JobRecord": "duetime.scheduler.records",
    "Jobs": "duetime.scheduler.jobs",
    "Pruning": "duetime.scheduler.jobs",
    "Queues": "duetime.scheduler.queues",
    "ScheduleDecorator": "duetime.scheduler.task",
    "ScheduleOptionValues": "duetime.model.schedule.options",
    "Scheduler": "duetime.scheduler.scheduler",
    "SchedulerWorker": "duetime.scheduler.scheduler_worker",
    "Schedules": "duetime.scheduler.schedules",
    "Store": "duetime.stores.base.protocols",
    "TaskDecorator": "duetime.scheduler.task",
    "Trigger": "duetime.model.triggers.base",
    "WorkerSettings": "duetime.scheduler.scheduler_worker",
    "Workers": "duetime.scheduler.workers",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(globals(), _HOMES)
