"""Whatever has happened to a store, its indexes say what its rows say, and nothing is left of rows that are gone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import pytest
from hypothesis import settings
from redis.asyncio import Redis

from duetime.model.time import Clock
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.conformance.lives import TestRandomLives as RandomLives
from duetime.testing.job_machine import JobMachine
from duetime.testing.machine import StoreMachine
from duetime.testing.schedule_machine import ScheduleMachine
from tools.servers import RedisServer

Row: TypeAlias = dict[str, str]
Index: TypeAlias = dict[str, dict[str, float]]
"""By key, the score of each member."""

_LIVE = {"pending", "running"}
_OF_JOBS = (
    "jobs", "live", "claim", "lines", "gated", "gate", "places", "passed", "busy", "held", "holders", "unsuccessful",
    "history", "running", "occurrences", "succeeded", "failed", "cancelled",
)  # fmt: skip


def places(job: Row) -> Iterator[tuple[str, str, float]]:
    """Where a job is listed, under what name and with which score."""
    yield "jobs", job["id"], 0
    if job["state"] in _LIVE:
        yield "live", job["id"], 0
    elif job["state"] != "succeeded":
        yield "unsuccessful", job["id"], 0
    if job["state"] == "pending":
        yield from places_of_waiting(job)
    if job["state"] == "running":
        yield from places_of_running(job)
    if "schedule" in job:
        yield from places_of_scheduled(job)


def places_of_waiting(job: Row) -> Iterator[tuple[str, str, float]]:
    id_, task, queue, priority, due_at = (job[name] for name in ("id", "task", "queue", "priority", "due_at"))
    if gate := job.get("gate"):
        place = f"{task}|{gate}|{queue}|{priority}"
        yield "gated", id_, float(due_at)
        yield f"gate:{place}", id_, float(due_at)
        yield "places", place, 0
    else:
        line = f"{queue}|{priority}|{task}"
        yield f"claim:{line}", id_, float(due_at)
        yield "lines", line, 0


def places_of_running(job: Row) -> Iterator[tuple[str, str, float]]:
    if "limited" in job:
        yield f"busy:{job['queue']}", job["id"], 0
    yield f"held:{job['worker']}", job["id"], 0
    yield "holders", job["worker"], 0
    if gate := job.get("gate"):
        yield f"passed:{gate}", job["id"], 0


def places_of_scheduled(job: Row) -> Iterator[tuple[str, str, float]]:
    schedule, occurrence = job["schedule"], float(job.get("occurrence", 0))
    yield f"history:{schedule}", job["id"], 0
    if job["state"] in _LIVE:
        yield f"live:{schedule}", job["id"], occurrence
    if job["state"] == "running":
        yield f"running:{schedule}", job["id"], 0
    if occurrence:
        yield f"occurrences:{schedule}", job["id"], occurrence
    if job["state"] in {"succeeded", "failed"} or (job["state"] == "cancelled" and "started_at" in job):
        yield f"{job['state']}:{schedule}", job["id"], occurrence or -1


async def row(client: Any, tag: str, key: str) -> Row:
    """The columns of a job, and whether its queue is limited."""
    fields: Row = await client.hgetall(key)
    columns = dict(zip(("queue", "priority", "task"), fields.pop("line").split("|"), strict=True))
    if await client.zscore(f"{tag}:limited", columns["queue"]) is not None:
        columns["limited"] = "yes"
    extras: Row = json.loads(fields.pop("extras", "{}"))
    return fields | columns | extras | {"id": key.removeprefix(f"{tag}:job:")}


async def expected(client: Any, tag: str) -> Index:
    """What the indexes of a namespace have to say."""
    found: Index = defaultdict(dict)
    async for key in client.scan_iter(f"{tag}:job:*"):
        for name, member, score in places(await row(client, tag, key)):
            found[name][member] = score
    return found


async def actual(client: Any, tag: str) -> Index:
    """What they say."""
    keys = [key.removeprefix(f"{tag}:") async for key in client.scan_iter(f"{tag}:*")]
    listed = [key for key in keys if key.partition(":")[0] in _OF_JOBS]
    return {key: await members(client, f"{tag}:{key}") for key in listed}


async def members(client: Any, key: str) -> dict[str, float]:
    """What an index lists, with its scores; 0 where it has no order."""
    if await client.type(key) == "set":
        return dict.fromkeys(await client.smembers(key), 0)
    return dict(await client.zrange(key, 0, -1, withscores=True))


@pytest.mark.asyncio
@pytest.mark.parametrize("machine", [JobMachine, ScheduleMachine])
@pytest.mark.covers("in-no-registry")
async def test_indexes_say_what_the_rows_say(redis: RedisServer, machine: type[StoreMachine]) -> None:
    redis.flush()
    names: set[str] = set()
    async with AsyncExitStack() as stack:

        async def make(clock: Clock, *, namespace: str = "duetime") -> Store:
            names.add(namespace)
            store = open_store(redis.url(), namespace=namespace, clock=clock)
            stack.push_async_callback(store.close)
            await store.open()
            return store

        ten = settings(max_examples=10)
        await RandomLives().test_a_store_agrees_with_the_model_after_every_step(make, ten, machine)
        client = await stack.enter_async_context(Redis.from_url(redis.url(), decode_responses=True))
        looked_at = 0
        for name in names:
            told = await actual(client, f"{{{name}}}")
            assert told == await expected(client, f"{{{name}}}")
            looked_at += len(told)
    assert looked_at
