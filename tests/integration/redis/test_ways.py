"""A store reaches one server, or a group that Sentinel watches."""

from __future__ import annotations

import asyncio

import pytest

from duetime.errors import StoreError
from duetime.model.states import State
from duetime.stores.open import open_store
from tests.integration.kit import FleetAt, accepted, until
from tests.integration.redis.kit import follows, lives_and_is_heard_of, tell
from tools.servers import RedisServer
from tools.servers.process import HOST


async def test_one_server_by_a_socket_of_its_host(redis: RedisServer) -> None:
    redis.flush()
    await lives_and_is_heard_of(redis.socket_url())


async def test_a_group_that_sentinel_watches(own_redis: RedisServer) -> None:
    with RedisServer.sentinel(own_redis, "jobs") as sentinel:
        place = sentinel.url().removeprefix("redis://").partition("/")[0]
        await lives_and_is_heard_of(f"redis+sentinel://{place}/jobs")
        with pytest.raises(StoreError):
            await open_store(f"redis+sentinel://{place}/others").open()


@pytest.mark.covers("lagging-replica")
async def test_workers_follow_sentinel_to_the_new_primary_when_the_old_one_dies(
    own_redis: RedisServer, replica: RedisServer, fleet_at: FleetAt
) -> None:
    with RedisServer.sentinel(own_redis, "jobs") as sentinel:
        await tell(sentinel, "SENTINEL", "SET", "jobs", "down-after-milliseconds", "300")
        await until(
            lambda: tell(sentinel, "SENTINEL REPLICAS", "jobs"), what="a Sentinel that knows of the replica"
        )
        fleet = fleet_at(f"redis+sentinel://{HOST}:{sentinel.port}/jobs")
        app, gate = fleet.app(), fleet.gate()
        async with app.scheduler:
            worker = await fleet.start()
            running = await app.wait_for.enqueue(gate.path)
            await fleet.entry("start", job=running.id)
            await follows(replica, own_redis)
            await asyncio.to_thread(own_redis.kill)
            gate.open()
            later = await accepted(app, app.note.call())
            records = await fleet.ended(app.scheduler.store, [running.id, later])

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}
    assert records[running.id].result == str(worker.pid)
    assert len(fleet.ledger.entries("start", job=running.id)) == 1
    assert (await tell(replica, "INFO", "replication"))["role"] == "master"
