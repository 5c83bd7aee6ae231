"""Workers as a client sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duetime.errors import InvalidOption, WorkerGone
from duetime.model.ids import GivenId, new_job_id, read_id
from duetime.model.job import JobId
from duetime.model.stored.jobs import StoredWorker
from duetime.model.text import check_reason
from duetime.model.time import SECOND, Duration, Micros, describe_duration, parse_duration, to_datetime
from duetime.model.worker import Command, CommandKind, NewCommand
from duetime.scheduler.audit import entry_about
from duetime.scheduler.explanations import WorkerExplanation, explain_worker
from duetime.scheduler.lookup import check_limit, find_worker, growing_pauses
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.stores.base import Store

DEFAULT_WAIT = "10s"


class Workers:
    """Reads workers and tells them what to do.

    Each verb waits for the worker's answer and returns it; with `wait=0` it returns `None` as soon as the
    command is stored. A worker that does not answer in time keeps the command: `TimeoutError` says so.
    """

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def get(self, worker_id: GivenId) -> WorkerRecord:
        """Return one worker; raises `WorkerNotFound`."""
        return WorkerRecord.from_stored(await self._stored(worker_id))

    async def pause(
        self,
        worker_id: GivenId,
        *,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
        by: str | None = None,
    ) -> str | None:
        """Have a worker start nothing more; what runs goes on, and what it had claimed goes back."""
        return await self._tell(worker_id, CommandKind.PAUSE, reason=reason, wait=wait, by=by)

    async def resume(
        self, worker_id: GivenId, *, wait: Duration = DEFAULT_WAIT, by: str | None = None
    ) -> str | None:
        """Have a paused worker start jobs again."""
        return await self._tell(worker_id, CommandKind.RESUME, wait=wait, by=by)

    async def stop(
        self,
        worker_id: GivenId,
        *,
        now: bool = False,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
        by: str | None = None,
    ) -> str | None:
        """Have a worker stop as after a signal: its jobs have the grace time to end, with `now` they have none."""
        kind = CommandKind.STOP_NOW if now else CommandKind.STOP
        return await self._tell(worker_id, kind, reason=reason, wait=wait, by=by)

    async def stop_job(
        self,
        worker_id: GivenId,
        job_id: GivenId,
        *,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
        by: str | None = None,
    ) -> str | None:
        """Have a worker cancel one job that it runs."""
        job = read_id(job_id)
        return await self._tell(worker_id, CommandKind.STOP_JOB, job=job, reason=reason, wait=wait, by=by)

    async def stacks(self, worker_id: GivenId, *, wait: Duration = DEFAULT_WAIT) -> str:
        """Return where all threads and tasks of a worker stand, also when its event loop is blocked."""
        if not parse_duration(wait, what="wait"):
            raise InvalidOption("stacks() is its answer: wait must be longer than 0")
        return await self._tell(worker_id, CommandKind.STACKS, wait=wait) or ""

    async def commands(self, worker_id: GivenId, *, limit: int = 20) -> list[CommandRecord]:
        """Return what a worker was told last and what came of it, newest first."""
        most, worker = check_limit(limit), await self._stored(worker_id)
        return [CommandRecord.from_row(one) for one in await self._store().commands_of(worker.id, limit=most)]

    async def explain(self, worker_id: GivenId) -> WorkerExplanation:
        """Tell what a worker was told and has come to, and why it takes no jobs; raises `WorkerNotFound`."""
        return await explain_worker(self._store(), read_id(worker_id))

    async def list(self) -> list[WorkerRecord]:
        """Return all workers that are known, newest first; those that are gone are kept for a while."""
        return [WorkerRecord.from_stored(worker) for worker in await self._store().workers()]

    async def _tell(
        self,
        worker_id: GivenId,
        kind: CommandKind,
        *,
        wait: Duration,
        job: JobId | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> str | None:
        limit = parse_duration(wait, what="wait")
        reason = None if reason is None else check_reason(reason)
        new = NewCommand(id=new_job_id(), worker=read_id(worker_id), kind=kind, job=job, reason=reason)
        # What only looks changes nothing.
        looks = kind is CommandKind.STACKS
        noted = {} if looks else {new.id: entry_about("worker", new.worker, kind, by, job=job, reason=reason)}
        if not await self._store().send([new], noted=noted):
            raise _worker_gone(await self._stored(worker_id), kind)
        return (await self._answer(new, limit)).outcome if limit else None

    async def _answer(self, sent: NewCommand, limit: Micros) -> Command:
        pauses = growing_pauses()
        try:
            async with asyncio.timeout(limit / SECOND):
                # Another process answers, by way of the store.
                while not (found := await self._store().commands([sent.id])) or found[0].done_at is None:  # noqa: ASYNC110
                    await asyncio.sleep(next(pauses))
        except TimeoutError:
            silent = f"worker {sent.worker} has not answered {sent.kind} within {describe_duration(limit)}"
            raise TimeoutError(f"{silent}; it will be carried out when the worker comes to it") from None
        if found[0].dropped:
            raise _worker_gone(await self._stored(sent.worker), sent.kind)
        return found[0]

    async def _stored(self, worker_id: GivenId) -> StoredWorker:
        return find_worker(await self._store().workers(), read_id(worker_id))


def _worker_gone(worker: StoredWorker, kind: str) -> WorkerGone:
    since = worker.lease_until if worker.state == "stopped" else worker.beat_at
    how = "stopped at" if worker.state == "stopped" else "is dead, last heard of at"
    moment = to_datetime(since).isoformat(timespec="seconds")
    return WorkerGone(f"worker {worker.id} on {worker.host} {how} {moment}; {kind} was not carried out")
