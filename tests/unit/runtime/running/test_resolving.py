"""Dependencies of a run: made before its handler is called, and cleaned up behind it, whatever came of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from itertools import count
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI

from duetime import JobContext, Scheduler, Snooze, current_job
from duetime.model.outcome import Cancelled, Failed, Outcome, Snoozed, Succeeded
from duetime.model.time import SECOND
from duetime.runtime.running.executor import Executor, Middleware
from duetime.runtime.running.run import Run
from duetime.runtime.running.threads import ThreadRunner
from tests.integration.kit import until
from tests.unit.runtime.kit import claim

told: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    told.clear()


async def of_loop() -> AsyncIterator[str]:
    told.append("loop in")
    try:
        yield "loop"
    except BaseException as error:
        told.append(f"loop saw {type(error).__name__}")
        raise
    finally:
        told.append("loop out")


def of_thread(outer: Annotated[str, Depends(of_loop)]) -> Iterator[str]:
    told.append("thread in")
    try:
        yield f"thread in {outer}"
    except BaseException as error:
        told.append(f"thread saw {type(error).__name__}")
        raise
    finally:
        told.append("thread out")


Both = Annotated[str, Depends(of_thread)]


async def in_loop(both: Both) -> str:
    told.append("run")
    return both


def in_thread(both: Both) -> str:
    told.append("run")
    return both


HANDLERS = pytest.mark.parametrize("function", [in_loop, in_thread])


class Runs:
    """A task and one run of it."""

    def __init__(self, function: Callable[..., Any], *, timeout: float | None = None) -> None:
        self.scheduler = Scheduler("sqlite://")
        self.scheduler.task(name="task", timeout=timeout)(function)
        self.run = Run(claim(task="task", payload="{}"), started_at=0)

    async def outcome(self, *middleware: Middleware) -> Outcome:
        self.threads = ThreadRunner()
        executor = Executor(self.scheduler.tasks, self.threads, middleware=middleware)
        running: asyncio.Task[Any] = asyncio.create_task(executor.execute(self.run))
        self.run.task = running
        outcome: Outcome = await running
        return outcome


async def outcome_of(function: Callable[..., Any]) -> Outcome:
    return await Runs(function).outcome()


@HANDLERS
async def test_they_are_made_in_order_and_cleaned_up_in_reverse(function: Callable[..., Any]) -> None:
    assert await outcome_of(function) == Succeeded('"thread in loop"')
    assert told == ["loop in", "thread in", "run", "thread out", "loop out"]


async def fail(both: Both) -> None:
    raise LookupError("nothing here")


def fail_in_thread(both: Both) -> None:
    raise LookupError("nothing here")


@pytest.mark.parametrize("function", [fail, fail_in_thread])
async def test_they_see_a_failure_and_are_cleaned_up(function: Callable[..., Any]) -> None:
    outcome = await outcome_of(function)
    assert isinstance(outcome, Failed)
    assert outcome.error == "LookupError: nothing here"
    assert told[2:] == ["thread saw LookupError", "thread out", "loop saw LookupError", "loop out"]


async def wait(both: Both) -> None:
    told.append("waits")
    await asyncio.Event().wait()


async def test_they_are_cleaned_up_after_a_cancellation() -> None:
    runs = Runs(wait)
    running = asyncio.create_task(runs.outcome())
    await until(lambda: "waits" in told, what="a handler that waits")
    runs.run.stop(Cancelled("enough"))
    assert await running == Cancelled("enough")
    assert told[-4:] == ["thread saw CancelledError", "thread out", "loop saw CancelledError", "loop out"]


async def test_they_are_cleaned_up_after_a_timeout() -> None:
    outcome = await Runs(wait, timeout=0.05).outcome()
    assert isinstance(outcome, Failed)
    assert outcome.reason == "timeout"
    assert told[-2:] == ["loop saw CancelledError", "loop out"]


released = threading.Event()


def wait_in_thread(both: Both) -> None:
    released.wait()
    told.append("thread ended")


async def test_a_plain_handler_past_its_timeout_is_waited_for_before_they_are_cleaned_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released.clear()
    running = asyncio.create_task(Runs(wait_in_thread, timeout=0.05).outcome())
    await until(lambda: caplog.records, what="a warning")
    assert "a thread cannot be killed" in caplog.text
    assert "thread out" not in told
    released.set()
    outcome = await running
    assert isinstance(outcome, Failed)
    assert outcome.reason == "timeout"
    assert told[2:] == [
        "thread ended", "thread saw CancelledError", "thread out", "loop saw CancelledError", "loop out",
    ]  # fmt: skip


async def test_a_plain_handler_that_is_asked_to_stop_and_ends_well_has_succeeded() -> None:
    released.clear()
    runs = Runs(wait_in_thread)
    running = asyncio.create_task(runs.outcome())
    await until(lambda: "thread in" in told and not runs.run.interruptible, what="a handler in its thread")
    runs.run.stop(Cancelled("enough"))
    released.set()
    assert await running == Succeeded()
    assert told[-2:] == ["thread out", "loop out"]


entering = threading.Event()


def slow_to_enter() -> Iterator[None]:
    entering.set()
    released.wait()
    told.append("entered")
    try:
        yield
    finally:
        told.append("left")


async def behind_slow(it: Annotated[None, Depends(slow_to_enter)]) -> None:
    told.append("run")


async def test_one_that_is_being_entered_in_a_thread_when_the_run_is_cancelled_is_left() -> None:
    released.clear()
    runs = Runs(behind_slow)
    running = asyncio.create_task(runs.outcome())
    await asyncio.to_thread(entering.wait)
    runs.run.stop(Cancelled("enough"))
    await asyncio.sleep(0)
    released.set()
    assert await running == Cancelled("enough")
    assert told == ["entered", "left"]


def refuse_before(outer: Annotated[str, Depends(of_loop)]) -> Iterator[None]:
    raise PermissionError("not now")
    yield


def refuse_after(outer: Annotated[str, Depends(of_loop)]) -> Iterator[None]:
    yield
    raise ConnectionError("the commit failed")


async def needs_before(it: Annotated[None, Depends(refuse_before)]) -> None:
    told.append("run")


async def needs_after(it: Annotated[None, Depends(refuse_after)]) -> None:
    told.append("run")


async def test_one_that_raises_before_the_run_is_its_failure_and_the_handler_is_not_called() -> None:
    outcome = await outcome_of(needs_before)
    assert isinstance(outcome, Failed)
    assert outcome.error == "PermissionError: not now"
    assert told == ["loop in", "loop saw PermissionError", "loop out"]


async def test_one_that_raises_after_the_run_is_its_failure_and_the_others_are_cleaned_up() -> None:
    outcome = await outcome_of(needs_after)
    assert isinstance(outcome, Failed)
    assert outcome.error == "ConnectionError: the commit failed"
    assert told == ["loop in", "run", "loop saw ConnectionError", "loop out"]


def yields_twice() -> Iterator[int]:
    yield 1
    yield 2


async def yields_twice_in_loop() -> AsyncIterator[int]:
    yield 1
    yield 2


def yields_never() -> Iterator[int]:
    yield from ()


@pytest.mark.parametrize(
    ("dependency", "why"),
    [
        (yields_twice, "yields_twice must yield exactly once, but its generator didn't stop"),
        (yields_twice_in_loop, "yields_twice_in_loop must yield exactly once, but its generator didn't stop"),
        (yields_never, "yields_never must yield exactly once, but its generator didn't yield"),
    ],
)
async def test_one_that_does_not_yield_once_fails_the_run(dependency: Callable[..., Any], why: str) -> None:
    async def needs(outer: Any = Depends(of_loop), it: Any = Depends(dependency)) -> None: ...

    outcome = await outcome_of(needs)
    assert isinstance(outcome, Failed)
    assert outcome.error == f"InvalidTask: dependency {why}"
    assert told[-1] == "loop out"


def swallow() -> Iterator[None]:
    try:
        yield
    except LookupError:
        told.append("swallowed")


async def fail_quietly(it: Annotated[None, Depends(swallow)]) -> None:
    raise LookupError("nothing here")


async def test_one_that_swallows_the_failure_does_not_make_it_a_success() -> None:
    outcome = await outcome_of(fail_quietly)
    assert isinstance(outcome, Failed)
    assert outcome.error == "LookupError: nothing here"
    assert told == ["swallowed"]


async def snooze(both: Both) -> None:
    raise Snooze(60)


async def test_a_signal_passes_through_them() -> None:
    assert await outcome_of(snooze) == Snoozed(60 * SECOND)
    assert told[-2:] == ["loop saw Snooze", "loop out"]


numbers = count()


def number() -> int:
    return next(numbers)


def next_number(one: Annotated[int, Depends(number)]) -> int:
    return one + 1


async def cached(
    one: Annotated[int, Depends(number)],
    other: Annotated[int, Depends(number)],
    after: Annotated[int, Depends(next_number)],
    fresh: Annotated[int, Depends(number, use_cache=False)],
) -> list[int]:
    return [other - one, after - one, fresh - one]


async def test_each_run_makes_one_once_unless_it_is_not_to_be_cached() -> None:
    runs = Runs(cached)
    assert await runs.outcome() == Succeeded("[0,1,1]")
    assert await runs.outcome() == Succeeded("[0,1,1]")
    assert next(numbers) == 4


def thread_name() -> str:
    return threading.current_thread().name


class Place:
    """A class, and an instance that can be called."""

    def __init__(self, name: Annotated[str, Depends(thread_name)]) -> None:
        self.name = name

    async def __call__(self) -> str:
        return threading.current_thread().name


async def places(
    of_function: Annotated[str, Depends(thread_name)],
    of_class: Annotated[Place, Depends()],
    of_instance: Annotated[str, Depends(Place("given"))],
) -> list[bool]:
    return [name.startswith("duetime-sync-") for name in (of_function, of_class.name, of_instance)]


async def test_plain_ones_are_called_in_threads_and_async_ones_in_the_loop() -> None:
    assert await outcome_of(places) == Succeeded("[true,true,false]")


tenant: ContextVar[str] = ContextVar("tenant")


async def of_tenant() -> AsyncIterator[None]:
    tenant.set(current_job().task)
    yield


def reads_tenant(it: Annotated[None, Depends(of_tenant)]) -> str:
    return tenant.get()


async def test_they_know_their_job_and_what_async_ones_set_is_seen_by_the_handler() -> None:
    assert await outcome_of(reads_tenant) == Succeeded('"task"')


async def test_middleware_and_what_is_around_lie_in_their_places() -> None:
    runs = Runs(in_thread)

    async def outer(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        try:
            return await call()
        finally:
            told.append("middleware out")

    @runs.scheduler.around
    def inner(job: JobContext) -> Iterator[None]:
        told.append(f"around in {threading.current_thread().name.startswith('duetime-sync')}")
        yield

    assert await runs.outcome(outer) == Succeeded('"thread in loop"')
    assert told == [
        "loop in", "thread in", "around in True", "run", "thread out", "loop out", "middleware out",
    ]  # fmt: skip


async def test_middleware_sees_the_error_of_a_clean_up() -> None:
    async def outer(job: JobContext, call: Callable[[], Awaitable[object]]) -> object:
        with pytest.raises(ConnectionError):
            await call()
        return "mended"

    assert await Runs(needs_after).outcome(outer) == Succeeded('"mended"')


def stand_in(of: Annotated[int, Depends(number)]) -> str:
    return "fake"


@HANDLERS
async def test_the_overrides_of_the_scheduler_stand_in(function: Callable[..., Any]) -> None:
    runs = Runs(function)
    runs.scheduler.dependency_overrides[of_loop] = stand_in
    assert await runs.outcome() == Succeeded('"thread in fake"')
    runs.scheduler.dependency_overrides.clear()
    assert await runs.outcome() == Succeeded('"thread in loop"')


async def test_the_overrides_of_an_app_stand_in_while_it_lives() -> None:
    runs = Runs(in_loop)
    app = FastAPI(lifespan=runs.scheduler.lifespan)
    async with app.router.lifespan_context(app):
        # As a test that leaves nothing behind does.
        app.dependency_overrides = {of_thread: stand_in}
        assert await runs.outcome() == Succeeded('"fake"')
        app.dependency_overrides = {}
        assert await runs.outcome() == Succeeded('"thread in loop"')
        app.dependency_overrides = {of_thread: stand_in}
    assert await runs.outcome() == Succeeded('"thread in loop"')
