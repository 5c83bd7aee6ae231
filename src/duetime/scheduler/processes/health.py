"""Whether a process is well: what it tells by itself over HTTP where there is no web server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from duetime.errors import ConfigError, StoreError
from duetime.runtime.worker import Worker
from duetime.runtime.worker_group import WorkerGroup
from duetime.scheduler.schedules import Schedules
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")

_LONGEST_HEAD: Final = 16 * 1024
_PATIENCE: Final = 5.0
"""Seconds for a request to come in, and for the database to answer."""

Report: TypeAlias = tuple[HTTPStatus, Mapping[str, Any]]


async def readiness(store: Callable[[], Store]) -> Report:
    """Tell whether the database answers."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await store().now()
    except (StoreError, TimeoutError):
        return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "the database does not answer"}
    return HTTPStatus.OK, {"status": "ok"}


async def schedule_health(schedules: Schedules, *, queues: frozenset[str] | None = None) -> Report:
    """Tell which schedules are overdue."""
    late = [
        {"name": one.name, "next_at": one.next_at.isoformat(), "late": one.late.total_seconds()}
        for one in await schedules.overdue(queues=queues)
    ]
    return HTTPStatus.SERVICE_UNAVAILABLE if late else HTTPStatus.OK, {"overdue": late}


class HealthReports:
    """What a worker's process answers: GET and HEAD of three paths."""

    def __init__(
        self, worker: Worker | WorkerGroup, store: Callable[[], Store], schedules: Schedules
    ) -> None:
        self._worker = worker
        self._store = store
        self._schedules = schedules
        self._paths: Mapping[str, Callable[[], Awaitable[Report]]] = {
            "/live": self._live,
            "/ready": self._ready,
            "/health/schedules": self._late,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(2 * _PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head.partition(b"\r\n")[0].decode("latin-1")))
                await writer.drain()
        writer.close()

    async def _answer(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        status, said = await self._report(method, rest.partition(" ")[0].partition("?")[0])
        body = json.dumps(said).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == "HEAD" else body)

    async def _report(self, method: str, path: str) -> Report:
        if (report := self._paths.get(path)) is None:
            return HTTPStatus.NOT_FOUND, {"status": f"there are {', '.join(self._paths)}"}
        if method not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, {"status": "GET it"}
        try:
            return await report()
        except StoreError:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "the database does not answer"}

    async def _live(self) -> Report:
        # That it is answered says that the event loop runs.
        return HTTPStatus.OK, {"status": "ok"}

    async def _ready(self) -> Report:
        if not self._worker.is_working:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "the worker is stopping"}
        return await readiness(self._store)

    async def _late(self) -> Report:
        return await schedule_health(self._schedules)


@asynccontextmanager
async def serve_health(reports: HealthReports, host: str, port: int) -> AsyncGenerator[int]:
    """Answer questions about health for as long as the block runs; it is given the port."""
    try:
        server = await asyncio.start_server(reports.serve, host, port, limit=_LONGEST_HEAD)
    except OSError as error:
        raise ConfigError(
            f"health cannot be told on {host}:{port}: {error.strerror}; choose another port"
        ) from None
    bound: int = server.sockets[0].getsockname()[1]
    log.info("health: http://%s:%d/live, /ready and /health/schedules", host, bound)
    async with server:
        yield bound
