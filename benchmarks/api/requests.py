"""Requests a second of the API and of the bare application, served alike and asked in turn."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import uvicorn

from benchmarks import children
from benchmarks.api.bare import bare
from benchmarks.places import fill
from benchmarks.processes import processor_seconds
from benchmarks.subject import TICK, Subject
from duetime.web.standalone import bound

CONNECTIONS = (1, 16)
_PORTS = {"api": 18_431, "bare": 18_432}
_BODY = json.dumps({"task": TICK, "arguments": {"number": 1}}).encode()
_PATHS = {"api": "/api/v1/jobs", "bare": "/jobs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What one kind of request came to, medians over the turns."""

    what: str
    connections: int
    api: float
    """Requests a second."""
    bare: float
    ratio: float
    spent: float
    """The same ratio by the processor time that the servers took for a request: other programs disturb it little."""


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
        servers = {name: stack.enter_context(_served(name, url)) for name in _PORTS}
        for what, (request, status) in asked.items():
            for connections in CONNECTIONS:
                turn = partial(_turn, servers, Load(request, status, connections, seconds))
                pairs = [turn(n) for n in range(turns)]
                api, limit = ([pair[name] for pair in pairs] for name in ("api", "bare"))
                found.append(
                    Rate(
                        what=what,
                        connections=connections,
                        api=statistics.median(one.rate for one in api),
                        bare=statistics.median(one.rate for one in limit),
                        ratio=statistics.median(
                            one.rate / other.rate for one, other in zip(api, limit, strict=True)
                        ),
                        spent=statistics.median(
                            other.spent / one.spent for one, other in zip(api, limit, strict=True)
                        ),
                    )
                )
    return found


class Asked(NamedTuple):
    """What came of asking one of them for a while."""

    rate: float
    """Requests a second."""
    spent: float
    """Processor seconds of the server for each."""


class Load(NamedTuple):
    """What is asked, by how many at a time, and for how long."""

    request: Callable[[str], bytes]
    status: int
    connections: int
    seconds: float


def _turn(servers: Mapping[str, int], load: Load, number: int) -> dict[str, Asked]:
    """Ask both; which one comes first changes."""
    found: dict[str, Asked] = {}
    for name in sorted(servers, reverse=bool(number % 2)):
        before = processor_seconds(servers[name])
        count = asyncio.run(_ask(name, load))
        spent = processor_seconds(servers[name]) - before
        found[name] = Asked(count / load.seconds, spent / count)
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
    server = uvicorn.Server(uvicorn.Config(app, port=_PORTS[name], log_level="warning", access_log=False))
    listening = bound(server.config)
    # Who connects from here on waits until it serves.
    listening.listen()
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await asyncio.to_thread(children.ready_then_wait)
    server.should_exit = True
    await serving


@contextmanager
def _served(name: str, url: str) -> Iterator[int]:
    """Yield the process that serves one of them."""
    with children.started(serve, name=name, url=url) as child:
        child.wait_ready()
        yield child.pid
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


async def _ask(name: str, load: Load) -> int:
    """Return how many requests were answered."""
    end = time.perf_counter() + load.seconds
    request, port = load.request(_PATHS[name]), _PORTS[name]
    asking = (_keep_asking(port, request, load.status, end) for _ in range(load.connections))
    return sum(await asyncio.gather(*asking))


async def _keep_asking(port: int, request: bytes, status: int, end: float) -> int:
    """Send a request again and again over one connection, and count the answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.perf_counter() < end:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if not head.startswith(b"http/1.1 %d" % status):
            raise AssertionError(head.decode())
        count += 1
    writer.close()
    return count
