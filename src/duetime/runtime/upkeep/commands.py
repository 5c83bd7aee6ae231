"""Carries out what a worker is told through the store, once and with an answer; shows where its threads and tasks stand."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.model.text import counted, one_line, printable
from duetime.model.worker import Command, CommandId, CommandKind, WorkerId
from duetime.runtime.error_text import describe_error
from duetime.stores.base import CommandStore

if TYPE_CHECKING:
    from duetime.runtime.worker import Worker
    from duetime.runtime.worker_group import WorkerGroup

log = logging.getLogger("duetime.worker")


class CommandRunner:
    """Takes commands in the pulse's thread and has them carried out in the worker's loop.

    What was begun is remembered until its answer is stored, so that nothing is done twice when the store's
    answers are lost. Stacks are answered without the loop, which may be what is stuck.
    """

    def __init__(
        self,
        store: CommandStore,
        worker: Worker | WorkerGroup,
        *,
        in_loop: Callable[[Callable[[Command], None], Command], None],
        on_answer: Callable[[], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._in_loop = in_loop
        self._on_answer = on_answer
        self._begun: set[CommandId] = set()
        self._answers: dict[CommandId, str] = {}

    @property
    def answered(self) -> list[CommandId]:
        """The commands whose outcome is known and not reported."""
        return list(self._answers)

    async def attend(self, worker: WorkerId) -> None:
        """Begin what the worker was told and has not begun."""
        for command in await self._store.take_commands(worker):
            if command.id in self._begun:
                continue
            self._begun.add(command.id)
            if command.kind == CommandKind.STACKS:
                self._carry_out(command)
            else:
                self._in_loop(self._carry_out, command)

    async def report(self, answered: Iterable[CommandId]) -> None:
        """Store what has come of these commands."""
        for command_id in answered:
            await self._store.finish_command(command_id, self._answers[command_id])
            del self._answers[command_id]
            self._begun.discard(command_id)

    def _carry_out(self, command: Command) -> None:
        try:
            outcome = carry_out(command, self._worker)
        except Exception as error:
            log.exception("the command %s failed", command.kind)
            outcome = f"it failed: {describe_error(error)}"
        self._answers[command.id] = outcome
        self._on_answer()


def carry_out(command: Command, worker: Worker | WorkerGroup) -> str:
    """Do what a command says and tell what came of it."""
    why = "" if command.reason is None else f": {one_line(command.reason)}"
    log.info("told to %s%s", printable(command.kind.replace("_", " ")), why)
    job_id = command.job or ""
    match command.kind:
        case CommandKind.PAUSE:
            running = worker.pause(command.reason, since=command.taken_at or command.created_at)
            answer = f"paused; {counted(running, 'job')} still running"
        case CommandKind.RESUME:
            answer = "resumed" if worker.resume() else "it was not paused"
        case CommandKind.STOP:
            answer = (
                f"stopping; {counted(worker.ask_to_stop(now=False), 'job')} may end within the grace time"
            )
        case CommandKind.STOP_NOW:
            answer = f"stopping; {counted(worker.ask_to_stop(now=True), 'job')} cancelled"
        case CommandKind.STOP_JOB:
            found = worker.stop_job(job_id, command.reason)
            answer = f"job {job_id} is asked to stop" if found else f"it does not have job {job_id}"
        case CommandKind.RELEASE_JOB:
            found = worker.release_job(job_id)
            answer = f"job {job_id} is given back" if found else f"it does not hold job {job_id} unstarted"
        case CommandKind.STACKS:
            answer = worker.stacks()
        case kind:
            answer = f"this worker does not know the command {kind!r}; it may be older than the process that sent it"
    return answer


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
    text = "\n".join(parts)
    left = len(text) - MAX_STACKS_TEXT
    return text if left <= 0 else f"{text[:MAX_STACKS_TEXT]}\n… and {left} characters more"


def _thread_stacks() -> Iterator[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    # Underscore or not, it is the documented way to another thread's stack.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for ident, frame in frames.items():
        yield f"thread {names.get(ident, ident)}\n{_format_stack(traceback.extract_stack(frame, limit=_MAX_FRAMES))}"


def _task_stack(task: AnyTask, job: str | None) -> str:
    name = task.get_name() if job is None else job
    coroutine = task.get_coro()
    if getattr(coroutine, "cr_running", False):
        return f"task {name}\n  running; its stack is that of its thread\n"
    return f"task {name}\n{_format_stack(_awaited_frames(coroutine))}"


def _awaited_frames(awaited: Any) -> traceback.StackSummary:
    """Follow what a coroutine awaits, as far as Python shows it: not through asynchronous generators."""
    frames: list[tuple[FrameType, int]] = []
    while awaited is not None:
        frame, inner = None, None
        if inspect.iscoroutine(awaited):
            frame, inner = awaited.cr_frame, awaited.cr_await
        elif inspect.isgenerator(awaited):
            frame, inner = awaited.gi_frame, awaited.gi_yieldfrom
        if frame is None:
            break
        frames.append((frame, frame.f_lineno))
        awaited = inner
    return traceback.StackSummary.extract(iter(frames[-_MAX_FRAMES:]))


def _format_stack(stack: traceback.StackSummary) -> str:
    return "".join(stack.format()) or "  (no stack)\n"
