"""The verbs of workers for callers without an event loop."""

from __future__ import annotations

from duetime.model.durations import Duration
from duetime.model.job import JobId
from duetime.model.worker import WorkerId
from duetime.scheduler.portal import Portal
from duetime.scheduler.records import CommandRecord, WorkerRecord
from duetime.scheduler.workers import DEFAULT_WAIT, Workers


class BlockingWorkers:
    """Reads workers and tells them what to do."""

    def __init__(self, workers: Workers, portal: Portal) -> None:
        self._workers = workers
        self._portal = portal

    def get(self, worker_id: WorkerId) -> WorkerRecord:
        """Return one worker; raises `WorkerNotFound`."""
        return self._portal.run(self._workers.get(worker_id))

    def commands(self, worker_id: WorkerId, *, limit: int = 20) -> list[CommandRecord]:
        """Return what a worker was told last and what came of it, newest first."""
        return self._portal.run(self._workers.commands(worker_id, limit=limit))

    def pause(
        self, worker_id: WorkerId, *, reason: str | None = None, wait: Duration = DEFAULT_WAIT
    ) -> str | None:
        """Have a worker start nothing more."""
        return self._portal.run(self._workers.pause(worker_id, reason=reason, wait=wait))

    def resume(self, worker_id: WorkerId, *, wait: Duration = DEFAULT_WAIT) -> str | None:
        """Have a paused worker start jobs again."""
        return self._portal.run(self._workers.resume(worker_id, wait=wait))

    def stop(
        self,
        worker_id: WorkerId,
        *,
        now: bool = False,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
    ) -> str | None:
        """Have a worker stop as after a signal."""
        return self._portal.run(self._workers.stop(worker_id, now=now, reason=reason, wait=wait))

    def stop_job(
        self,
        worker_id: WorkerId,
        job_id: JobId,
        *,
        reason: str | None = None,
        wait: Duration = DEFAULT_WAIT,
    ) -> str | None:
        """Have a worker cancel one job that it runs."""
        return self._portal.run(self._workers.stop_job(worker_id, job_id, reason=reason, wait=wait))

    def stacks(self, worker_id: WorkerId, *, wait: Duration = DEFAULT_WAIT) -> str:
        """Return where all threads and tasks of a worker stand."""
        return self._portal.run(self._workers.stacks(worker_id, wait=wait))

    def list(self) -> list[WorkerRecord]:
        """Return all workers that are known, newest first."""
        return self._portal.run(self._workers.list())
