"""Calls plain functions in threads."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as Answer
from contextvars import Context, copy_context
from functools import partial
from typing import TypeAlias, TypeVar

from duetime.model.outcome import Outcome
from duetime.runtime.running.call_outcome import outcome_of_call

T = TypeVar("T")


class ThreadRunner:
    """Calls functions in reusable threads, as many at once as are asked for."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_ThreadCall | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._answers: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._delivering = False
        """Whether the loop was asked to pass on the answers: once for many, since waking it costs a system call."""

    @property
    def busy(self) -> bool:
        """Whether any thread is at work."""
        with self._lock:
            return self._idle < self._threads

    def submit(self, function: Callable[[], object]) -> asyncio.Future[Outcome]:
        """Call the function in a thread now and return a future of what came of it."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._threads += 1
                name = f"duetime-sync-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._calls.put((future, copy_context(), function))
        return future

    async def call(self, function: Callable[[], T], *, on_timeout: Callable[[], None] | None = None) -> T:
        """Call the function in a thread, and return or raise what it does; a cancellation waits until it has ended."""
        answer: Answer[T] = Answer()
        ended = self.submit(partial(_fulfil, answer, function))
        interrupted: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait({ended})
            except asyncio.CancelledError as error:
                interrupted = error
                if on_timeout is not None:
                    on_timeout()
        if interrupted is not None:
            raise interrupted
        return answer.result()

    def close(self) -> None:
        """Let threads end after what they run now."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _deliver(self) -> None:
        self._delivering = False
        while self._answers:
            future, outcome = self._answers.popleft()
            if not future.cancelled():
                future.set_result(outcome)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, context, function = call
            self._answers.append((future, context.run(outcome_of_call, function)))
            loop = future.get_loop()
            # An idle thread would keep the arguments and the outcome, whose exception leads back to this frame.
            del call, future, context, function
            if not self._delivering:
                # `_deliver` unsets this before it looks for answers, so it finds this one otherwise.
                self._delivering = True
                # The loop of a worker that was stopped without this thread may be closed; then no one waits.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._deliver)
            with self._lock:
                self._idle += 1


def _fulfil(answer: Answer[T], function: Callable[[], T]) -> None:
    try:
        answer.set_result(function())
    except BaseException as error:  # noqa: BLE001 - seen by the caller that waits for the answer
        answer.set_exception(error)


_ThreadCall: TypeAlias = tuple[asyncio.Future[Outcome], Context, Callable[[], object]]
