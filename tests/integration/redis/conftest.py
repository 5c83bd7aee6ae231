from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from duetime.stores.open import open_store
from duetime.stores.redis.store import RedisStore
from duetime.testing.clock import FakeClock
from tests.integration.redis.kit import tell
from tools.servers import RedisServer
from tools.servers.process import HOST


@pytest_asyncio.fixture
async def replica(own_redis: RedisServer) -> AsyncIterator[RedisServer]:
    """What follows `own_redis`."""
    await tell(own_redis, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
    with RedisServer("--replicaof", f"{HOST} {own_redis.port}") as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(redis: RedisServer, clock: FakeClock) -> AsyncIterator[RedisStore]:
    redis.flush()
    store = open_store(redis.url(), clock=clock)
    assert isinstance(store, RedisStore)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def client(redis: RedisServer) -> AsyncIterator[Any]:
    async with Redis.from_url(redis.url()) as client:
        yield client
