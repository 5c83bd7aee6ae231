"""taskiq on Redis."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from taskiq import TaskiqScheduler
from taskiq.api import run_receiver_task, run_scheduler_task
from taskiq_redis import ListRedisScheduleSource, RedisStreamBroker

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, Unsupported, first_job, piped, record

_DAY = 86_400


class Adapter(base.Adapter):
    """A broker that acknowledges, and a source for jobs that come later."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("taskiq").setLevel(logging.ERROR)
        self._broker = RedisStreamBroker(url)
        self._source = ListRedisScheduleSource(url)

        @self._broker.task(task_name="note")
        async def note(number: int, due: float) -> None:
            record(number, due)

        self._note: Any = note

    async def prepare(self) -> None:
        """Declare the group of consumers: it reads nothing that was sent before."""
        await self._broker.startup()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        await self._broker.startup()
        await self._source.startup()
        yield Client(self.url, self._note, self._source)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Run a receiver, and a scheduler that looks for jobs that come later as often as it can."""
        await self._broker.startup()
        ready()
        looks = timedelta(seconds=1) if settings.eager else None
        await asyncio.gather(
            run_receiver_task(self._broker, max_async_tasks=settings.concurrency),
            run_scheduler_task(TaskiqScheduler(self._broker, [self._source]), interval=looks),
        )


class Client(base.Client):
    """Kicks tasks; there is no bulk call."""

    def __init__(self, url: str, task: Any, source: Any) -> None:
        self._url = url
        self._task = task
        self._source = source

    async def put(self, job: Job) -> None:
        await self._task.kiq(*job)

    async def put_at(self, job: Job) -> None:
        await self._task.schedule_by_time(self._source, _moment(job.due), *job)

    async def fill(self, count: int) -> None:
        first = first_job()
        made = await self._task.schedule_by_time(self._source, _moment(first.due), *first)
        piped(self._url, _like(made.task.model_dump(mode="json"), count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        """Refuse: intervals begin when the scheduler does, and cron rules go by the minute."""
        raise Unsupported("no schedules at seconds of their own")


def _moment(due: float) -> datetime:
    return datetime.fromtimestamp(due, UTC)


def _like(stored: dict[str, Any], count: int) -> Iterator[Command]:
    first = time.time() + _DAY
    for n in range(count):
        at = _moment(first + n)
        name = f"later{n}"
        copy = {**stored, "schedule_id": name, "time": at.isoformat()}
        yield "SET", f"schedule:data:{name}", pickle.dumps(copy)
        yield "RPUSH", f"schedule:time:{at:%Y-%m-%dT%H:%M}", name
