"""Notices from another thread that the event loop stands still, and shows where every thread and task stands."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeAlias

from duetime.model.time import SECOND, Micros
from duetime.runtime.store_clock import monotonic

log = logging.getLogger("duetime.worker")

BLOCK_LIMIT: Micros = 1 * SECOND
HANG_LIMIT: Micros = 300 * SECOND


PERIOD = 1.0
"""Seconds from one look to the next."""
QUIET_PERIOD = 10.0
"""The same while no job runs: no job can block the loop then, and an idle process should sleep.

As long as it is from one heartbeat to the next, which has the thread awake anyway.
"""
_QUIET_SIGN: Micros = 30 * SECOND
"""How long ago the last sign of life may be while no job runs."""


class LoopWatch:
    """Asks the loop for a sign of life once a period."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_hang: Callable[[], None]) -> None:
        """Call `on_hang` once the hang limit is passed."""
        self._loop = loop
        self._on_hang = on_hang
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._asked_last: Micros = 0
        self._reported = False
        self._gave_up = False
        self.lag: Micros = 0

    def ask(self, *, quiet: bool = False) -> None:
        """Ask for a sign of life, unless one is being waited for, or no job runs and the last is not long ago."""
        now = monotonic()
        if self._asked_at is None and not (quiet and now < self._asked_last + _QUIET_SIGN):
            self._asked_last = now
            self._ask(now)

    def hanging(self) -> bool:
        """Look once; report a blocked loop with its stack, and tell whether it is past the hang limit."""
        asked_at = self._asked_at
        if asked_at is None:
            return False
        self.lag = monotonic() - asked_at
        if self.lag >= BLOCK_LIMIT and not self._reported:
            self._reported = True
            self._report()
        if self.lag >= HANG_LIMIT and not self._gave_up:
            self._gave_up = True
            self._on_hang()
        return self._gave_up

    def _ask(self, now: Micros) -> None:
        self._asked_at = now
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            self._asked_at = None

    def _answer(self) -> None:
        if self._reported and self._asked_at is not None:
            log.warning("the event loop runs again after %.1f s", (monotonic() - self._asked_at) / SECOND)
        self._asked_at = None
        self._reported = self._gave_up = False
        self.lag = 0

    def _report(self) -> None:
        # Underscore or not, it is the documented way to another thread's stack.
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (no stack)\n"
        log.error(
            "the event loop has been blocked for %.1f s: an async task must await, or be a plain function "
            "that runs in a thread. It is at:\n%s",
            self.lag / SECOND,
            stack,
        )


MAX_STACKS_TEXT = 100_000
"""The most characters of an answer."""
_MAX_FRAMES = 40
"""The most frames of one stack that are shown: the innermost."""

AnyTask: TypeAlias = "asyncio.Task[Any]"


def describe_stacks(loop: asyncio.AbstractEventLoop, jobs: Mapping[AnyTask, str]) -> str:
    """Show all threads, then the tasks of jobs under the names given, then all other tasks."""
    # Sorted by whether it is ours, so that what is cut off at the end matters least.
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: (task not in jobs, task.get_name()))
    parts = [*_thread_stacks(), *(_task_stack(task, jobs.get(task)) for task in tasks)]
    return _cut_text("\n".join(parts))


def _thread_stacks() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    # Underscore or not, it is the documented way to another thread's stack.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for ident, frame in frames.items():
        yield f"thread {names.get(ident, ident)}\n{_format_stack(_thread_frames(frame))}"


def _task_stack(task: AnyTask, job: str | None) -> str:
    name = task.get_name() if job is None else job
    coroutine = task.get_coro()
    if getattr(coroutine, "cr_running", False):
        return f"task {name}\n  running; its stack is that of its thread\n"
    return f"task {name}\n{_format_stack(_awaited_frames(coroutine))}"


def _thread_frames(frame: FrameType) -> traceback.StackSummary:
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=_MAX_FRAMES)
    stack.reverse()
    return stack


def _awaited_frames(awaited: Any) -> traceback.StackSummary:
    """Follow what a coroutine awaits, as far as Python shows it: not through asynchronous generators."""
    frames: list[tuple[FrameType, int]] = []
    while awaited is not None:
        if inspect.iscoroutine(awaited):
            frame, inner = awaited.cr_frame, awaited.cr_await
        elif inspect.isgenerator(awaited):
            frame, inner = awaited.gi_frame, awaited.gi_yieldfrom
        else:
            break
        if frame is None:
            break
        frames.append((frame, frame.f_lineno))
        awaited = inner
    return traceback.StackSummary.extract(iter(frames[-_MAX_FRAMES:]))


def _format_stack(stack: traceback.StackSummary) -> str:
    return "".join(stack.format()) or "  (no stack)\n"


def _cut_text(text: str) -> str:
    left = len(text) - MAX_STACKS_TEXT
    return text if left <= 0 else f"{text[:MAX_STACKS_TEXT]}\n… and {left} characters more"
