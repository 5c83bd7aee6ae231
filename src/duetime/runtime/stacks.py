"""Where every thread and every task stands, as text; safe to ask from any thread, also while the loop is blocked."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, TypeAlias

LONGEST = 100_000
"""The most characters of an answer."""
_DEEPEST = 40
"""The most frames of one stack that are shown: the innermost."""

AnyTask: TypeAlias = "asyncio.Task[Any]"


def describe_stacks(loop: asyncio.AbstractEventLoop, jobs: Mapping[AnyTask, str]) -> str:
    """Show all threads, then the tasks of jobs under the names given, then all other tasks."""
    # Sorted by whether it is ours, so that what is cut off at the end matters least.
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: (task not in jobs, task.get_name()))
    parts = [*_threads(), *(_task(task, jobs.get(task)) for task in tasks)]
    return _cut("\n".join(parts))


def _threads() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    # Underscore or not, it is the documented way to another thread's stack.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for ident, frame in frames.items():
        yield f"thread {names.get(ident, ident)}\n{_show(_outwards(frame))}"


def _task(task: AnyTask, job: str | None) -> str:
    name = task.get_name() if job is None else job
    coroutine = task.get_coro()
    if getattr(coroutine, "cr_running", False):
        return f"task {name}\n  running; its stack is that of its thread\n"
    return f"task {name}\n{_show(_inwards(coroutine))}"


def _outwards(frame: FrameType) -> traceback.StackSummary:
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=_DEEPEST)
    stack.reverse()
    return stack


def _inwards(awaited: Any) -> traceback.StackSummary:
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
    return traceback.StackSummary.extract(iter(frames[-_DEEPEST:]))


def _show(stack: traceback.StackSummary) -> str:
    return "".join(stack.format()) or "  (no stack)\n"


def _cut(text: str) -> str:
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}\n… and {left} characters more"
