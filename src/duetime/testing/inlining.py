"""Runs tasks at the moment they are enqueued."""

from __future__ import annotations

from typing import Self

from duetime.errors import InvalidOption
from duetime.scheduler import Scheduler
from duetime.testing.draining import Shift


class inline:  # noqa: N801 - it is used like a function: `async with inline(scheduler):`
    """While the block lasts, `enqueue` runs what is due before it returns, and raises what a task raises.

    Everything else is as ever: arguments go through JSON and the database, and a job with a delay stays pending.
    A task that raised is not tried again.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __enter__(self) -> Self:
        if self._scheduler.after_enqueue is not None:
            text = "the scheduler runs its tasks inline already"
            raise InvalidOption(text)
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

    async def _run(self) -> None:
        async with Shift(self._scheduler, retries=False) as shift:
            await shift.run_due()
        failed = {call.job_id: call.error for call in shift.calls}
        for job in await self._scheduler.store.get(list(failed)):
            if job.failures and (error := failed[job.id]) is not None:
                raise error
