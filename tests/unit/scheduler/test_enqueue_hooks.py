"""Functions that see every request before it is stored."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime import Ended, Job, JobRequest, Scheduler, current_job, every
from duetime.errors import InvalidOption, InvalidTask
from duetime.testing import FakeClock, drain

TRACE: ContextVar[str] = ContextVar("trace", default="none")


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=FakeClock()) as opened:
        yield opened


def greet(name: str) -> None: ...


def trace(request: JobRequest) -> Mapping[str, str]:
    del request
    return {"trace": TRACE.get()}


async def headers_of(scheduler: Scheduler, job_id: str) -> Mapping[str, str]:
    return (await scheduler.jobs.get(job_id)).headers


async def test_every_request_of_a_client_is_seen_once(scheduler: Scheduler) -> None:
    seen: list[tuple[str, Any]] = []

    @scheduler.on_enqueue
    def note(request: JobRequest) -> None:
        seen.append((request.task, request.arguments))

    class Report(Job, scheduler=scheduler, name="report"):
        def run(self, size: int) -> None: ...

    task = scheduler.task(name="greet")(greet)
    handle = await task.enqueue("a")
    await scheduler.enqueue(task.call("b"))
    await scheduler.enqueue_many([task.call("c"), task.options(priority=1).call("d")])
    await Report.enqueue(3)
    await scheduler.jobs.cancel(handle.id)
    await scheduler.jobs.rerun(handle.id)
    await scheduler.schedules.put("daily", every("1d"), task, args=["e"])
    await scheduler.schedules.trigger("daily")
    assert seen == [
        *(("greet", {"name": name}) for name in "abcd"),
        ("report", {"size": 3}),
        ("greet", {"name": "a"}),
        ("greet", {"name": "e"}),
    ]


async def test_a_request_tells_what_is_asked_for(scheduler: Scheduler) -> None:
    requests: list[JobRequest] = []

    @scheduler.on_enqueue
    def keep(request: JobRequest) -> None:
        requests.append(request)

    moment = datetime(2030, 1, 1, tzinfo=UTC)
    task = scheduler.task(name="greet", tags=["t"], headers={"team": "a"})(greet)
    handle = await task.options(at=moment, queue="mail", priority=2, key="k").enqueue("you")
    (request,) = requests
    assert (request.id, request.queue, request.priority) == (handle.id, "mail", 2)
    assert (request.at, request.key, request.tags, {**request.headers}) == (
        moment,
        "k",
        ("t",),
        {"team": "a"},
    )
    assert (request.parent, request.schedule) == (None, None)
    assert repr(request) == f"JobRequest(id={handle.id!r}, task='greet')"


async def test_headers_are_added_one_function_after_the_other(scheduler: Scheduler) -> None:
    scheduler.on_enqueue(trace)

    @scheduler.on_enqueue
    def second(request: JobRequest) -> Mapping[str, str]:
        return {"trace": request.headers["trace"] + "!", "own": "x"}

    task = scheduler.task(name="greet", headers={"trace": "task"})(greet)
    TRACE.set("af31")
    handle = await task.options(headers={"own": "y", "kept": "z"}).enqueue("you")
    assert await headers_of(scheduler, handle.id) == {"trace": "af31!", "own": "x", "kept": "z"}


async def test_a_function_that_adds_nothing_leaves_a_plain_job_plain(scheduler: Scheduler) -> None:
    scheduler.on_enqueue(lambda _: None)
    scheduler.on_enqueue(lambda _: {})
    handle = await scheduler.task(name="greet")(greet).enqueue("you")
    assert (await scheduler.store.get([handle.id]))[0].headers is None


async def test_what_a_function_raises_refuses_all_requests_of_the_call(scheduler: Scheduler) -> None:
    @scheduler.on_enqueue
    def refuse(request: JobRequest) -> None:
        if request.arguments == {"name": "b"}:
            raise PermissionError("not b")

    task = scheduler.task(name="greet")(greet)
    with pytest.raises(PermissionError, match="not b"):
        await scheduler.enqueue_many([task.call("a"), task.call("b")])
    assert await scheduler.jobs.list() == []


@pytest.mark.parametrize(
    ("added", "text"), [({"n": 1}, "header 'n' must be text"), (["a"], "headers must be a dict")]
)
async def test_what_cannot_be_a_header_is_refused(scheduler: Scheduler, added: Any, text: str) -> None:
    scheduler.on_enqueue(lambda _: added)
    with pytest.raises(InvalidOption, match=text):
        await scheduler.task(name="greet")(greet).enqueue("you")
    assert await scheduler.jobs.list() == []


async def later(request: JobRequest) -> None: ...


@pytest.mark.parametrize("function", [later, lambda: None, lambda a, b: None, "trace"])
def test_what_cannot_see_a_request_is_refused(function: Any) -> None:
    with pytest.raises(InvalidTask, match="on_enqueue takes"):
        Scheduler("sqlite:///unused.db").on_enqueue(function)


def test_a_blocking_caller_is_seen_in_its_own_thread_and_context(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    threads: list[int] = []

    @scheduler.on_enqueue
    def where(request: JobRequest) -> Mapping[str, str]:
        threads.append(threading.get_ident())
        return trace(request)

    task = scheduler.task(name="greet")(greet)
    TRACE.set("mine")
    try:
        # The first one reaches a loop that opens the store, and goes through it.
        records = [task.sync.enqueue("you").record() for _ in range(2)]
        records += [scheduler.sync.enqueue_many([task.call("you")])[0].record()]
    finally:
        scheduler.sync.close()
    assert [record.headers for record in records] == [{"trace": "mine"}] * 3
    assert threads == [threading.get_ident()] * 3


async def test_a_request_in_a_transaction_is_seen_too(scheduler: Scheduler, sqlite_url: str) -> None:
    scheduler.on_enqueue(trace)
    task = scheduler.task(name="greet")(greet)
    TRACE.set("tx")
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        handle = await task.options(tx=connection).enqueue("you")
    connection.close()
    assert await headers_of(scheduler, handle.id) == {"trace": "tx"}


async def test_headers_reach_handlers_reruns_and_callbacks(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url, clock=FakeClock())
    seen: list[tuple[str, dict[str, str]]] = []

    @scheduler.task(name="after", headers={"trace": "of the callback", "own": "after"})
    async def after(ended: Ended) -> None:
        seen.append((current_job().task, {**current_job().headers}))

    @scheduler.task(name="work", on_success=after)
    async def work() -> None:
        seen.append((current_job().task, {**current_job().headers}))

    async with scheduler:
        handle = await work.options(headers={"trace": "a"}).enqueue()
        await drain(scheduler)
        await scheduler.jobs.rerun(handle.id, headers={"again": "1"})
        await drain(scheduler)
    assert seen == [
        ("work", {"trace": "a"}),
        ("after", {"trace": "a", "own": "after"}),
        ("work", {"trace": "a", "again": "1"}),
        ("after", {"trace": "a", "own": "after", "again": "1"}),
    ]


async def test_jobs_of_a_schedule_have_its_headers(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    task = scheduler.task(name="greet", headers={"team": "a"})(greet)
    async with scheduler:
        await scheduler.schedules.put("daily", every("1d"), task, args=["you"], headers={"by": "clock"})
        handle = await scheduler.schedules.trigger("daily")
        assert (await handle.record()).headers == {"team": "a", "by": "clock"}
        await scheduler.schedules.edit("daily", headers={"by": "hand"})
        handle = await scheduler.schedules.trigger("daily")
        assert (await handle.record()).headers == {"by": "hand"}
