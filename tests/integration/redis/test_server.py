"""What a store says and does when its Redis is restarted, emptied, full, locked or a replica."""

from __future__ import annotations

import pytest

from duetime import Scheduler
from duetime.errors import StoreUnavailable, StoreUnusable
from duetime.model.states import State
from duetime.model.time import LATEST
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import finish, hire, job, put, read, take, take_one
from tests.integration.redis.kit import check, opened, tell
from tools.servers import RedisServer


@pytest.mark.covers("server-forgets", "database-restart")
async def test_a_server_that_is_killed_and_started_again_has_lost_nothing(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await hire(store, "w1")
        ids = await store.enqueue([job() for _ in range(50)])
        (claim,) = await take(store, limit=1)
        own_redis.kill()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await put(store)
        own_redis.start()
        assert await finish(store, claim, now=await store.now()) == {claim.token}
        assert [record.state for record in await store.get(ids)].count(State.SUCCEEDED) == 1
        assert len(await take(store)) == 49


@pytest.mark.covers("functions-forgotten")
async def test_functions_that_are_gone_are_loaded_again(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await tell(own_redis, "FUNCTION", "FLUSH")
        job_id = await put(store)
        await tell(own_redis, "FUNCTION", "FLUSH")
        assert (await read(store, job_id)).state is State.PENDING


async def test_an_emptied_server_is_empty_and_can_be_used_again(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await put(store)
        await tell(own_redis, "FLUSHALL")
        assert await store.counts() == {}
        assert (await store.schema_status()).found == 0
        await store.migrate()
        assert (await read(store, await put(store))).state is State.PENDING


@pytest.mark.parametrize("url", ["redis://{place}", "redis://:wrong@{place}", "redis://who:wrong@{place}"])
@pytest.mark.covers("unexplained-database")
async def test_a_password_that_is_missing_or_wrong_is_told_of(url: str, own_redis: RedisServer) -> None:
    await tell(own_redis, "CONFIG", "SET", "requirepass", "secret")
    place = own_redis.url().removeprefix("redis://")
    with pytest.raises(StoreUnusable, match="password") as refused:
        await open_store(url.format(place=place)).open()
    assert "wrong" not in str(refused.value)
    async with opened(f"redis://:secret@{place}") as store:
        await put(store)


async def test_a_full_server_takes_no_jobs_and_lets_those_that_run_end(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await tell(own_redis, "CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="memory"):
            await put(store)
        assert await finish(store, claim, now=await store.now()) == {claim.token}
        await tell(own_redis, "CONFIG", "SET", "maxmemory", "0")
        assert (await read(store, claim.job_id)).state is State.SUCCEEDED


@pytest.mark.covers("unexplained-database")
async def test_a_replica_takes_no_changes_until_it_is_promoted(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await tell(own_redis, "REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreUnavailable, match="replica"):
            await put(store)
        role = await check(store, "role")
        assert not role.ok
        assert role.fix
        await tell(own_redis, "REPLICAOF", "NO", "ONE")
        await put(store)


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (("appendonly", "no"), "persistence"),
        (("appendfsync", "no"), "persistence"),
        (("maxmemory-policy", "allkeys-lru"), "eviction"),
    ],
)
@pytest.mark.covers("server-forgets")
async def test_settings_that_can_lose_jobs_are_warned_of_and_refused_where_that_is_asked_for(
    own_redis: RedisServer, setting: tuple[str, str], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    await tell(own_redis, "CONFIG", "SET", *setting)
    async with opened(own_redis.url()) as store:
        found = await check(store, name)
        assert not found.ok
        assert found.fix is not None
        assert found.fix in caplog.text
    with pytest.raises(StoreUnusable):
        await open_store(f"{own_redis.url()}?strict=true").open()


async def test_a_worker_warns_of_a_setting_once(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    await tell(own_redis, "CONFIG", "SET", "appendonly", "no")
    scheduler = Scheduler(own_redis.url())
    async with scheduler, scheduler.worker():
        assert caplog.text.count("no append-only file is kept") == 1


async def test_a_user_who_may_not_ask_about_the_server_can_use_it(own_redis: RedisServer) -> None:
    rights = ("~*", "&*", "+@all", "-info", "-config")
    await tell(own_redis, "ACL", "SETUSER", "app", "on", ">secret", *rights)
    async with opened(own_redis.url().replace("://", "://app:secret@") + "?strict=true") as store:
        assert (await read(store, await put(store))).state is State.PENDING
        for name in ("version", "persistence", "eviction"):
            assert "does not tell" in (await check(store, name)).detail


async def test_a_user_without_a_right_to_the_channel_is_warned_of_it_and_works_without_hints(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    await tell(own_redis, "ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "resetchannels")
    async with opened(own_redis.url().replace("://", "://app:secret@")) as store:
        found = await check(store, "hints")
        assert not found.ok
        assert found.fix == "redis-cli ACL SETUSER app '&{duetime}:hints'"
        assert found.fix in caplog.text
        await tell(own_redis, "ACL", "SETUSER", "app", "&{duetime}:hints")
        assert (await check(store, "hints")).ok
        assert (await read(store, await put(store))).state is State.PENDING


@pytest.mark.covers("unreadable-row")
async def test_a_row_that_somebody_has_edited_keeps_nobody_from_work(own_redis: RedisServer) -> None:
    async with opened(own_redis.url()) as store:
        await hire(store, "w1")
        gone, odd, other, well = await store.enqueue([job() for _ in range(4)])
        await tell(own_redis, "DEL", f"{{duetime}}:job:{gone}")
        await tell(own_redis, "HSET", f"{{duetime}}:job:{odd}", "line", "high")
        await tell(own_redis, "SET", f"{{duetime}}:job:{other}", "text")
        assert [claim.job_id for claim in await take(store)] == [well]
        assert await take(store) == []
        assert (await check(store, "rows")).detail.startswith("3 jobs")


async def test_instants_of_later_centuries_are_kept_to_sixteen_microseconds(redis_url: str) -> None:
    exact = 2**53 - 1
    asked = [exact, exact + 2, LATEST - 1, LATEST]
    async with opened(redis_url) as store:
        ids = await store.enqueue([job(due_at=due_at) for due_at in asked])
        kept = [record.due_at for record in await store.get(ids)]
    assert (kept[0], kept[-1]) == (exact, LATEST)
    assert max(abs(one - other) for one, other in zip(kept, asked, strict=True)) <= 16
