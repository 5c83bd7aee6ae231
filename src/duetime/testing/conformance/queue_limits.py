"""The limits of queues hold for all their jobs, whatever gates these have."""

from __future__ import annotations

import pytest

from duetime.model.limits import UNLIMITED, Gate
from duetime.model.time import MINUTE
from duetime.stores.base import NextDue, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    finish,
    hire,
    job,
    put,
    take,
)
from duetime.testing.conformance.limits import ask, gated, pass_all, run_all
from duetime.testing.conformance.suite import MakeStore, StoreSuite


async def limits_of_queues(store: Store) -> dict[str, Gate]:
    """Return the limited queues with their limits."""
    return {queue.name: queue.limit for queue in await store.queues() if queue.limit != UNLIMITED}


class TestQueueLimits(StoreSuite):
    """`set_queue_limit`."""

    @pytest.mark.covers("limit-exceeded")
    async def test_a_limited_queue_runs_so_many_at_once(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        stored = await store.enqueue([job() for _ in range(4)])
        await store.set_queue_limit("default", Gate(most=2))
        assert await take(store) == []
        claims = await pass_all(store)
        assert [claim.job_id for claim in claims] == stored[:2]
        assert all(claim.limited for claim in claims)
        await finish(store, claims[0], now=clock.now())
        assert [claim.job_id for claim in await pass_all(store)] == [stored[2]]

    @pytest.mark.covers("limit-exceeded")
    async def test_a_limit_counts_what_runs_when_it_is_set(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(4)])
        first, *_ = await take(store, limit=2)
        await store.set_queue_limit("default", Gate(most=2))
        assert await pass_all(store) == []
        await store.set_queue_limit("default", None)
        await store.set_queue_limit("default", Gate(most=2))
        await finish(store, first, now=clock.now())
        assert len(await pass_all(store)) == 1

    async def test_a_full_queue_hides_no_other(self, store: Store) -> None:
        await hire(store, "w1")
        await store.set_queue_limit("full", Gate(most=1))
        await store.set_queue_limit("free", Gate(most=1))
        both = (("full", 9), ("free", 9))
        await store.enqueue([job(queue="full", priority=0) for _ in range(9)])
        assert len(await pass_all(store, queues=both)) == 1
        await store.enqueue([job(queue="free"), gated("a", queue="full"), gated("a", queue="open")])
        found = await pass_all(store, queues=(*both, ("open", 9)))
        assert sorted(claim.queue for claim in found) == ["free", "open"]

    async def test_a_gate_and_the_limit_of_its_queue_hold_both(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.set_queue_limit("default", Gate(most=3))
        await store.enqueue([gated("a", priority=1), gated("a", priority=1), gated("b", priority=2)])
        await store.enqueue([job(priority=3), job(priority=3)])
        claims = await pass_all(store)
        assert [claim.gate for claim in claims] == ["greet[key=a]", "greet[key=b]", None]
        await finish(store, claims[2], now=clock.now())
        (last,) = await pass_all(store)
        assert last.gate is None, "the gate of a is full"

    async def test_a_queue_may_have_a_rate(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.set_queue_limit("default", Gate(count=2, period=10))
        await store.enqueue([job(), job(), gated()])
        begin = clock.now()
        assert len(await pass_all(store)) == 2
        assert await ask(store) == ([], begin + 10)
        clock.set(begin + 10)
        assert len(await pass_all(store)) == 1

    async def test_a_paused_queue_gives_nothing_whatever_its_limit(self, store: Store) -> None:
        await hire(store, "w1")
        await store.set_queue_limit("default", Gate(most=2))
        await store.pause_queue("default", reason=None)
        await store.enqueue([job(), gated()])
        assert (await ask(store)).claims == []
        await store.resume_queue("default")
        assert len(await pass_all(store)) == 2

    async def test_a_limit_is_read_changed_and_removed(self, store: Store, other: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(5)])
        rule = Gate(most=1, count=5, period=MINUTE)
        await store.set_queue_limit("default", rule)
        assert await limits_of_queues(other) == {"default": rule}
        assert len(await pass_all(store)) == 1
        await other.set_queue_limit("default", Gate(most=2))
        assert await limits_of_queues(other) == {"default": Gate(most=2)}
        assert len(await pass_all(store)) == 1
        await other.set_queue_limit("default", None)
        assert await limits_of_queues(other) == {}
        assert (await ask(store)).claims == []
        assert len(await take(store)) == 3

    async def test_unknown_tasks_of_a_limited_queue_are_left_alone(self, store: Store) -> None:
        await hire(store, "w1")
        await store.set_queue_limit("default", Gate(most=2))
        await store.enqueue([job(task="stranger", priority=0) for _ in range(9)])
        known = await put(store)
        assert [claim.job_id for claim in await pass_all(store)] == [known]

    async def test_only_the_future_of_a_limited_queue_is_waited_for(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        await store.set_queue_limit("a", Gate(most=1))
        await store.enqueue([job(queue="a"), job(queue="a", delay=3), job(queue="b", delay=9)])
        assert await store.next_due(["a", "b"], [TASK]) == NextDue(now, now + 9, now + 3, limited=True)

    @pytest.mark.covers("limit-exceeded")
    async def test_many_claimers_at_once_never_exceed_it(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock), await make_store(clock)]
        workers = [f"w{number}" for number in range(8)]
        await hire(store, *workers)
        await store.set_queue_limit("default", Gate(most=2))
        stored = await store.enqueue([job() if number % 2 else gated(number) for number in range(60)])
        done, peaks = await run_all(stores, workers, clock, len(stored))
        assert sorted(done) == sorted(stored)
        assert peaks["default"] == 2
