"""Requests a second of the API and of the bare application, served alike and asked in turn."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import uvicorn

from benchmarks import children
from benchmarks.api.bare import bare
from benchmarks.places import fill
from benchmarks.subject import TICK, Subject

CONNECTIONS = (1, 16)
_PORTS = {"api": 18_431, "bare": 18_432}
_BODY = json.dumps({"task": TICK, "arguments": {"number": 1}}).encode()
_WARM = 0.2
"""The part of a turn before what is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What one kind of request came to, medians over the turns."""

    what: str
    connections: int
    api: float
    """Requests a second."""
    bare: float
    ratio: float


def measure(url: str, *, turns: int, seconds: float) -> list[Rate]:
    """Ask both, in turn, on a database that has no tables yet."""
    children.run(fill, url=url, future=0)
    token, job_id = children.run(prepare, url=url)
    asked = {
        "POST": (_request("POST", "{}", token, _BODY), 201),
        "GET": (_request("GET", "{}/" + job_id, token), 200),
    }
    found: list[Rate] = []
    with ExitStack() as stack:
        paths = {name: stack.enter_context(_served(name, url)) for name in _PORTS}
        for what, (request, status) in asked.items():
            for connections in CONNECTIONS:
                pairs = [
                    [
                        _rate(_PORTS[name], request(path), status, connections, seconds)
                        for name, path in (paths.items() if turn % 2 else reversed(paths.items()))
                    ][:: 1 if turn % 2 else -1]
                    for turn in range(turns)
                ]
                api, limit = (statistics.median(one) for one in zip(*pairs, strict=True))
                ratio = statistics.median(one / other for one, other in pairs)
                found.append(Rate(what=what, connections=connections, api=api, bare=limit, ratio=ratio))
    return found


async def prepare(*, url: str) -> tuple[str, str]:
    """In a child: make a token, and a job that is asked for."""
    async with Subject(url).scheduler as scheduler:
        token = await scheduler.tokens.add("benchmark", role="operator")
        job = await scheduler.enqueue_by_name(TICK, {"number": 1}, delay="1d")
        return token.secret, job.id


async def serve(*, name: str, url: str) -> None:
    """In a child: serve one of the applications until told to stop."""
    app = bare(url) if name == "bare" else Subject(url).scheduler.api()
    server = uvicorn.Server(
        uvicorn.Config(app, port=_PORTS[name], log_level="warning", access_log=False)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(children.ready_then_wait)
    server.should_exit = True
    await serving


@contextmanager
def _served(name: str, url: str) -> Iterator[str]:
    with children.started(serve, name=name, url=url) as child:
        child.wait_ready()
        yield "/jobs" if name == "bare" else "/api/v1/jobs"
        child.finish()


def _request(method: str, path: str, token: str, body: bytes = b"") -> Callable[[str], bytes]:
    def at(jobs: str) -> bytes:
        head = [
            f"{method} {path.format(jobs)} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {token}",
            *([f"Content-Type: application/json\r\nContent-Length: {len(body)}"] if body else []),
        ]
        return "\r\n".join([*head, "", ""]).encode() + body

    return at


def _rate(port: int, request: bytes, status: int, connections: int, seconds: float) -> float:
    counts: Sequence[float] = asyncio.run(_ask(port, request, status, connections, seconds))
    return sum(counts) / seconds


async def _ask(port: int, request: bytes, status: int, connections: int, seconds: float) -> Sequence[float]:
    start = time.perf_counter() + seconds * _WARM
    return await asyncio.gather(
        *(_keep_asking(port, request, status, start, start + seconds) for _ in range(connections))
    )


async def _keep_asking(port: int, request: bytes, status: int, start: float, end: float) -> int:
    """Send a request again and again over one connection, and count the answers between two moments."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while (now := time.perf_counter()) < end:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if not head.startswith(b"http/1.1 %d" % status):
            raise AssertionError(head.decode())
        count += now >= start
    writer.close()
    return count
