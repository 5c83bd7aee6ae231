"""A user of Redis who may do less than everything."""

from __future__ import annotations

from duetime.model.states import State
from duetime.testing.conformance.kit import finish, hire, put, read, take_one
from tests.integration.redis.kit import opened, tell
from tools.servers import RedisServer


async def test_who_may_not_use_the_channel_for_hints_stores_claims_and_settles_all_the_same(
    own_redis: RedisServer,
) -> None:
    await tell(own_redis, "ACL", "SETUSER", "app", "on", ">secret", "~*", "resetchannels", "+@all")
    async with opened(own_redis.url().replace("redis://", "redis://app:secret@")) as store:
        await hire(store, "w1")
        job_id = await put(store)
        claim = await take_one(store)
        assert await finish(store, claim, now=await store.now()) == {claim.token}
        assert (await read(store, job_id)).state is State.SUCCEEDED
