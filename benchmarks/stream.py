"""How soon the live stream tells of a job that runs in another process: `python -m benchmarks.stream URL`.

Times go from the moment that is stored with the job, by the one clock of this machine, to the client's event.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

import httpx
import uvicorn

from duetime import Scheduler
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.web import User, make_api

RUNS: Final = 0.3
"""Seconds that a job takes of which each step is to be told."""
BATCHES: Final = 20
"""How often in a second jobs are stored under load."""


def make_scheduler(url: str) -> Scheduler:
    """Return a scheduler with a job to look for, and others that hide it."""
    scheduler = Scheduler(url)

    @scheduler.task(name="probe")
    async def probe() -> None:
        await asyncio.sleep(RUNS)

    @scheduler.task(name="other")
    async def other() -> None: ...

    return scheduler


async def work(url: str) -> None:
    """Be the other process, until it is ended."""
    async with make_scheduler(url).worker(concurrency=100):
        print("ready", flush=True)
        await asyncio.Event().wait()


async def feed(url: str, rate: int) -> None:
    """Store so many jobs a second, until it is ended."""
    scheduler = make_scheduler(url)
    async with scheduler:
        print("ready", flush=True)
        next_at = time.monotonic()
        while True:
            await scheduler.store.enqueue(
                [NewJob(new_job_id(), "other", "{}") for _ in range(rate // BATCHES)]
            )
            next_at += 1 / BATCHES
            await asyncio.sleep(max(0, next_at - time.monotonic()))


class Delays(NamedTuple):
    """How many seconds it took until a job was told: stored, started and ended."""

    stored: list[float]
    started: list[float]
    ended: list[float]

    def __str__(self) -> str:
        return "; ".join(f"{name} {_quantiles(getattr(self, name))}" for name in self._fields)


def _quantiles(delays: list[float]) -> str:
    ordered = sorted(delays)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"p50 {ordered[len(ordered) // 2] * 1e3:.0f} p95 {p95 * 1e3:.0f} most {ordered[-1] * 1e3:.0f} ms"


async def measure(url: str, *, probes: int, rate: int = 0, pause: float = 0.7) -> Delays:
    """Store jobs one after the other, and tell how soon each step of them came over the stream."""
    scheduler, found = make_scheduler(url), Delays([], [], [])
    async with scheduler, _stream(scheduler) as told:
        with _process("work", url), _process("feed", url, str(rate)) if rate else _nothing():
            for _ in range(probes):
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                job = await scheduler.enqueue_by_name("probe")
                await _follow(told, job.id, found)
    return found


async def _follow(told: AsyncIterator[tuple[float, dict[str, Any]]], job_id: str, found: Delays) -> None:
    """Note how late each step of a job is told."""
    seen = False
    async for at, item in told:
        if item["id"] != job_id:
            continue
        if not seen:
            found.stored.append(at - _seconds(item["created_at"]))
            seen = True
        if item["state"] == "running" and item["started_at"]:
            found.started.append(at - _seconds(item["started_at"]))
        if item["finished_at"]:
            found.ended.append(at - _seconds(item["finished_at"]))
            return


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


@asynccontextmanager
async def _stream(scheduler: Scheduler) -> AsyncGenerator[AsyncIterator[tuple[float, dict[str, Any]]]]:
    """Serve a scheduler, follow its stream, and give each job with the time at which it came."""
    app = make_api(scheduler, authenticate=lambda _: User("benchmark"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    listening = server.config.bind_socket()
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/api/v1/events"
    async with httpx.AsyncClient(timeout=60) as client, client.stream("GET", address) as response:
        yield _jobs(response)
    server.should_exit = True
    await serving


async def _jobs(response: httpx.Response) -> AsyncGenerator[tuple[float, dict[str, Any]]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            at = time.time()
            for item in json.loads(line.removeprefix("data: ")).get("items", ()):
                if "created_at" in item:
                    yield at, item


@contextmanager
def _process(*words: str) -> Any:
    """Have another process do something, from when it is ready until the block ends."""
    command = [sys.executable, "-m", "benchmarks.stream", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


@contextmanager
def _nothing() -> Any:
    yield


async def main(url: str) -> None:
    """Measure an idle system, and one with a thousand jobs a second."""
    print("idle:", await measure(url, probes=40))
    print("1,000 jobs a second:", await measure(url, probes=40, rate=1_000))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", url]:
            asyncio.run(work(url))
        case ["feed", url, rate]:
            asyncio.run(feed(url, int(rate)))
        case [url]:
            asyncio.run(main(url))
        case _:
            sys.exit(__doc__)
