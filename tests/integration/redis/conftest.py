from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.integration.redis.kit import tell
from tools.servers import RedisServer
from tools.servers.process import HOST


@pytest_asyncio.fixture
async def replica(own_redis: RedisServer) -> AsyncIterator[RedisServer]:
    """What follows `own_redis`."""
    await tell(own_redis, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
    with RedisServer("--replicaof", f"{HOST} {own_redis.port}") as server:
        yield server
