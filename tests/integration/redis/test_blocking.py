"""Threads without an event loop store jobs on Redis by themselves, where they can."""

from __future__ import annotations

import asyncio
import time

import pytest

from duetime import Scheduler
from duetime.errors import StoreUnavailable
from duetime.model.job import Key
from duetime.stores.open import open_store
from duetime.stores.redis.address import RedisAddress
from duetime.testing.conformance.kit import job
from tests.integration.redis.kit import opened, tell
from tools.servers import RedisServer


async def test_a_thread_stores_jobs_by_itself_and_leaves_keys_to_the_event_loop(redis_url: str) -> None:
    async with opened(redis_url) as store:
        asked = [job(), job(priority=1)]
        assert await asyncio.to_thread(store.enqueue_blocking, asked) == [one.id for one in asked]
        assert await asyncio.to_thread(store.enqueue_blocking, [job(key=Key(value="k"))]) is None
        assert len(await store.get([one.id for one in asked])) == len(await store.upcoming(9)) == 2
    assert store.enqueue_blocking([job()]) is None


async def test_threads_share_a_client_that_is_made_for_the_first_of_them(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    make = RedisAddress.blocking_client

    def slowly(address: RedisAddress) -> object:
        time.sleep(0.01)  # So that the others come while it is made.
        made.append(make(address))
        return made[-1]

    monkeypatch.setattr(RedisAddress, "blocking_client", slowly)
    async with opened(redis_url) as store:
        await store.enqueue([job()])
        assert made == []
        await asyncio.gather(*(asyncio.to_thread(store.enqueue_blocking, [job()]) for _ in range(4)))
        assert len(made) == 1


async def test_functions_that_are_gone_are_loaded_by_the_event_loop(own_redis: RedisServer) -> None:
    scheduler = Scheduler(own_redis.url())

    @scheduler.task(name="note")
    async def note() -> None: ...

    async with scheduler:
        await tell(own_redis, "FUNCTION", "FLUSH")
        handle = await asyncio.to_thread(note.sync.enqueue)
        assert (await scheduler.jobs.get(handle.id)).state == "pending"


async def test_a_server_that_is_away_is_told_as_such_and_found_again(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await asyncio.to_thread(store.enqueue_blocking, [job()])
        own_redis.kill()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await asyncio.to_thread(store.enqueue_blocking, [job()])
        own_redis.start()
        assert await asyncio.to_thread(store.enqueue_blocking, [job()])


async def test_where_the_primary_has_to_be_asked_for_the_event_loop_does_it() -> None:
    store = open_store("redis+sentinel://localhost/mymaster")
    await store.open(check=False)
    assert store.enqueue_blocking([job()]) is None
    await store.close()
