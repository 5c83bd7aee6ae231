"""Huey, a task queue of threads: on SQLite, where they poll, and on Redis."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from huey import RedisHuey, SqliteHuey

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Job, Plan, Settings, Unsupported, record

_EAGER = {"initial_delay": 0.01, "max_delay": 0.05}
_ADD = "insert into schedule (queue, data, timestamp) values (?, ?, ?)"


class Adapter(base.Adapter):
    """A Huey with the task that everyone runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("huey").setLevel(logging.ERROR)
        self._huey = self.opened()

        @self._huey.task()
        def note(number: int, due: float) -> None:
            record(number, due)

        self._note = note

    def opened(self) -> Any:
        """Return a Huey on its database."""
        return SqliteHuey("peers", filename=self.path, results=False, fsync=True)

    async def prepare(self) -> None:
        """Nothing: it has made its tables."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        yield self.asking(self._huey, self._note)

    def asking(self, queue: Any, note: Any) -> Client:
        """Return the client of a task."""
        return Client(queue, note)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        """Run a consumer, which ends by SIGTERM; one worker thread, since more only wait for each other's commits."""
        polling = _EAGER if settings.eager else {}
        consumer = self._huey.create_consumer(workers=1, periodic=False, **polling)
        ready()
        consumer.run()


class Client(base.Client):
    """Calls that block, and so are made one after the other."""

    def __init__(self, huey: Any, note: Any) -> None:
        self._huey = huey
        self._note = note

    async def put(self, job: Job) -> None:
        self._note(*job)

    async def put_at(self, job: Job) -> None:
        self._note.schedule(args=job, eta=datetime.fromtimestamp(job.due, UTC))

    async def fill(self, count: int) -> None:
        """Write the rows that the consumer writes when it meets a job for later."""
        rows = ((self._huey.name, data, stamp) for data, stamp in self._later(count))
        with self._huey.storage.db(commit=True) as cursor:
            cursor.executemany(_ADD, rows)

    async def schedules(self, plan: Plan) -> list[float]:
        raise Unsupported("schedules by the minute only")

    def _later(self, count: int) -> Iterator[tuple[bytes, float]]:
        first = datetime.now(UTC) + timedelta(days=1)
        for n in range(count):
            eta = first + timedelta(seconds=n)
            task = self._note.s(n, eta.timestamp(), eta=eta)
            # It keeps naive times in UTC, and stores their stamp as if they were local.
            yield self._huey.serialize_task(task), task.eta.timestamp()


class OnRedis(Adapter):
    """The same on Redis, where threads wait for new jobs in the server."""

    def opened(self) -> Any:
        """Return a Huey on its database."""
        return RedisHuey("peers", url=self.url, results=False)

    def asking(self, queue: Any, note: Any) -> RedisClient:
        """Return the client of a task."""
        return RedisClient(self.url, queue, note)


class RedisClient(Client):
    """Calls that block, and so are made one after the other."""

    def __init__(self, url: str, queue: Any, note: Any) -> None:
        super().__init__(queue, note)
        self._url = url

    async def fill(self, count: int) -> None:
        # Here, since the memory of workers is measured, and this is not theirs.
        from benchmarks.peers.systems.base import piped

        key = self._huey.storage.schedule_key
        piped(self._url, (("ZADD", key, stamp, data) for data, stamp in self._later(count)))
