from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from duetime import Cancel, JobContext, Snooze, current_job
from duetime.errors import InvalidTask, JobFailed
from duetime.model.outcome import Cancelled, Failed, Outcome, Snoozed, Succeeded
from duetime.model.task import TaskOptions
from duetime.model.time import MILLISECOND, SECOND
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.executor import (
    Executor,
    Middleware,
    call_through,
    check_middleware,
)
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run
from duetime.runtime.running.threads import ThreadRunner
from tests.unit.runtime.kit import claim

Call = Callable[[], Awaitable[object]]


def executor_of(function: Callable[..., Any], *middleware: Middleware, **options: Any) -> Executor:
    handler = Handler(
        name="task",
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        options=TaskOptions(**options),
        arguments=Arguments(function, task="task"),
    )
    return Executor({"task": handler}, ThreadRunner(), middleware=middleware)


async def outcome_of(function: Callable[..., Any], *middleware: Middleware, **options: Any) -> Outcome:
    return await executor_of(function, *middleware, **options).execute(Run(claim(), started_at=0))


async def transparent(job: JobContext, call: Call) -> object:
    return await call()


async def answer() -> int:
    return 42


def answer_in_thread() -> int:
    assert threading.current_thread() is not threading.main_thread()
    return 42


@pytest.mark.parametrize("function", [answer, answer_in_thread])
async def test_middleware_is_around_the_handler_the_first_outermost(function: Callable[..., Any]) -> None:
    steps: list[str] = []

    def named(name: str) -> Middleware:
        async def middleware(job: JobContext, call: Call) -> object:
            steps.append(f"{name} before {job.id} {current_job().id}")
            value = await call()
            steps.append(f"{name} after {value}")
            return value

        return middleware

    assert await outcome_of(function, named("outer"), named("inner")) == Succeeded("42")
    assert steps == ["outer before job job", "inner before job job", "inner after 42", "outer after 42"]


async def test_middleware_may_change_the_result() -> None:
    async def double(job: JobContext, call: Call) -> object:
        return cast("int", await call()) * 2

    async def forget(job: JobContext, call: Call) -> object:
        await call()
        return None

    assert await outcome_of(answer, double) == Succeeded("84")
    assert await outcome_of(answer, forget) == Succeeded()


@pytest.mark.parametrize("in_thread", [False, True])
async def test_middleware_sees_what_the_handler_raised_and_may_let_it_pass(*, in_thread: bool) -> None:
    seen: list[BaseException] = []

    async def fail() -> None:
        raise LookupError("nothing here")

    def fail_in_thread() -> None:
        raise LookupError("nothing here")

    async def look(job: JobContext, call: Call) -> object:
        try:
            return await call()
        except LookupError as error:
            seen.append(error)
            raise

    outcome = await outcome_of(fail_in_thread if in_thread else fail, look)
    assert isinstance(outcome, Failed)
    assert outcome.error == "LookupError: nothing here"
    assert [type(error) for error in seen] == [LookupError]
    assert outcome.traceback is not None
    assert "in fail" in outcome.traceback
    assert "in look" not in outcome.traceback


async def test_middleware_may_turn_a_failure_into_something_else() -> None:
    async def fail() -> None:
        raise LookupError("nothing here")

    async def forgive(job: JobContext, call: Call) -> object:
        try:
            return await call()
        except LookupError:
            return "forgiven"

    async def put_off(job: JobContext, call: Call) -> object:
        try:
            return await call()
        except LookupError:
            raise Snooze("5s") from None

    assert await outcome_of(fail, forgive) == Succeeded('"forgiven"')
    assert await outcome_of(fail, put_off) == Snoozed(5 * SECOND)


async def test_an_error_of_the_middleware_is_the_jobs_and_its_traceback_names_it() -> None:
    async def broken(job: JobContext, call: Call) -> object:
        await call()
        raise ValueError("after all")

    outcome = await outcome_of(answer, transparent, broken)
    assert isinstance(outcome, Failed)
    assert outcome.error == "ValueError: after all"
    assert outcome.traceback is not None
    assert "in broken\n" in outcome.traceback


async def test_middleware_may_keep_the_handler_from_being_called() -> None:
    async def refuse(job: JobContext, call: Call) -> object:
        raise Cancel("not on Sundays")

    def never() -> None:
        raise AssertionError("called")

    assert await outcome_of(never, refuse) == Cancelled("not on Sundays")


@pytest.mark.parametrize("signal", [Cancel("enough"), Snooze(5)])
async def test_signals_pass_raised_or_returned(signal: Cancel | Snooze) -> None:
    async def give() -> object:
        return signal

    async def throw() -> object:
        raise signal

    expected = Cancelled("enough") if isinstance(signal, Cancel) else Snoozed(5 * SECOND)
    assert await outcome_of(give, transparent) == await outcome_of(throw, transparent) == expected


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_timeout_of_the_handler_is_one_to_the_middleware_too(*, in_thread: bool) -> None:
    late = threading.Event()
    seen: list[str] = []

    async def wait() -> None:
        await asyncio.Event().wait()

    def wait_in_thread() -> str:
        late.wait(0.05)
        return "too late"

    async def look(job: JobContext, call: Call) -> object:
        try:
            return await call()
        except TimeoutError as error:
            seen.append(str(error))
            raise

    outcome = await outcome_of(wait_in_thread if in_thread else wait, look, timeout=10 * MILLISECOND)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, seen) == ("timeout", ["timed out after 10 milliseconds"])


async def test_a_run_is_cancelled_wherever_it_is() -> None:
    async def endless() -> None:
        entered.set()
        await asyncio.Event().wait()

    async def slow(job: JobContext, call: Call) -> object:
        entered.set()
        await asyncio.Event().wait()
        return await call()

    cause = Cancelled("by a user")
    for function, middleware in ((endless, transparent), (answer, slow)):
        entered = asyncio.Event()
        run = Run(claim(), started_at=0)
        running = asyncio.create_task(executor_of(function, middleware).execute(run))
        run.task = cast("asyncio.Task[None]", running)
        await asyncio.wait_for(entered.wait(), 5)
        run.stop(cause)
        assert await asyncio.wait_for(running, 5) == cause


async def test_a_stop_before_the_handler_is_called_keeps_it_from_being_called() -> None:
    called: list[int] = []

    async def call_it() -> None:
        called.append(1)

    async def late(job: JobContext, call: Call) -> object:
        run.stopping = cause
        return await call()

    cause = Cancelled("by a user")
    run = Run(claim(), started_at=0)
    assert await executor_of(call_it, late).execute(run) == cause
    assert called == []


async def test_what_a_child_process_came_to_passes_as_json_and_as_errors() -> None:
    outcomes: list[Outcome] = [Succeeded("[1]"), Failed(error="boom", traceback="line 1"), Snoozed(SECOND)]
    seen: list[object] = []

    async def in_child(run: Run, handler: Handler) -> Outcome:
        return outcome

    async def look(job: JobContext, call: Call) -> object:
        try:
            value = await call()
        except (JobFailed, Snooze) as error:
            seen.append(type(error))
            raise
        seen.append(value)
        return value

    handler = Handler(
        name="task",
        function=answer_in_thread,
        is_async=False,
        options=TaskOptions(cpu=True),
        arguments=Arguments(answer_in_thread, task="task"),
    )
    for outcome in outcomes:
        assert await call_through([look], in_child, Run(claim(), started_at=0), handler) is outcome
    assert seen == [[1], JobFailed, Snooze]


def plain(job: JobContext, call: Call) -> object: ...
async def too_few(job: JobContext) -> object: ...


class Fitting:
    async def __call__(self, job: JobContext, call: Call) -> object:
        return await call()


@pytest.mark.parametrize("function", [plain, too_few, 3, print])
def test_what_cannot_be_middleware_is_refused(function: Any) -> None:
    with pytest.raises(InvalidTask, match="async def middleware"):
        check_middleware(function)


def test_objects_can_be_middleware() -> None:
    check_middleware(Fitting())
    check_middleware(transparent)
