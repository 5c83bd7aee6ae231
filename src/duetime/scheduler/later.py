"""What most processes never use of the scheduler, loaded when it is first asked for, be it to read an annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetime.lazily import from_homes

if TYPE_CHECKING:
    from duetime.model.schedule_options import ScheduleOptionValues
    from duetime.model.triggers.base import Trigger
    from duetime.scheduler.blocking import BlockingRequest, BlockingScheduler
    from duetime.scheduler.decorators import ScheduleDecorator, TaskDecorator
    from duetime.scheduler.job_class import Job
    from duetime.scheduler.jobs import Jobs
    from duetime.scheduler.pruning import Pruning
    from duetime.scheduler.queues import Queues
    from duetime.scheduler.records import JobRecord
    from duetime.scheduler.scheduler import Scheduler
    from duetime.scheduler.schedules import Schedules
    from duetime.scheduler.serving import SchedulerWorker, WorkerSettings
    from duetime.scheduler.workers import Workers
    from duetime.stores.base.verbs import Store

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
    "BlockingRequest": "duetime.scheduler.blocking",
    "BlockingScheduler": "duetime.scheduler.blocking",
    "Job": "duetime.scheduler.job_class",
    "JobRecord": "duetime.scheduler.records",
    "Jobs": "duetime.scheduler.jobs",
    "Pruning": "duetime.scheduler.pruning",
    "Queues": "duetime.scheduler.queues",
    "ScheduleDecorator": "duetime.scheduler.decorators",
    "ScheduleOptionValues": "duetime.model.schedule_options",
    "Scheduler": "duetime.scheduler.scheduler",
    "SchedulerWorker": "duetime.scheduler.serving",
    "Schedules": "duetime.scheduler.schedules",
    "Store": "duetime.stores.base.verbs",
    "TaskDecorator": "duetime.scheduler.decorators",
    "Trigger": "duetime.model.triggers.base",
    "WorkerSettings": "duetime.scheduler.serving",
    "Workers": "duetime.scheduler.workers",
}

if not TYPE_CHECKING:
    __getattr__ = from_homes(globals(), _HOMES)
