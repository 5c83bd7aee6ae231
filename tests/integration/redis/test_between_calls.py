"""What was decided on a look is done only where it is still true."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import JobTerms, Key
from duetime.model.limits import Gate
from duetime.stores.base import ClaimRequest
from duetime.stores.open import open_store
from duetime.stores.redis.store import RedisStore
from duetime.testing.conformance.kit import TASK, hire, job, put
from tools.servers import RedisServer

GATED = JobTerms(gate=TASK)
DEMAND = ClaimRequest(worker="w1", claim_id="c", queues=(("default", 9),), limit=9, tasks=(TASK,))
REPLACE = Key(value="k", if_exists="replace")


@pytest.fixture
async def store(redis: RedisServer) -> AsyncIterator[RedisStore]:
    redis.flush()
    store = open_store(redis.url())
    assert isinstance(store, RedisStore)
    await store.open()
    await hire(store, "w1")
    yield store
    await store.close()


def before_they_are_seized(store: RedisStore, deed: Callable[[], Awaitable[object]]) -> None:
    """Let something happen between the look at limits and the claim that follows from it."""
    whole: Any = store
    seize = whole._seize

    async def later(*asked: Any) -> Any:
        await deed()
        return await seize(*asked)

    whole._seize = later


async def test_nothing_is_handed_out_of_a_queue_that_was_paused_meanwhile(store: RedisStore) -> None:
    await store.set_queue_limit("default", Gate(5, None, 0))
    await store.enqueue([job() for _ in range(5)])
    before_they_are_seized(store, lambda: store.pause_queue("default", reason=None))
    assert (await store.claim_limited(DEMAND)).claims == []


@pytest.mark.parametrize("limit", [Gate(1, None, 0), Gate(5, 1, 10), None])
async def test_nothing_is_handed_out_under_a_limit_that_was_changed_meanwhile(
    store: RedisStore, limit: Gate | None
) -> None:
    await store.set_queue_limit("default", Gate(5, None, 0))
    await store.enqueue([job() for _ in range(5)])
    before_they_are_seized(store, lambda: store.set_queue_limit("default", limit))
    assert (await store.claim_limited(DEMAND)).claims == []


async def test_nothing_is_handed_out_of_a_queue_that_was_limited_meanwhile(store: RedisStore) -> None:
    await put(store, terms=GATED)
    before_they_are_seized(store, lambda: store.set_queue_limit("default", Gate(5, None, 0)))
    demand = replace(DEMAND, limits={TASK: Gate(1, None, 0)})
    assert (await store.claim_limited(demand)).claims == []


async def test_a_job_that_was_moved_to_another_queue_meanwhile_stays_there(store: RedisStore) -> None:
    await put(store, terms=GATED, key=REPLACE)
    before_they_are_seized(store, lambda: put(store, terms=GATED, queue="slow", key=REPLACE))
    demand = replace(DEMAND, limits={TASK: Gate(1, None, 0)})
    assert (await store.claim_limited(demand)).claims == []
