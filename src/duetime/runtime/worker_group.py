"""One worker of a process for a store that is made of several: it has a lease in each of them, and one set of slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from duetime.errors import StoreLost
from duetime.model.job import JobId
from duetime.model.time import Instant
from duetime.model.worker import WorkerId, WorkerStats
from duetime.runtime.options import WorkerOptions
from duetime.runtime.running.slots import Slots
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.commands import AnyTask
from duetime.runtime.upkeep.firing import Declarations
from duetime.runtime.worker import Worker
from duetime.stores.base import Store

_PATIENCE: Final = 0.05
"""Seconds for which a free slot is left to the one who is next in line; its store may not answer."""


class WorkerGroup:
    """A worker for each part of a store; what one of them is told, all do.

    Where one store is down, the worker of another goes on.
    """

    def __init__(
        self,
        parts: Sequence[Store],
        make_worker: Callable[..., Worker],
        options: WorkerOptions,
        *,
        declared: Declarations | None = None,
        where: Callable[[], str] = lambda: "a store",
    ) -> None:
        """The last part is the one with schedules and transactions, and its worker the one that tells of itself."""
        *others, last = parts

        def name(number: int) -> Callable[[], str]:
            return lambda: f"part {number} of {len(parts)} of {where()}"

        self._lead = lead = make_worker(last, options=options, declared=declared, where=name(len(parts)))
        unscheduled = replace(options, schedules=False)
        more = [
            make_worker(part, options=unscheduled, where=name(number), lead=lead)
            for number, part in enumerate(others, 1)
        ]
        self._workers = (lead, *more)
        for worker in self._workers:
            worker.whole = self
        self._looks: dict[Worker, int] = {}
        """How many runs had ended when a worker last found nothing due."""
        self._turn = 0
        self._patience: asyncio.TimerHandle | None = None

    @property
    def id(self) -> WorkerId:
        """The worker's present id; one that has lost its lease in another part has another id there."""
        return self._lead.id

    @property
    def options(self) -> WorkerOptions:
        """How it works."""
        return self._lead.options

    @property
    def lost(self) -> StoreLost | None:
        """Why it has stopped by itself, if the file of a store was deleted or replaced."""
        return next((worker.lost for worker in self._workers if worker.lost is not None), None)

    @property
    def health(self) -> ServiceHealth:
        """Which of its services fail, in any part."""
        whole = ServiceHealth()
        for worker in self._workers:
            whole.failing |= worker.health.failing
            whole.last_error = whole.last_error or worker.health.last_error
        return whole

    @property
    def is_working(self) -> bool:
        """Whether all of them take jobs, or would if they were not paused."""
        return all(worker.is_working for worker in self._workers)

    @property
    def used_up(self) -> bool:
        """Whether it has run as many jobs as it was to run."""
        return self._lead.used_up

    @property
    def ended(self) -> int:
        """How many runs have ended."""
        return sum(worker.ended for worker in self._workers)

    async def start(self) -> None:
        """Register everywhere and begin to work; raises when one of the stores cannot be reached or used."""
        self._told_to_stop = asyncio.Event()
        started: list[Worker] = []
        try:
            # The lead first, whose id and slots the others share.
            for worker in self._workers:
                worker.assemble()
                worker.slots.on_left_over = self.slot_freed
            for worker in self._workers:
                await worker.start()
                started.append(worker)
        except BaseException:
            await asyncio.gather(*(worker.stop() for worker in started))
            raise

    async def stop(self) -> asyncio.Task[None] | None:
        """Stop as a single worker does; if threads do not end, a task is returned that ends when all have."""
        lingering = await asyncio.gather(*(worker.stop() for worker in self._workers))
        if not (left := [task for task in lingering if task is not None]):
            return None

        async def end() -> None:
            await asyncio.wait(left)

        return asyncio.create_task(end(), name="duetime-lingering-workers")

    async def drained(self) -> None:
        """Wait until nothing runs any more, or what does was given up."""
        await asyncio.gather(*(worker.drained() for worker in self._workers))

    async def asked_to_stop(self) -> None:
        """Wait until it stops by itself: told by a command, or because it has run what it was to run."""
        await self._told_to_stop.wait()

    def ask_to_stop(self, *, now: bool) -> int:
        """Stop as after a signal; return how many jobs still run."""
        self._told_to_stop.set()
        return sum([worker.ask_to_stop(now=now) for worker in self._workers])

    def hurry(self) -> None:
        """Cut the grace time short."""
        for worker in self._workers:
            worker.hurry()

    def pause(self, reason: str | None, *, since: Instant) -> int:
        """Claim nothing more; return how many jobs go on."""
        return sum([worker.pause(reason, since=since) for worker in self._workers])

    def resume(self) -> bool:
        """Claim again; False when it was not paused."""
        resumed = [worker.resume() for worker in self._workers]
        return any(resumed)

    def stop_job(self, job_id: JobId, reason: str | None) -> bool:
        """Cancel one job that it has; False when it has not."""
        return any(worker.stop_job(job_id, reason) for worker in self._workers)

    def release_job(self, job_id: JobId) -> bool:
        """Give one job back that has not started; False when it has no such job."""
        return any(worker.release_job(job_id) for worker in self._workers)

    def stacks(self) -> str:
        """Show where everything stands."""
        return self._lead.stacks()

    def tasks_of_jobs(self) -> Mapping[AnyTask, str]:
        """Return what runs in the event loop, and which jobs that are."""
        return {task: job for worker in self._workers for task, job in worker.tasks_of_jobs().items()}

    def stats(self) -> WorkerStats:
        """Tell how it fares, with all stores together."""
        return reduce(WorkerStats.plus, [worker.stats() for worker in self._workers])

    def slot_freed(self) -> None:
        """Tell all that a slot is free, each time beginning with another; who is next in line has to take it soon."""
        self._turn = (self._turn + 1) % len(self._workers)
        for worker in (*self._workers[self._turn :], *self._workers[: self._turn]):
            worker.slot_freed()
        if self._patience is None and (waiting := self._lead.slots.next_in_line) is not None:
            self._patience = asyncio.get_running_loop().call_later(_PATIENCE, self._wait_no_longer, waiting)

    def nothing_due(self, worker: Worker, ended: int) -> None:
        """Stop when nothing is due anywhere: since the last run has ended, all have looked."""
        self._looks[worker] = ended
        if self.stats().running:
            return
        late = [one for one in self._workers if self._looks.get(one) != self.ended]
        for one in late:
            one.look_again()
        if not late:
            self.ask_to_stop(now=False)

    async def run_out(self) -> None:
        """Claim nothing more, and wait until nothing runs any more."""
        await asyncio.gather(*(worker.run_out() for worker in self._workers))

    def _wait_no_longer(self, waiting: Slots) -> None:
        self._patience = None
        waiting.leave_line()
