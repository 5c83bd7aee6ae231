"""Runs tasks at the moment they are enqueued."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from duetime.errors import InvalidOption
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.scheduler.scheduler import Scheduler
from duetime.testing.draining import Shift

_LOOK = 0.005


class inline:  # noqa: N801 - it is used like a function: `async with inline(scheduler):`
    """While the block lasts, `enqueue` runs what is due before it returns, and raises what a task raises.

    Everything else is as ever: arguments go through JSON and the database, and a job with a delay stays pending.
    A task that raised is not tried again.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._shifts: list[Shift] = []
        self._told: set[JobId] = set()
        """The jobs whose errors came out of an `enqueue`."""

    def __enter__(self) -> Self:
        if self._scheduler.after_enqueue is not None:
            raise InvalidOption("the scheduler runs its tasks inline already")
        self._scheduler.after_enqueue = self._run
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._scheduler.after_enqueue = None

    async def __aenter__(self) -> Self:
        self.__enter__()
        try:
            await self._scheduler.open()
        except BaseException:
            self.__exit__()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.__exit__()
        await self._scheduler.close()

    async def _run(self, ids: Sequence[JobId]) -> None:
        async with Shift(self._scheduler, retries=False) as shift:
            self._shifts.append(shift)
            try:
                await self._finish(shift, ids)
                calls = [
                    *shift.calls,
                    *(call for other in self._shifts for call in other.calls if call.job_id in ids),
                ]
            finally:
                self._shifts.remove(shift)
        failed = {call.job_id: call.error for call in calls if call.job_id not in self._told}
        for job in await self._scheduler.store.get(list(failed)):
            if job.failures and (error := failed[job.id]) is not None:
                self._told.add(job.id)
                raise error

    async def _finish(self, shift: Shift, ids: Sequence[JobId]) -> None:
        """Run what is due; of a task inside a task, the shift that runs the outer one may get the inner one first."""
        await shift.run_due()
        while any(job.state is State.RUNNING for job in await self._scheduler.store.get(ids)):
            await asyncio.sleep(_LOOK)
            await shift.run_due()
