"""What type checkers know about the public API.

Nothing here runs: mypy and pyright read it. Each `type: ignore` marks an error that both must find.
"""

# pyright: strict

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date, timedelta
from sqlite3 import Connection
from typing import Annotated, Any, assert_type

from fastapi import Depends

import duetime
from duetime import (
    Ended,
    Job,
    JobHandle,
    JobRecord,
    LastRun,
    Page,
    Scheduler,
    ScheduleRecord,
    calendars,
    cron,
    every,
    exponential,
)
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import CalendarSteps, Every
from duetime.scheduler.job_handle import BlockingHandle
from duetime.scheduler.schedule_changes import ChangeAnswer
from duetime.scheduler.task import AsyncTask, SyncTask
from duetime.testing import assert_enqueued, blocking, drain, perform

scheduler = Scheduler()


def connect() -> Connection:
    return Connection("app.db")


@scheduler.task
async def plain(user_id: int, message: str = "hi") -> str:
    return f"{user_id}: {message}"


@scheduler.task(retries=exponential(3), timeout="30s")
async def optioned(user_id: int) -> int:
    return user_id


@scheduler.task(queue="reports")
def threaded(name: str, *, copies: int = 1) -> list[str]:
    return [name] * copies


@scheduler.schedule(cron("*/5 * * * *", tz="Europe/Berlin"))
async def scheduled() -> None: ...


@scheduler.schedule(every("15m"), name="tidy.often", kwargs={"age": 3})
@scheduler.schedule(every(hours=1), name="tidy.hourly", kwargs={"age": 30}, overlap="allow")
@scheduler.task(name="tidy")
def tidy(age: int) -> int:
    return age


class Counted(Job, ABC, scheduler=scheduler, queue="reports", retries=3):
    @abstractmethod
    def count(self, day: date) -> int: ...


@scheduler.schedule(every(days=1), args=(date(2030, 1, 1),))
class Report(Counted, name="report", timeout="1m"):
    def count(self, day: date) -> int:
        return day.day

    async def run(self, day: date, *, title: str = "") -> int:
        return self.count(day)


class Blocking(Job, scheduler=scheduler):
    def run(self, name: str) -> list[str]:
        return [name]


class Misspelt(Job, scheduler=scheduler, qeue="reports"):  # type: ignore[call-arg]
    def run(self) -> None: ...


@scheduler.task
def told(ended: Ended) -> None: ...


class Told(Job, scheduler=scheduler):
    async def run(self, ended: Ended) -> None: ...


@scheduler.task(on_success=told, on_failure=Told, on_cancel=told)
async def telling() -> None: ...


def callbacks_take_an_ended_job() -> None:
    telling.options(on_success=Told, on_failure=None)
    telling.options(on_success=plain)  # type: ignore[arg-type]
    telling.options(on_failure=Report)  # type: ignore[arg-type]
    telling.options(on_cancel=print)  # type: ignore[arg-type]


async def enqueue_has_the_parameters_of_the_function() -> None:
    assert_type(await plain.enqueue(1, "hi"), JobHandle[str])
    assert_type(await plain.enqueue(user_id=1), JobHandle[str])
    assert_type(await threaded.enqueue("a", copies=2), JobHandle[list[str]])
    await plain.enqueue()  # type: ignore[call-arg]
    await plain.enqueue("1")  # type: ignore[arg-type]
    await plain.enqueue(1, text="hi")  # type: ignore[call-arg]
    await threaded.enqueue("a", 2)  # type: ignore[call-arg]
    await scheduled.enqueue(1)  # type: ignore[call-arg]


async def enqueue_of_a_class_has_the_parameters_of_its_run() -> None:
    assert_type(await Report.enqueue(date(2030, 1, 1), title="all"), JobHandle[int])
    assert_type(await Blocking.enqueue("a"), JobHandle[list[str]])
    assert_type(await Report.options(delay=5).enqueue(date(2030, 1, 1)), JobHandle[int])
    assert_type(Report.sync.enqueue(date(2030, 1, 1)), BlockingHandle[int])
    assert_type(await scheduler.enqueue(Blocking.call("a")), JobHandle[list[str]])
    assert_type(await Report.task.enqueue(date(2030, 1, 1)), JobHandle[int])
    assert_type(await Report().run(date(2030, 1, 1)), int)
    await Report.enqueue("today")  # type: ignore[arg-type]
    await Report.enqueue()  # type: ignore[call-arg]
    await Report.enqueue(date(2030, 1, 1), "all")  # type: ignore[call-arg]
    await Blocking.enqueue(1)  # type: ignore[arg-type]
    await Blocking.options(delay=5).enqueue(1)  # type: ignore[arg-type]
    Blocking.sync.enqueue(1)  # type: ignore[arg-type]
    Blocking.call(1)  # type: ignore[arg-type]
    Blocking.options(colour="red")  # type: ignore[call-arg]


async def options_keep_the_parameters_and_have_types_of_their_own() -> None:
    later = plain.options(delay=timedelta(minutes=5), queue="mail", priority=0, retries=1)
    assert_type(await later.enqueue(1), JobHandle[str])
    await later.enqueue("1")  # type: ignore[arg-type]
    plain.options(delay=[5])  # type: ignore[arg-type]
    plain.options(colour="red")  # type: ignore[call-arg]


@scheduler.task
async def depending(
    user_id: int,
    connection: Annotated[Connection, Depends(connect)] = Depends(connect),
    *,
    other: Connection = duetime.Depends(connect),
) -> str:
    return f"{user_id}: {connection} {other}"


@scheduler.task
def depending_in_thread(user_id: int, connection: Connection = Depends(connect)) -> int:
    return user_id


class Depending(Job, scheduler=scheduler):
    async def run(self, user_id: int, connection: Connection = Depends(connect)) -> int:
        return user_id


async def dependencies_are_not_asked_for() -> None:
    assert_type(await depending.enqueue(1), JobHandle[str])
    assert_type(await depending.options(delay=5).enqueue(user_id=1), JobHandle[str])
    assert_type(depending_in_thread.sync.enqueue(1), BlockingHandle[int])
    assert_type(await Depending.enqueue(1), JobHandle[int])
    assert_type(await depending(1, Connection("a")), str)
    await depending.enqueue()  # type: ignore[call-arg]
    await depending.enqueue("1")  # type: ignore[arg-type]
    await depending.enqueue(1, user=2)  # type: ignore[call-arg]
    await Depending.enqueue("1")  # type: ignore[arg-type]


async def results_have_the_type_the_function_returns() -> None:
    job = await plain.enqueue(1)
    assert_type(await job.result(timeout=5), str)
    assert_type(await (await optioned.enqueue(1)).result(), int)
    assert_type(await (await threaded.enqueue("a")).result(), list[str])
    assert_type(await job.record(), JobRecord)


async def a_task_can_still_be_called() -> None:
    assert_type(await plain(1), str)
    assert_type(await optioned(user_id=1), int)
    assert_type(threaded("a"), list[str])
    assert_type(tidy(3), int)
    threaded(1)  # type: ignore[arg-type]


def a_schedule_leaves_the_task_as_it_was(one: AsyncTask[[], None], other: SyncTask[[int], int]) -> None:
    assert_type(scheduler.schedule(every("1h"))(one), AsyncTask[[], None])
    assert_type(scheduler.schedule(every("1h"))(other), SyncTask[[int], int])
    scheduler.schedule("1h")  # type: ignore[arg-type]
    scheduler.schedule(every("1h"), overlap="sometimes")  # type: ignore[arg-type]


def blocking_verbs_are_typed_alike() -> None:
    job = plain.sync.enqueue(1, "hi")
    assert_type(job, BlockingHandle[str])
    assert_type(job.result(timeout=5), str)
    assert_type(plain.options(delay="1m").sync.enqueue(1), BlockingHandle[str])
    assert_type(scheduler.sync.jobs.get(job.id), JobRecord)
    plain.sync.enqueue("1")  # type: ignore[arg-type]
    assert_type(scheduler.sync.jobs.list(state="failed"), Page[JobRecord])
    assert_type(scheduler.sync.prune(older_than="1d"), int)
    assert_type(scheduler.sync.schedules.put("often", every("1h"), plain, args=(1,)), ChangeAnswer)
    assert_type(scheduler.sync.jobs.rerun(job.id, delay="1m"), BlockingHandle[Any])
    scheduler.sync.jobs.get(1)  # type: ignore[arg-type]
    scheduler.sync.jobs.get()  # type: ignore[call-arg]
    scheduler.sync.workers.stop("a", later=True)  # type: ignore[call-arg]
    scheduler.sync.schedules.edit("often", colour="red")  # type: ignore[call-arg]


async def reads_are_typed() -> None:
    assert_type(await scheduler.jobs.list(state="failed"), Page[JobRecord])
    often = assert_type(await scheduler.schedules.get("tidy.often"), ScheduleRecord)
    assert_type(often.last_run, LastRun | None)


async def schedules_are_put_with_typed_options() -> None:
    await scheduler.schedules.put("often", every("1h"), plain, args=(1,), overlap="queue_one", timeout=None)
    await scheduler.schedules.edit("often", retries=None, misfire="all", misfire_limit=5)
    assert_type(await scheduler.schedules.trigger("often"), JobHandle[Any])
    await scheduler.schedules.put("often", every("1h"), plain, overlap="sometimes")  # type: ignore[arg-type]
    await scheduler.schedules.edit("often", colour="red")  # type: ignore[call-arg]


async def a_batch_takes_calls_of_several_tasks() -> None:
    handles = await scheduler.enqueue_many([plain.call(1), threaded.options(delay=5).call("a")])
    assert_type(handles, list[JobHandle[Any]])
    one = await scheduler.enqueue(plain.call(1))
    assert_type(one, JobHandle[str])


async def the_testing_kit_is_typed() -> None:
    assert_type(await perform(plain, 1), str)
    assert_type(await perform(threaded.options(delay=5), "a", copies=2), list[str])
    assert_type(await perform(Report.task, date(2030, 1, 1)), int)
    assert_type(blocking.perform(plain, 1), str)
    assert_type(await drain(scheduler, until="1h"), list[JobRecord])
    assert_type(await assert_enqueued(scheduler, Report, date(2030, 1, 1), times=1), list[JobRecord])
    await perform(plain, "1")  # type: ignore[arg-type]
    blocking.perform(plain, "1")  # type: ignore[arg-type]
    await drain(scheduler, untli="1h")  # type: ignore[call-arg]


async def a_worker_has_typed_settings() -> None:
    async with scheduler, scheduler.worker(concurrency=10, queues={"mail": 5, "default": None}, grace="1m"):
        pass
    scheduler.worker(concurency=10)  # type: ignore[call-arg]
    scheduler.worker(queues=5)  # type: ignore[arg-type]


def triggers_combine_with_triggers_and_calendars() -> None:
    assert_type(every("1h"), Every)
    assert_type(every(months=1, tz="Europe/Riga"), CalendarSteps)
    assert_type(every(years=1, missing="skip"), CalendarSteps)
    scheduler.schedule((every("1h") | cron("0 9 * * *")).at_most(3).jitter("1m"))
    scheduler.schedule(every("1h") & cron("0 9 * * *") - calendars.weekends())
    assert_type(cron(hour=9, minute="*/15", weekday="MON-FRI", tz="Europe/Riga"), Cron)
    assert_type(cron("0 9 * * *"), Cron | Every)
    scheduler.schedule(cron(hour=9) | cron(day="L", hour=18))
    cron("0 9 * * *", hour=9)  # type: ignore[call-overload]
    cron(hour=9.5)  # type: ignore[call-overload]
    cron(houre=9)  # type: ignore[call-overload]
    every(months=1, minutes=5)  # type: ignore[call-overload]
    every("1h", tz="UTC")  # type: ignore[call-overload]
    cron("0 9 * * *") | calendars.weekends()  # type: ignore[operator]
    cron("0 9 * * *") - every("1h")  # type: ignore[operator]
