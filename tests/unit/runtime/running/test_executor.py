from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any, cast

from duetime import Cancel, Snooze, current_job
from duetime.model.outcome import (
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Snoozed,
    Succeeded,
)
from duetime.model.task import TaskOptions
from duetime.model.time import MILLISECOND, SECOND
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run, StopCause
from duetime.runtime.running.threads import ThreadRunner
from tests.unit.runtime.kit import claim


def executor_of(function: Callable[..., Any], **options: Any) -> Executor:
    handler = Handler(
        name="task",
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        options=TaskOptions(**options),
        arguments=Arguments(function, task="task"),
    )
    return Executor({"task": handler}, ThreadRunner())


async def outcome_of(function: Callable[..., Any], payload: str = "{}", **options: Any) -> Outcome:
    return await executor_of(function, **options).execute(Run(claim(payload=payload), started_at=0))


async def stopped_in(function: Callable[..., Any], entered: asyncio.Event, *causes: StopCause) -> Outcome:
    """Run a handler, ask it to stop once it has entered, and return what came of it."""
    run = Run(claim(), started_at=0)
    running = asyncio.create_task(executor_of(function).execute(run))
    run.task = cast("asyncio.Task[None]", running)
    await asyncio.wait_for(entered.wait(), 5)
    for cause in causes:
        run.stop(cause)
    return await asyncio.wait_for(running, 5)


async def test_what_a_handler_returns_is_its_result() -> None:
    async def double(number: int) -> int:
        return number * 2

    def double_in_thread(number: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return number * 2

    assert await outcome_of(double, '{"number": 21}') == Succeeded("42")
    assert await outcome_of(double_in_thread, '{"number": 21}') == Succeeded("42")


async def test_a_payload_that_does_not_fit_is_a_final_failure() -> None:
    def count(number: int) -> None: ...

    outcome = await outcome_of(count, '{"number": "x"}')
    assert isinstance(outcome, Failed)
    assert (outcome.final, outcome.reason) == (True, "undecodable")


async def test_a_failure_shows_the_handlers_own_lines_only() -> None:
    def fail() -> None:
        raise LookupError("nothing here")

    outcome = await outcome_of(fail)
    assert isinstance(outcome, Failed)
    assert outcome.error == "LookupError: nothing here"
    assert outcome.traceback is not None
    assert "in fail\n" in outcome.traceback
    assert "/executor.py" not in outcome.traceback


async def test_signals_of_coroutines_and_threads_are_understood() -> None:
    async def snooze() -> None:
        raise Snooze("5s")

    def snooze_in_thread() -> Snooze:
        return Snooze("5s")

    def cancel_in_thread() -> None:
        raise Cancel("enough")

    assert await outcome_of(snooze) == Snoozed(5 * SECOND)
    assert await outcome_of(snooze, timeout=SECOND) == Snoozed(5 * SECOND)
    assert await outcome_of(snooze_in_thread) == Snoozed(5 * SECOND)
    assert await outcome_of(cancel_in_thread) == Cancelled("enough")


async def test_a_jobs_own_timeout_rules_over_the_tasks() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    run = Run(claim(timeout=10 * MILLISECOND), started_at=0)
    outcome = await executor_of(wait, timeout=3600 * SECOND).execute(run)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.error) == ("timeout", "timed out after 10 milliseconds")


async def test_a_coroutine_is_cancelled_with_the_reason_that_was_given_first() -> None:
    entered = asyncio.Event()

    async def wait() -> None:
        entered.set()
        await asyncio.Event().wait()

    first, second = Cancelled("by a user"), Interrupted(reason="a stop")
    assert await stopped_in(wait, entered, first, second) == first


async def test_a_handler_that_finishes_in_spite_of_a_cancellation_has_finished() -> None:
    entered = asyncio.Event()

    async def stubborn() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"
        return "never"

    assert await stopped_in(stubborn, entered, Cancelled("by a user")) == Succeeded('"done anyway"')


async def test_a_thread_that_sees_the_request_can_end_by_itself() -> None:
    entered, asked = threading.Event(), threading.Event()

    def look() -> None:
        job = current_job()
        job.check_cancelled()
        assert not job.cancel_requested
        entered.set()
        assert asked.wait(5)
        assert job.cancel_requested
        job.check_cancelled()

    run = Run(claim(), started_at=0)
    running = asyncio.create_task(executor_of(look).execute(run))
    await asyncio.to_thread(entered.wait, 5)
    run.stop(Interrupted(reason="a stop"))
    asked.set()
    assert await asyncio.wait_for(running, 5) == Cancelled("a stop")


async def test_a_handler_that_fails_while_it_is_cancelled_has_failed() -> None:
    entered = asyncio.Event()

    async def clumsy() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("while cleaning up")

    outcome = await stopped_in(clumsy, entered, Cancelled("by a user"))
    assert isinstance(outcome, Failed)
    assert outcome.error == "OSError: while cleaning up"


async def test_a_thread_cannot_be_stopped_and_its_result_counts() -> None:
    entered, loop, go_on = asyncio.Event(), asyncio.get_running_loop(), threading.Event()

    def wait() -> str:
        loop.call_soon_threadsafe(entered.set)
        go_on.wait(5)
        return "ended"

    run = Run(claim(), started_at=0)
    running = asyncio.create_task(executor_of(wait).execute(run))
    run.task = cast("asyncio.Task[None]", running)
    await asyncio.wait_for(entered.wait(), 5)
    run.stop(Interrupted(reason="a stop"))
    await asyncio.sleep(0.01)
    assert not running.done()
    go_on.set()
    assert await asyncio.wait_for(running, 5) == Succeeded('"ended"')


async def test_threads_are_used_again_and_as_many_as_are_needed() -> None:
    runner, barrier = ThreadRunner(), threading.Barrier(3)
    # Each waits for the others: with fewer threads than functions this would never end.
    together = [runner.submit(lambda: barrier.wait(5)) for _ in range(3)]
    assert {*await asyncio.gather(*together)} == {Succeeded("0"), Succeeded("1"), Succeeded("2")}
    names = [await runner.submit(lambda: threading.current_thread().name) for _ in range(20)]
    assert set(names) <= {Succeeded(f'"duetime-sync-{number}"') for number in range(1, 5)}
    runner.close()
