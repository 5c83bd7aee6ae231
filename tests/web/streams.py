"""Readers of the live stream, in this process: no client of tests reads an answer that does not end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

OK: Final = 200
PATIENCE: Final = 20
"""Far more than an event takes; what is not there by then does not come."""
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Read(NamedTuple):
    """An event as it was read."""

    id: str
    kind: str
    said: dict[str, Any]


class Reader:
    """Reads a stream, as fast as it is allowed to."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.text = ""
        """All that has come."""
        self.told: list[dict[str, Any]] = []
        """What was told of jobs, as far as it was looked at."""
        self.ended = asyncio.Event()
        self.left = asyncio.Event()
        """Set it to leave."""
        self.may_read = asyncio.Event()
        """Clear it to read no more."""
        self.may_read.set()
        self.begun = asyncio.Event()
        self._events: asyncio.Queue[Read] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        """Tell the application what the client does."""
        if not self.begun.is_set():
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take what the application sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.begun.set()
            return
        await self.may_read.wait()
        text = message["body"].decode()
        self.text += text
        for part in text.split("\n\n") if self.status == OK else ():
            lines = dict(line.split(": ", 1) for line in part.splitlines())
            if "event" in lines:
                self._events.put_nowait(Read(lines["id"], lines["event"], json.loads(lines["data"])))
        if not message.get("more_body"):
            self.ended.set()

    async def next(self, *kinds: str) -> Read:
        """Return the next event, or the next of some kinds."""
        async with asyncio.timeout(PATIENCE):
            while (event := await self._events.get()).kind not in (kinds or (event.kind,)):
                self._keep(event)
            self._keep(event)
            return event

    def _keep(self, event: Read) -> None:
        if event.kind == "jobs":
            self.told += event.said.get("items", ())

    async def job(self, job_id: str, *states: str) -> dict[str, Any]:
        """Return what is told of a job once it is in one of some states."""
        while True:
            for item in self.told:
                if item["id"] == job_id and (not states or item["state"] in states):
                    return item
            await self.next("jobs")

    async def end(self) -> None:
        """Wait until the application has ended the stream."""
        async with asyncio.timeout(PATIENCE):
            await self.ended.wait()


@asynccontextmanager
async def reading(
    app: Any, user: str | None = "ada admin", *, headers: Mapping[str, str] = NO_HEADERS, begun: bool = True
) -> AsyncGenerator[Reader]:
    """Read the stream until the block ends; `begun`: wait for its first event, unless it goes on from an earlier one."""
    said = dict(headers) | ({} if user is None else {"x-user": user})
    named = {"host": "localhost"} | {name.lower(): value for name, value in said.items()}
    reader = Reader()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/v1/events",
        "raw_path": b"/api/v1/events",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    task = asyncio.create_task(app(scope, reader.receive, reader.send))
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.begun.wait()
        if begun and reader.status == OK:
            await reader.next("open", "resync", "down")
        yield reader
    finally:
        reader.left.set()
        reader.may_read.set()
        async with asyncio.timeout(PATIENCE):
            await task
