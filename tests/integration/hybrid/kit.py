"""A scheduler on a store that is made of several, and ways to see in which of them its jobs live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from duetime import Limit, Scheduler
from duetime.model.job import JobId
from duetime.runtime.worker import Worker
from duetime.runtime.worker_group import WorkerGroup
from duetime.scheduler.task import AsyncTask
from tests.integration import kit

PATIENCE = 20


class Split:
    """An application whose plain jobs live near, and whose others live far."""

    def __init__(self, url: str) -> None:
        self.scheduler = scheduler = Scheduler(url)
        self.ran: list[str] = []
        self.gate = asyncio.Event()

        @scheduler.task(name="plain")
        async def plain(name: str) -> str:
            self.ran.append(name)
            return name

        @scheduler.task(name="once", on_crash="fail")
        async def once(name: str) -> str:
            self.ran.append(name)
            return name

        @scheduler.task(name="wait")
        async def wait(name: str) -> str:
            self.ran.append(name)
            await self.gate.wait()
            return name

        @scheduler.task(name="wait_once", on_crash="fail")
        async def wait_once(name: str) -> str:
            return await wait(name)

        @scheduler.task(name="limited", limit=Limit(1))
        async def limited() -> None:
            """Wait for its turn."""

        @scheduler.task(name="broken", retries=1)
        async def broken() -> None:
            raise ZeroDivisionError

        self.near, self.far = plain, once
        self.near_wait, self.far_wait = wait, wait_once
        self.limited, self.broken = limited, broken

    async def places(self, ids: Iterable[JobId]) -> list[list[int]]:
        """In which parts of the store each job is, by number from near to far."""
        wanted, parts = list(ids), self.scheduler.store.parts
        found = [{job.id for job in await part.get(wanted)} for part in parts]
        return [[number for number, ids in enumerate(found) if job_id in ids] for job_id in wanted]

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncIterator[WorkerGroup]:
        """Run a worker; what waits ends with it."""
        async with self.scheduler, self.scheduler.worker(**{"retention": None, **settings}) as worker:
            assert not isinstance(worker, Worker)
            try:
                yield worker
            finally:
                self.gate.set()


def task_of(split: Split, half: str) -> AsyncTask[[str], str]:
    """The task whose jobs live in a half."""
    return split.near if half == "near" else split.far


def waiting_of(split: Split, half: str) -> AsyncTask[[str], str]:
    """The same, of jobs that wait."""
    return split.near_wait if half == "near" else split.far_wait


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    await kit.until(condition, within=PATIENCE, what="what the test waits for")
