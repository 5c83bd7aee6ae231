"""Carries out what a worker is told through the store: once, and with an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from duetime.model.job import JobId
from duetime.model.text import one_line, printable
from duetime.model.time import Instant
from duetime.model.worker import Command, CommandId, CommandKind, WorkerId
from duetime.runtime.error_text import describe_error
from duetime.stores.base import CommandStore

log = logging.getLogger("duetime.worker")


class CommandTarget(Protocol):
    """What can be asked of a worker, in its own event loop."""

    def pause(self, reason: str | None, *, since: Instant) -> int:
        """Claim nothing more and give unstarted claims back; return how many jobs go on."""
        ...

    def resume(self) -> bool:
        """Claim again; False when it was not paused."""
        ...

    def ask_to_stop(self, *, now: bool) -> int:
        """Stop as after a signal, `now` without the grace time; return how many jobs still run."""
        ...

    def stop_job(self, job_id: JobId, reason: str | None) -> bool:
        """Cancel one job that this worker has; False when it has not."""
        ...

    def release_job(self, job_id: JobId) -> bool:
        """Give one job back that has not started; False when this worker has no such job."""
        ...

    def stacks(self) -> str:
        """Show where everything stands; called from the pulse's thread."""
        ...


class CommandRunner:
    """Takes commands in the pulse's thread and has them carried out in the worker's loop.

    What was begun is remembered until its answer is stored, so that nothing is done twice when the store's
    answers are lost. Stacks are answered without the loop, which may be what is stuck.
    """

    def __init__(
        self,
        *,
        store: CommandStore,
        worker: CommandTarget,
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


def carry_out(command: Command, worker: CommandTarget) -> str:
    """Do what a command says and tell what came of it."""
    why = "" if command.reason is None else f": {one_line(command.reason)}"
    log.info("told to %s%s", printable(command.kind.replace("_", " ")), why)
    match command.kind:
        case CommandKind.PAUSE:
            running = worker.pause(command.reason, since=command.taken_at or command.created_at)
            return f"paused; {_count_jobs(running)} still running"
        case CommandKind.RESUME:
            return "resumed" if worker.resume() else "it was not paused"
        case CommandKind.STOP | CommandKind.STOP_NOW:
            now = command.kind == CommandKind.STOP_NOW
            running = worker.ask_to_stop(now=now)
            return (
                f"stopping; {_count_jobs(running)} {'cancelled' if now else 'may end within the grace time'}"
            )
        case CommandKind.STOP_JOB | CommandKind.RELEASE_JOB:
            return _move_job(command, worker)
        case CommandKind.STACKS:
            return worker.stacks()
        case _:
            return f"this worker does not know the command {command.kind!r}; it may be older than the process that sent it"


def _move_job(command: Command, worker: CommandTarget) -> str:
    job_id = command.job or ""
    if command.kind == CommandKind.STOP_JOB:
        found = worker.stop_job(job_id, command.reason)
        return f"job {job_id} is asked to stop" if found else f"it does not have job {job_id}"
    found = worker.release_job(job_id)
    return f"job {job_id} is given back" if found else f"it does not hold job {job_id} unstarted"


def _count_jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
