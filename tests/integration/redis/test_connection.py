"""Connections that are kept for calls: whatever became of one call, the next gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from duetime.errors import NotOpen
from duetime.stores.base import Hint
from duetime.stores.open import open_store
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import KeptConnections
from duetime.testing.conformance.kit import put
from tests.integration.redis.kit import tell
from tools.servers import RedisServer

WAIT = ("BLPOP", "nothing", 30)


@pytest.fixture
async def client(redis: RedisServer) -> AsyncIterator[Redis]:
    redis.flush()
    client = RedisAddress.of(redis.url()).client()
    assert isinstance(client, Redis)
    yield client
    await client.aclose()


async def waiting(client: Redis) -> None:
    """Return when somebody waits for an answer."""
    while not (await client.info("clients"))["blocked_clients"]:  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.001)


async def test_a_call_that_was_cancelled_leaves_no_answer_to_the_next(client: Redis) -> None:
    connections = KeptConnections(client.connection_pool, most=1)
    call = asyncio.create_task(connections.call(*WAIT, timeout=10))
    await waiting(client)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await connections.call("ECHO", "mine", timeout=10) == b"mine"


async def test_a_call_that_takes_too_long_leaves_no_answer_to_the_next(client: Redis) -> None:
    with pytest.raises(TimeoutError):
        await (connections := KeptConnections(client.connection_pool, most=1)).call(*WAIT, timeout=0.1)
    assert await connections.call("ECHO", "mine", timeout=10) == b"mine"


async def test_a_call_that_is_refused_leaves_no_answer_to_the_next(client: Redis) -> None:
    connections = KeptConnections(client.connection_pool, most=1)
    with pytest.raises(Exception, match="unknown command"):
        await connections.call("NONSENSE", timeout=10)
    assert await connections.call("ECHO", "mine", timeout=10) == b"mine"


async def test_many_calls_at_once_get_each_its_own_answer(client: Redis) -> None:
    connections = KeptConnections(client.connection_pool, most=3)
    answers = await asyncio.gather(
        *(connections.call("ECHO", str(number), timeout=10) for number in range(50))
    )
    assert [int(answer) for answer in answers] == list(range(50))


async def test_a_connection_that_the_server_has_closed_is_made_anew(client: Redis) -> None:
    connections = KeptConnections(client.connection_pool, most=1)
    await connections.call("ECHO", "first", timeout=10)
    await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    while len(await client.client_list(_type="normal")) > 1:  # noqa: ASYNC110 - the server tells nobody
        await asyncio.sleep(0.001)
    assert await connections.call("ECHO", "second", timeout=10) == b"second"


async def test_a_call_that_waits_for_its_turn_is_not_made_after_the_end(
    redis: RedisServer, client: Redis
) -> None:
    connections = KeptConnections(client.connection_pool, most=1)
    made, waits = (
        asyncio.create_task(connections.call(*WAIT, timeout=10)),
        asyncio.create_task(connections.call("ECHO", "late", timeout=10)),
    )
    await waiting(client)
    connections.close()
    await client.aclose()
    with pytest.raises(RedisError):
        await made
    with pytest.raises(NotOpen):
        await waits
    assert len(await tell(redis, "CLIENT LIST")) == 1, "the one that asks"


async def test_whoever_may_make_one_call_at_once_hears_and_loads_functions_all_the_same(
    own_redis: RedisServer,
) -> None:
    store = open_store(f"{own_redis.url()}?pool=1")
    await store.open()
    hints = store.wakeups()
    assert await anext(hints) == Hint("any")
    async with Redis.from_url(own_redis.url()) as other:
        await other.execute_command("FUNCTION", "FLUSH")
    await put(store)
    assert await anext(hints) == Hint("jobs")
    await hints.aclose()  # type: ignore[attr-defined]
    await store.close()
