"""Code around a handler, in the thread in which it is called."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from duetime import Cancel, JobContext, Scheduler
from duetime.errors import InvalidTask
from duetime.model.outcome import Cancelled, Failed, Outcome, Succeeded
from duetime.model.task import TaskOptions
from duetime.model.time import MILLISECOND
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run
from duetime.runtime.running.surroundings import GivenSurrounding, as_surrounding
from duetime.runtime.running.threads import ThreadRunner
from tests.unit.runtime.kit import claim

LOCAL = threading.local()


async def outcome_of(function: Callable[..., Any], *around: GivenSurrounding, **options: Any) -> Outcome:
    middleware = options.pop("middleware", ())
    handler = Handler(
        name="task",
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        options=TaskOptions(**options),
        arguments=Arguments(function, task="task"),
        around=[as_surrounding(one) for one in around],
    )
    executor = Executor({"task": handler}, ThreadRunner(), middleware=middleware)
    return await executor.execute(Run(claim(), started_at=0))


def connected(job: JobContext) -> Iterator[None]:
    LOCAL.connection = f"for {job.id}"
    yield
    del LOCAL.connection


def read() -> str:
    connection: str = LOCAL.connection
    return connection


async def read_async() -> str:
    return read()


@pytest.mark.parametrize("function", [read, read_async])
async def test_it_is_entered_where_the_handler_is_called(function: Callable[..., Any]) -> None:
    assert await outcome_of(function, connected) == Succeeded('"for job"')
    assert not hasattr(LOCAL, "connection")


@pytest.mark.parametrize("function", [read, read_async])
async def test_a_function_may_return_a_context_manager(function: Callable[..., Any]) -> None:
    made = contextlib.contextmanager(connected)
    assert await outcome_of(function, made) == Succeeded('"for job"')


async def test_the_first_one_is_outermost_and_all_lie_inside_of_middleware() -> None:
    told: list[str] = []

    def named(name: str) -> GivenSurrounding:
        def around(job: JobContext) -> Iterator[None]:
            told.append(f"{name} in")
            yield
            told.append(f"{name} out")

        return around

    async def outer(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        told.append("middleware in")
        value = await call()
        told.append("middleware out")
        return value

    await outcome_of(lambda: told.append("handler"), named("a"), named("b"), middleware=[outer])
    assert told == ["middleware in", "a in", "b in", "handler", "b out", "a out", "middleware out"]


def fail() -> None:
    raise LookupError("nothing here")


async def fail_async() -> None:
    fail()


@pytest.mark.parametrize("function", [fail, fail_async])
async def test_it_sees_what_the_handler_raises(function: Callable[..., Any]) -> None:
    seen: list[str] = []

    def around(job: JobContext) -> Iterator[None]:
        try:
            yield
        except LookupError as error:
            seen.append(str(error))
            raise

    outcome = await outcome_of(function, around)
    assert isinstance(outcome, Failed)
    assert (outcome.error, seen) == ("LookupError: nothing here", ["nothing here"])
    assert outcome.place == f"{__name__}:fail"
    assert "running/surroundings.py" not in (outcome.traceback or "").partition("test_surroundings.py")[0]


async def test_what_it_raises_is_the_failure_of_the_job() -> None:
    called: list[int] = []

    def broken(job: JobContext) -> Iterator[None]:
        raise ConnectionError("no database")
        yield

    def off(job: JobContext) -> Iterator[None]:
        yield
        raise Cancel("off")

    outcome = await outcome_of(lambda: called.append(1), broken)
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.error_type, called) == (
        "ConnectionError: no database",
        "ConnectionError",
        [],
    )
    assert await outcome_of(lambda: None, off) == Cancelled("off")


async def test_a_timeout_ends_it_as_well() -> None:
    left: list[str] = []

    def around(job: JobContext) -> Iterator[None]:
        try:
            yield
        finally:
            left.append(job.task)

    async def wait() -> None:
        await asyncio.Event().wait()

    outcome = await outcome_of(wait, around, timeout=MILLISECOND)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, left) == ("timeout", ["task"])


async def test_what_returns_no_context_manager_fails_the_job() -> None:
    outcome = await outcome_of(read, lambda job: None)  # type: ignore[arg-type]
    assert isinstance(outcome, Failed)
    assert "context manager" in outcome.error


async def later(job: JobContext) -> None: ...


async def yields_later(job: JobContext) -> Any:
    yield


@pytest.mark.parametrize("function", [later, yields_later, lambda: None, "session"])
def test_what_cannot_be_entered_in_a_thread_is_refused(function: Any) -> None:
    with pytest.raises(InvalidTask, match="around takes a generator function"):
        Scheduler("sqlite:///unused.db").around(function)


async def test_it_holds_for_tasks_that_were_registered_before(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    task = scheduler.task(name="read")(read)
    scheduler.around(connected)
    async with scheduler, scheduler.worker():
        job = await task.enqueue()
        assert await job.result(timeout=30) == f"for {job.id}"
