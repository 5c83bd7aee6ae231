"""Celery on Redis."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from celery import Celery
from celery.signals import worker_ready

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Command, Job, Plan, Settings, Unsupported, first_job, piped, record

_QUEUE = "celery"
_DAY = 86_400


class Adapter(base.Adapter):
    """An app with the task that everyone runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        logging.getLogger("celery").setLevel(logging.ERROR)
        self._app = Celery("peers", broker=url)
        self._app.conf.update(
            task_ignore_result=True,
            worker_enable_remote_control=False,
            worker_hijack_root_logger=False,
            broker_connection_retry_on_startup=True,
        )

        @self._app.task(name="note")
        def note(number: int, due: float) -> None:
            record(number, due)

        self._note: Any = note

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        yield Client(self.url, self._note)

    async def work(self, ready: Callable[[], None], settings: Settings) -> None:
        worker_ready.connect(lambda **_: ready(), weak=False)
        self._app.conf.worker_prefetch_multiplier = settings.concurrency
        self._app.Worker(
            pool="prefork",
            concurrency=1,
            loglevel="ERROR",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        ).start()


class Client(base.Client):
    """Calls that block, and so are made one after the other; there is no bulk call."""

    def __init__(self, url: str, task: Any) -> None:
        self._url = url
        self._task = task

    async def put(self, job: Job) -> None:
        self._task.apply_async(job)

    async def put_at(self, job: Job) -> None:
        """Send one message with its due time, which workers take at once and hold in memory."""
        self._task.apply_async(job, eta=datetime.fromtimestamp(job.due, UTC))

    async def fill(self, count: int) -> None:
        # Here, since the memory of workers is measured, and this is not theirs.
        from redis import Redis

        await self.put_at(first_job())
        with Redis.from_url(self._url) as client:
            piped(self._url, _like(client.lindex(_QUEUE, 0), count - 1))

    async def schedules(self, plan: Plan) -> list[float]:
        """Refuse: its intervals begin when beat does and drift, and its cron rules go by the minute."""
        raise Unsupported("no schedules at seconds of their own")


def _like(stored: bytes, count: int) -> Iterator[Command]:
    message = json.loads(stored)
    headers, properties = message["headers"], message["properties"]
    first = time.time() + _DAY
    for n in range(count):
        name = f"later{n}"
        eta = datetime.fromtimestamp(first + n, UTC).isoformat()
        copy = {
            **message,
            "headers": {**headers, "id": name, "root_id": name, "eta": eta},
            "properties": {**properties, "correlation_id": name, "delivery_tag": name},
        }
        yield "LPUSH", _QUEUE, json.dumps(copy)
