"""Code around every execution: it sees the job before and after, and may change what comes of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import msgspec

from duetime.errors import InvalidTask, JobError, JobFailed
from duetime.model.outcome import Cancel, Cancelled, Failed, Interrupted, Outcome, Snooze, Snoozed, Succeeded
from duetime.runtime.running.call_outcome import outcome_of_error, outcome_of_value
from duetime.runtime.running.context import JobContext, current_job
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run, current_run

Middleware: TypeAlias = Callable[[JobContext, Callable[[], Awaitable[object]]], Awaitable[object]]
InnerCall: TypeAlias = Callable[[Run, Handler], Coroutine[Any, Any, Outcome]]

_NOTHING = object()


def check_middleware(function: Middleware) -> None:
    """Raise `InvalidTask` unless it can be called as middleware is."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    try:
        fits = inspect.iscoroutinefunction(called)
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        text = f"middleware is `async def middleware(job, call)`; {function!r:.100} is not"
        raise InvalidTask(text)


async def call_through(
    middleware: Sequence[Middleware], inner: InnerCall, run: Run, handler: Handler
) -> Outcome:
    """Call a handler through the middleware, the first outermost, and tell what came of it all."""
    current_run.set(run)
    passage = _HandlerCall(inner, run, handler)
    call: Callable[[], Awaitable[object]] = passage.call
    job = current_job()
    for function in reversed(middleware):
        call = partial(function, job, call)
    run.interruptible = True
    try:
        value = await call()
    except BaseException as error:  # noqa: BLE001 - as in a handler
        if error is passage.error and passage.outcome is not None:
            return passage.outcome
        if isinstance(error, asyncio.CancelledError) and run.stopping is not None:
            return run.stopping
        return outcome_of_error(error)
    finally:
        run.interruptible = False
    if value is passage.value and passage.outcome is not None:
        return passage.outcome
    return outcome_of_value(value)


class _HandlerCall:
    """The innermost call: the handler itself, and what it came to."""

    def __init__(self, inner: InnerCall, run: Run, handler: Handler) -> None:
        self.outcome: Outcome | None = None
        self.value: object = _NOTHING
        self.error: BaseException | None = None
        self._inner = inner
        self._run = run
        self._handler = handler

    async def call(self) -> object:
        """Call the handler; return what it returned or raise what it raised."""
        self.value, self.error = _NOTHING, None
        if self._run.stopping is not None:
            self.outcome = self._run.stopping
        else:
            # The executor knows where a run may be cancelled inside the handler; here, anywhere.
            self._run.interruptible = False
            self.outcome = await self._inner(self._run, self._watched())
            self._run.interruptible = True
        if isinstance(self.outcome, Succeeded) and self.value is _NOTHING:
            # It was called in another process.
            self.value = None if self.outcome.result is None else msgspec.json.decode(self.outcome.result)
        if self.value is not _NOTHING and not _is_timeout(self.outcome):
            return self.value
        self.value = _NOTHING
        self.error = _as_error(self.outcome, self.error)
        raise self.error

    def _watched(self) -> Handler:
        """Return the handler with an eye on what it returns and raises."""
        function = self._handler.function

        async def watch_async(*args: Any, **kwargs: Any) -> object:
            try:
                self.value = await function(*args, **kwargs)
            except BaseException as error:
                self.error = error
                raise
            return self.value

        def watch(*args: Any, **kwargs: Any) -> object:
            try:
                self.value = function(*args, **kwargs)
            except BaseException as error:
                self.error = error
                raise
            return self.value

        if self._handler.options.cpu:
            return self._handler
        return replace(self._handler, function=watch_async if self._handler.is_async else watch)


def _is_timeout(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.reason == "timeout"


def _as_error(outcome: Outcome, error: BaseException | None) -> BaseException:
    """Return what to raise for an outcome: what the handler raised, where that is known."""
    if error is not None and not _is_timeout(outcome):
        return error
    match outcome:
        case Failed(reason="timeout"):
            return TimeoutError(outcome.error)
        case Failed():
            return JobFailed(outcome.error, error=outcome.error, traceback=outcome.traceback)
        case Cancelled() | Interrupted():
            return Cancel(outcome.reason)
        case Snoozed():
            return Snooze(timedelta(microseconds=outcome.wait))
        case _:
            return JobError("the handler could not be called")
