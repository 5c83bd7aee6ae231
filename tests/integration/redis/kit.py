"""Ways to open stores on a Redis, and to talk to the server behind their back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from duetime.model.states import State
from duetime.stores.base import DoctorCheck, Hint, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import finish, hire, put, read, take_one
from duetime.testing.conformance.wakeups import listening
from tests.integration.kit import until
from tools.servers import RedisServer


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """An open store."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def tell(server: RedisServer, *words: str) -> Any:
    """Send one command to a server and return its answer."""
    client: Any
    async with Redis.from_url(server.url()) as client:
        return await client.execute_command(*words)


async def check(store: Store, name: str) -> DoctorCheck:
    """Return one finding of the store's doctor."""
    (found,) = [found for found in await store.doctor() if found.name == name]
    return found


async def lives_and_is_heard_of(url: str) -> None:
    """Let a job live, and be heard of by another store."""
    async with opened(url) as store, opened(url) as other:
        await hire(store, "w1")
        async with listening(other) as heard:
            job_id = await put(store)
            await heard(Hint("jobs"))
        claim = await take_one(store)
        assert await finish(store, claim, now=await store.now()) == {claim.token}
        assert (await read(other, job_id)).state is State.SUCCEEDED
        assert [found for found in await store.doctor() if not found.ok] == []


async def follows(replica: RedisServer, primary: RedisServer) -> None:
    """Wait until a replica has all that its primary has."""

    async def caught_up() -> bool:
        ahead, behind = await tell(primary, "INFO", "replication"), await tell(replica, "INFO", "replication")
        up = behind.get("master_link_status") == "up"
        return bool(up and behind["slave_repl_offset"] >= ahead["master_repl_offset"])

    await until(caught_up, what="a replica that follows")
