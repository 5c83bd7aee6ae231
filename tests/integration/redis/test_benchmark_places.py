"""A benchmark's database on Redis goes back to what it held before a measure."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from benchmarks.ledger import now
from benchmarks.places import RedisDatabase, fill_all
from benchmarks.schedules import store_rules
from benchmarks.subject import Subject
from duetime.model.triggers.every import Every
from tools.servers import RedisServer

_NUMBER = 9
_AGO = 60_000_000


@pytest.fixture
def place(redis: RedisServer) -> RedisDatabase:
    """A database of the shared server that no other test uses."""
    return RedisDatabase(redis, _NUMBER)


def everything(place: RedisDatabase) -> dict[bytes, Any]:
    """Return all that is stored."""
    with Redis.from_url(place.url) as client:
        values = {b"hash": client.hgetall, b"zset": lambda key: client.zrange(key, 0, -1, withscores=True)}
        kinds = {key: client.type(key) for key in client.scan_iter("{duetime}:*")}
        return {key: values[kind](key) for key, kind in kinds.items()}


@pytest.mark.parametrize("future", [0, 20])
async def test_what_a_measure_stores_is_removed_and_what_was_there_before_it_stays(
    place: RedisDatabase, future: int
) -> None:
    with Redis.from_url(place.url) as client:
        client.flushdb()
    await fill_all(place.url, future)
    place.keep()
    before = everything(place)
    await store_rules(place.url, [Every(interval=86_400_000_000, start=now() - _AGO)], before=now() + _AGO)
    subject = Subject(place.url)
    async with subject.scheduler as scheduler:
        await subject.enqueue_many(5, batch=5)
        async with scheduler.worker():
            await subject.until_ran(6, within=30)
        # Nobody runs these.
        await scheduler.enqueue_many([subject.call(6), subject.tick.call(7)])
    assert everything(place) != before
    place.tidy()
    assert everything(place) == before
