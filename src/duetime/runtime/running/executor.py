"""Calls the handler of one claim, through middleware, in the event loop, a thread or a child process; tells what came of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import msgspec

from duetime.errors import InvalidArguments, InvalidTask, JobError, JobFailed
from duetime.model.outcome import (
    Cancel,
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Snooze,
    Snoozed,
    Succeeded,
)
from duetime.model.secrets import secret_texts
from duetime.model.time import SECOND, Micros
from duetime.runtime.error_text import describe_error
from duetime.runtime.running.call_outcome import (
    outcome_of_error,
    outcome_of_value,
    timeout_outcome,
    undecodable_outcome,
)
from duetime.runtime.running.children.messages import RunJob
from duetime.runtime.running.children.process import ChildPool
from duetime.runtime.running.context import JobContext
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.resolving import prepared, warn_of_timeout
from duetime.runtime.running.run import Run, current_run
from duetime.runtime.running.threads import ThreadRunner

log = logging.getLogger("duetime.worker")


Middleware: TypeAlias = Callable[[JobContext, Callable[[], Awaitable[object]]], Awaitable[object]]
InnerCall: TypeAlias = Callable[[Run, Handler], Coroutine[Any, Any, Outcome]]


class Executor:
    """Calls handlers: coroutines in the loop, plain functions in threads, or in child processes where they ask."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        threads: ThreadRunner,
        children: ChildPool | None = None,
        *,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self._handlers = handlers
        self._threads = threads
        self._children = ChildPool(handlers) if children is None else children
        self._middleware = middleware

    def execute(self, run: Run) -> Coroutine[Any, Any, Outcome]:
        """Call the handler of a run and turn whatever happens into an outcome."""
        handler = self._handlers[run.claim.task]
        if handler.around or handler.dependencies is not None:
            handler = prepared(handler, self._threads)
        run.timeout = handler.options.timeout if run.claim.timeout is None else run.claim.timeout
        if secrets := handler.arguments.secrets:
            run.secrets = secret_texts(run.claim.payload, secrets)
        current_run.set(run)
        call = self._in_child if handler.options.cpu else self._call
        if self._middleware:
            return call_through(self._middleware, call, run, handler)
        return call(run, handler)

    async def _call(self, run: Run, handler: Handler) -> Outcome:
        try:
            args, kwargs = handler.arguments.decode(run.claim.payload)
        except InvalidArguments as error:
            return undecodable_outcome(error)
        try:
            if not handler.is_async:
                return await self._in_thread(run, partial(handler.function, *args, **kwargs))
            run.interruptible = True
            if run.timeout is None:
                return outcome_of_value(await handler.function(*args, **kwargs))
            return await _with_timeout(handler.function(*args, **kwargs), run.timeout)
        except asyncio.CancelledError as error:
            return run.stopping or outcome_of_error(error)
        except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
            return outcome_of_error(error)
        finally:
            run.interruptible = False

    async def _in_thread(self, run: Run, call: partial[object]) -> Outcome:
        """Wait until the thread has really ended, also past the timeout: nothing can kill it."""
        future = self._threads.submit(call)
        if run.timeout is None:
            return await future
        done, _ = await asyncio.wait({future}, timeout=run.timeout / SECOND)
        if done:
            return future.result()
        warn_of_timeout(run)
        await asyncio.wait({future})
        return timeout_outcome(run.timeout)

    async def _in_child(self, run: Run, handler: Handler) -> Outcome:
        """Run a job in a child process; only that child is killed, at the timeout or when the run is asked to stop."""
        try:
            address = self._children.address(handler)
            job = RunJob(address, run.claim, run.started_at, run.timeout, run.lock_fence)
            child = self._children.lend()
        except OSError as error:
            log.error("no child process can be started for %s: %s", handler.name, error)  # noqa: TRY400 - says it all
            return Released(wait=SECOND)
        except InvalidTask as error:
            return outcome_of_error(error)
        except Exception as error:  # noqa: BLE001 - whatever is odd about this process
            return Failed(error=f"no child process can be started: {describe_error(error)}")
        try:
            run.on_stop = child.stop
            run.interruptible = True
            return await child.call(job)
        except TimeoutError:
            return timeout_outcome(run.timeout or 0)
        except asyncio.CancelledError as error:
            return run.stopping or outcome_of_error(error)
        finally:
            run.interruptible = False
            run.on_stop = None
            await self._children.take_back(child)


async def _with_timeout(call: Coroutine[Any, Any, object], timeout: Micros) -> Outcome:
    scope = asyncio.timeout(timeout / SECOND)
    try:
        async with scope:
            return outcome_of_value(await call)
    except TimeoutError as error:
        # Where the handler stood when it was cancelled is in the error that the timeout replaced.
        return timeout_outcome(timeout, error.__context__) if scope.expired() else outcome_of_error(error)


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
        raise InvalidTask(f"middleware is `async def middleware(job, call)`; {function!r:.100} is not")


async def call_through(
    middleware: Sequence[Middleware], inner: InnerCall, run: Run, handler: Handler
) -> Outcome:
    """Call a handler through the middleware, the first outermost, and tell what came of it all."""
    passage = _HandlerCall(inner, run, handler)
    call: Callable[[], Awaitable[object]] = passage.call
    job = JobContext(run)
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
        outcome = self.outcome
        if isinstance(outcome, Failed) and outcome.reason == "timeout":
            self.value, self.error = _NOTHING, TimeoutError(outcome.error)
        elif isinstance(outcome, Succeeded) and self.value is _NOTHING:
            # It was called in another process.
            self.value = None if outcome.result is None else msgspec.json.decode(outcome.result)
        elif self.value is _NOTHING and self.error is None:
            self.error = _error_of(outcome)
        if self.error is not None:
            raise self.error
        return self.value

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


def _error_of(outcome: Outcome) -> Exception:
    """Return what to raise for an outcome of which no exception is known."""
    match outcome:
        case Failed():
            return JobFailed(outcome.error, error=outcome.error, traceback=outcome.traceback)
        case Cancelled() | Interrupted():
            return Cancel(outcome.reason)
        case Snoozed():
            return Snooze(timedelta(microseconds=outcome.wait))
        case _:
            return JobError("the handler could not be called")
