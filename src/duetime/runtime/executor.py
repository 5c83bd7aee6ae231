"""Runs one claim and tells what came of it; knows no store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from duetime.errors import InvalidArguments, InvalidTask
from duetime.model.instants import SECOND, Micros
from duetime.model.outcome import Cancelled, Failed, Outcome, Released, Settled, Succeeded
from duetime.model.shown import one_line
from duetime.runtime.children.pool import ChildPool
from duetime.runtime.context import current
from duetime.runtime.failure import describe_error
from duetime.runtime.handler import Handler
from duetime.runtime.middleware import Middleware, call_through
from duetime.runtime.run import Run, Verdict
from duetime.runtime.threads import Raised, ThreadRunner
from duetime.runtime.verdict import raised, returned, timed_out, undecodable

log = logging.getLogger("duetime.worker")


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

    async def execute(self, run: Run) -> Outcome | Settled:
        """Call the handler of a claim and turn whatever happens into an outcome."""
        claim = run.claim
        handler = self._handlers.get(claim.task)
        if handler is None:
            return Released(wait=SECOND)
        options = handler.options
        run.timeout = options.timeout if claim.timeout is None else claim.timeout
        call = self._in_child if options.cpu else self._call
        if self._middleware:
            outcome = await call_through(self._middleware, call, run, handler)
        else:
            outcome = await call(run, handler)
        if run.verdict is not None:
            return _decided_before(run, run.verdict, outcome)
        if run.stopping is not None and isinstance(outcome, Cancelled):
            # Whoever asked it to stop knows what that means: the end of the job, or another try elsewhere.
            return run.stopping
        return outcome

    async def _call(self, run: Run, handler: Handler) -> Outcome:
        try:
            args, kwargs = handler.arguments.decode(run.claim.payload)
        except InvalidArguments as error:
            return undecodable(error)
        timeout = run.timeout
        current.set(run)
        try:
            if not handler.is_async:
                return await self._in_thread(run, partial(handler.function, *args, **kwargs), timeout)
            run.interruptible = True
            if timeout is None:
                return returned(await handler.function(*args, **kwargs))
            return await _in_time(handler.function(*args, **kwargs), timeout)
        except asyncio.CancelledError as error:
            return run.stopping or raised(error)
        except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
            return raised(error)
        finally:
            run.interruptible = False

    async def _in_thread(self, run: Run, call: partial[object], timeout: Micros | None) -> Outcome:
        """Wait until the thread has really ended, also past the timeout: nothing can kill it."""
        future = self._threads.submit(call)
        if timeout is None:
            return _delivered(await future)
        done, _ = await asyncio.wait({future}, timeout=timeout / SECOND)
        if done:
            return _delivered(future.result())
        log.warning(
            "%s (job %s) runs past its timeout; a thread cannot be killed, so its slot stays taken until it ends",
            run.claim.task,
            run.claim.job_id,
        )
        await asyncio.wait({future})
        return timed_out(timeout)

    async def _in_child(self, run: Run, handler: Handler) -> Outcome:
        """Wait for a child, which is killed, alone, at the timeout or when the run is asked to stop."""
        current.set(run)
        try:
            from duetime.runtime.children.messages import Job

            job = Job(self._children.address(handler), run.claim, run.started_at, run.timeout)
            child = self._children.lend()
        except OSError as error:
            log.error("no child process can be started for %s: %s", handler.name, error)  # noqa: TRY400 - says it all
            return Released(wait=SECOND)
        except InvalidTask as error:
            return raised(error)
        except Exception as error:  # noqa: BLE001 - whatever is odd about this process
            return Failed(error=f"no child process can be started: {describe_error(error)}")
        try:
            run.on_stop = child.stop
            run.interruptible = True
            return await child.call(job)
        except TimeoutError:
            return timed_out(run.timeout or 0)
        except asyncio.CancelledError as error:
            return run.stopping or raised(error)
        finally:
            run.interruptible = False
            run.on_stop = None
            await self._children.take_back(child)


def _decided_before(run: Run, verdict: Verdict, outcome: Outcome) -> Outcome | Settled:
    """Return what the handler's transaction came to, and mention what the handler did after its end."""
    if isinstance(verdict, Settled) and not isinstance(outcome, Succeeded):
        log.warning(
            "job %s of %s was done when its transaction was committed; what came after that changes nothing: %s",
            run.claim.job_id,
            run.claim.task,
            one_line(getattr(outcome, "error", None) or str(outcome)),
        )
    return verdict


async def _in_time(call: Coroutine[Any, Any, object], timeout: Micros) -> Outcome:
    scope = asyncio.timeout(timeout / SECOND)
    try:
        async with scope:
            return returned(await call)
    except TimeoutError as error:
        # Where the handler stood when it was cancelled is in the error that the timeout replaced.
        return timed_out(timeout, error.__context__) if scope.expired() else raised(error)


def _delivered(result: object) -> Outcome:
    # An exception comes out of a thread as a value: raised here, a StopIteration would become something else.
    return raised(result.take()) if isinstance(result, Raised) else returned(result)
