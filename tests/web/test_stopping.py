"""A server that is told to stop: streams end at once, and what runs in its worker drains or goes back."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from duetime import Scheduler

STREAMS: Final = 10
JOBS: Final = 50
GRACE: Final = 5.0
APP: Final = """
import asyncio
from contextlib import asynccontextmanager

from fastapi import FastAPI

from duetime import Scheduler
from duetime.web import User

scheduler = Scheduler("sqlite:///served.db")


@scheduler.task(name="brief")
async def brief() -> None:
    await asyncio.sleep(1)


@scheduler.task(name="endless")
async def endless() -> None:
    await asyncio.sleep(600)


@asynccontextmanager
async def lifespan(app):
    async with scheduler.lifespan(app, concurrency=50, grace=5, capture_logs=False):
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/ops", scheduler.api(authenticate=lambda request: User("ada")))
"""
SERVERS: Final = {
    "uvicorn": ("uvicorn", "served:app", "--log-level", "warning", "--port"),
    "four processes": ("uvicorn", "served:app", "--log-level", "warning", "--workers", "4", "--port"),
    "reload": ("uvicorn", "served:app", "--log-level", "warning", "--reload", "--port"),
    "httptools": ("uvicorn", "served:app", "--log-level", "warning", "--http", "httptools", "--port"),
    "gunicorn": ("gunicorn", "served:app", "-k", "uvicorn_worker.UvicornWorker", "-w", "2", "-b"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "served.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def served(command: Sequence[str]) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str]]:
    """Run a server in a group of processes of its own, and give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = f"127.0.0.1:{port}" if command[-1] == "-b" else str(port)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *command, place), env=os.environ | {"PYTHONPATH": "."}, start_new_session=True
    )
    address = f"http://127.0.0.1:{port}/ops"
    try:
        async with httpx.AsyncClient() as client:
            while process.returncode is None:
                try:
                    await client.get(f"{address}/live")
                except httpx.TransportError:
                    await asyncio.sleep(0.05)  # Nothing tells when a server listens.
                else:
                    break
        yield process, address
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def kinds(response: httpx.Response, begun: asyncio.Event) -> list[str]:
    """Read a stream to its end, and return the kinds of its events."""
    found: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            found.append(line.removeprefix("event: "))
            begun.set()
    return found


async def started(scheduler: Scheduler, count: int) -> None:
    """Wait until so many jobs run."""
    while len(await scheduler.jobs.list(state="running", limit=100)) < count:  # noqa: ASYNC110 - others run them
        await asyncio.sleep(0.05)


async def stop_with_streams(name: str, task: str) -> tuple[float, float, dict[str, int]]:
    """Stop a server with streams and jobs; return when the streams and the process ended, and how many jobs are in which state."""
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(Scheduler("sqlite:///served.db"))
        process, address = await stack.enter_async_context(served(SERVERS[name]))
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=60))
        readers: list[asyncio.Task[list[str]]] = []
        for _ in range(STREAMS):
            response = await stack.enter_async_context(client.stream("GET", f"{address}/api/v1/events"))
            readers.append(asyncio.create_task(kinds(response, begun := asyncio.Event())))
            await begun.wait()
        for _ in range(JOBS):
            await scheduler.enqueue_by_name(task)
        await started(scheduler, JOBS)
        await scheduler.enqueue_by_name(task, delay=1)  # For later, and so for no one.
        told = asyncio.get_running_loop().time()
        process.terminate()
        for found in await asyncio.gather(*readers):
            assert found[-1] == "bye"
        streams_took = asyncio.get_running_loop().time() - told
        await process.wait()
        process_took = asyncio.get_running_loop().time() - told
        counts: dict[Any, int] = {}
        for (_, state), count in (await scheduler.store.counts()).items():
            counts[state] = counts.get(state, 0) + count
        return streams_took, process_took, counts


@pytest.mark.timeout(120)
@pytest.mark.covers("streams-block-shutdown")
@pytest.mark.parametrize("name", SERVERS)
async def test_open_streams_keep_no_server_from_stopping(folder: Path, name: str) -> None:
    streams_took, process_took, counts = await stop_with_streams(name, "brief")
    # Jobs that ran have ended, and one that fell due meanwhile was not begun.
    assert counts == {"succeeded": JOBS, "pending": 1}
    assert streams_took < process_took < GRACE + 10
    assert streams_took < GRACE


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["uvicorn", "four processes"])
async def test_jobs_that_do_not_end_within_the_grace_time_go_back(folder: Path, name: str) -> None:
    streams_took, process_took, counts = await stop_with_streams(name, "endless")
    assert counts == {"pending": JOBS + 1}
    assert streams_took < GRACE
    assert process_took < GRACE + 10
