"""A store reaches one server, a group that Sentinel watches, or a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from redis.asyncio import Redis

from duetime.errors import StoreError
from duetime.model.states import State
from duetime.stores.base import Hint
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import finish, hire, put, read, take_one
from duetime.testing.conformance.wakeups import listening
from tools.servers import RedisServer
from tools.servers.process import free_port


async def lives_and_is_heard_of(url: str) -> None:
    """Let a job live, and be heard of by another store."""
    store, other = open_store(url), open_store(url)
    await store.open()
    await other.open()
    try:
        await hire(store, "w1")
        async with listening(other) as heard:
            job_id = await put(store)
            await heard(Hint("jobs"))
        claim = await take_one(store)
        assert await finish(store, claim, now=await store.now()) == {claim.token}
        assert (await read(other, job_id)).state is State.SUCCEEDED
        assert all(check.ok for check in await store.doctor())
    finally:
        await store.close()
        await other.close()


async def test_one_server_by_a_socket_of_its_host(redis: RedisServer) -> None:
    redis.flush()
    await lives_and_is_heard_of(redis.socket_url())


@pytest.fixture
def cluster() -> Iterator[RedisServer]:
    """A cluster of one."""
    with RedisServer("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        yield server


async def test_a_cluster(cluster: RedisServer) -> None:
    async with Redis.from_url(cluster.url()) as client:
        await client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        while (await client.execute_command("CLUSTER INFO"))["cluster_state"] != "ok":  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    await lives_and_is_heard_of(cluster.url().replace("redis://", "redis+cluster://").removesuffix("/0"))


async def test_a_group_that_sentinel_watches(own_redis: RedisServer) -> None:
    with RedisServer.sentinel(own_redis, "jobs") as sentinel:
        place = sentinel.url().removeprefix("redis://").partition("/")[0]
        await lives_and_is_heard_of(f"redis+sentinel://{place}/jobs")
        with pytest.raises(StoreError):
            await open_store(f"redis+sentinel://{place}/others").open()
