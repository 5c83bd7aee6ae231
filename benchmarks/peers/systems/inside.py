"""The process inside a system's environment: `python -m benchmarks.peers.systems.inside ADAPTER COMMAND ARGUMENTS`."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from benchmarks.peers.systems.base import CALLERS, Adapter, Client, Job, Plan, Settings, Unsupported

_BATCH = 1_000
"""Jobs in one bulk call."""
_SETTLE_IN = 0.5
"""Seconds an in-process worker gets before its client begins."""

Say = Callable[[dict[str, Any]], None]


async def enqueue(
    client: Client, *, mode: str, count: int, seconds: float, origin: int = 0
) -> dict[str, Any]:
    """Put up to `count` jobs for up to some seconds, and tell how many that were and how long it took."""
    began = time.perf_counter()
    until = began + seconds
    done = 0

    numbers = range(origin, origin + count)
    # One row for all callers, so that whoever is cut off leaves no gaps: what was put are the first numbers.
    row = iter(numbers)

    def jobs_to_put() -> Iterator[Job]:
        nonlocal done
        while time.perf_counter() <= until and (number := next(row, None)) is not None:
            yield Job(number, time.time())
            done += 1

    async def caller() -> None:
        for job in jobs_to_put():
            await client.put(job)

    if mode == "single":
        await client.put_each(jobs_to_put())
    elif mode == "awaited":
        await caller()
    elif mode == "at_once":
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    else:
        for start in range(0, count, _BATCH):
            if time.perf_counter() > until:
                break
            jobs = [Job(n, time.time()) for n in numbers[start : start + _BATCH]]
            await client.put_many(jobs)
            done += len(jobs)
    return {"count": done, "seconds": time.perf_counter() - began}


async def stock(client: Client, *, count: int, seconds: float, origin: int = 0) -> dict[str, Any]:
    """Put up to `count` jobs in the fastest way, for up to some seconds."""
    try:
        return await enqueue(client, mode="bulk", count=count, seconds=seconds, origin=origin)
    except Unsupported:
        return await enqueue(client, mode="at_once", count=count, seconds=seconds, origin=origin)


async def ping(client: Client, *, count: int, gap: float) -> dict[str, Any]:
    """Put jobs one after the other at odd moments."""
    # Here, since the memory of workers is measured, and they need none of it.
    import random

    for number in range(count):
        await asyncio.sleep(random.uniform(gap / 2, gap * 3 / 2))
        await client.put(Job(number, time.time()))
    return {"count": count}


async def later(client: Client, *, count: int, lead: float, span: float) -> dict[str, Any]:
    """Put one-off jobs that fall due over some seconds, and tell by how much that came too late."""
    first = time.time() + lead
    jobs = [Job(n, first + n * span / count) for n in range(count)]
    began = time.perf_counter()
    for start in range(0, count, _BATCH):
        await client.put_many_at(jobs[start : start + _BATCH])
    took = time.perf_counter() - began
    return {"count": count, "first": first, "seconds": took, "overrun": max(0.0, time.time() - first)}


async def fill(client: Client, *, count: int) -> dict[str, Any]:
    """Store jobs for later."""
    began = time.perf_counter()
    await client.fill(count)
    return {"count": count, "seconds": time.perf_counter() - began}


async def schedules(client: Client, *, plan: dict[str, Any]) -> dict[str, Any]:
    """Store schedules."""
    began = time.perf_counter()
    starts = await client.schedules(Plan(**plan))
    return {"starts": starts, "seconds": time.perf_counter() - began}


CLIENT: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "enqueue": enqueue,
    "stock": stock,
    "ping": ping,
    "later": later,
    "fill": fill,
    "schedules": schedules,
}


async def prepare(adapter: Adapter, say: Say) -> None:
    """Make the tables."""
    await adapter.prepare()
    say({})


async def call(adapter: Adapter, say: Say, *, command: str, arguments: dict[str, Any]) -> None:
    """Be a client for one command."""
    async with adapter.client() as client:
        try:
            answer = await CLIENT[command](client, **arguments)
        except Unsupported as lack:
            # Here, before a system's own blocks wrap it.
            answer = {"unsupported": str(lack)}
    say(answer)


async def work(
    adapter: Adapter, say: Say, *, settings: dict[str, Any], then: tuple[str, dict[str, Any]] | None = None
) -> None:
    """Be the worker until SIGTERM; `then` is the command of a client in the same process."""
    plan = settings.pop("plan", None)
    chosen = Settings(**settings, plan=None if plan is None else Plan(**plan))

    def ready() -> None:
        say({})
        # Workers that are to share the work begin together, however long each of them took to get here.
        sys.stdin.readline()
        say({"began": time.time(), "used": time.process_time()})

    working = asyncio.ensure_future(adapter.work(ready, chosen))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, working.cancel)
    if then is not None:
        await asyncio.sleep(_SETTLE_IN)
        await call(adapter, say, command=then[0], arguments=then[1])
    await asyncio.wait([working])
    if not working.cancelled():
        working.result()


COMMANDS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "prepare": prepare,
    "call": call,
    "work": work,
}


def main() -> None:
    """Run one command and say its answer, one JSON object a line, on what was standard output."""
    name, command, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    # Systems that print must not print into our answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    module, _, kind = name.partition(":")
    made = getattr(importlib.import_module(f"benchmarks.peers.systems.{module}"), kind or "Adapter")
    adapter: Adapter = made(arguments.pop("url"))
    code = 0
    try:
        asyncio.run(COMMANDS[command](adapter, say, **arguments))
    except BaseException:  # noqa: BLE001 - whatever it was, the process ends
        traceback.print_exc()
        code = 1
    # Systems leave threads behind; all is said.
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
