"""Rates count starts in any stretch of time, to the edge of it."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.limits import Gate
from duetime.model.outcome import Failed
from duetime.model.retry import fixed
from duetime.model.time import MINUTE
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    finish,
    hire,
)
from duetime.testing.conformance.limits import ask, gated, pass_all
from duetime.testing.conformance.suite import MakeStore, StoreSuite


class TestRates(StoreSuite):
    """`claim_limited` where only so many may start in a period."""

    @pytest.mark.covers("limit-exceeded")
    async def test_a_window_slides_exactly(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated() for _ in range(9)])
        rule = Gate(count=2, period=10)
        begin = clock.now()
        started: list[int] = []
        for moment in range(begin, begin + 26):
            clock.set(moment)
            if (moment - begin) % 3 == 0:
                started += [
                    claim.claimed_at - begin for claim in (await ask(store, limit=1, rule=rule)).claims
                ]
        assert started == [0, 3, 12, 15, 24]

    @pytest.mark.covers("limit-exceeded")
    async def test_the_start_that_leaves_the_window_makes_room_at_that_instant(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([gated() for _ in range(9)])
        rule = Gate(count=2, period=10)
        begin = clock.now()
        assert len(await pass_all(store, rule=rule)) == 2
        assert await ask(store, rule=rule) == ([], begin + 10)
        clock.set(begin + 9)
        assert await ask(store, rule=rule) == ([], begin + 10)
        clock.set(begin + 10)
        assert len(await pass_all(store, rule=rule)) == 2

    async def test_what_has_ended_still_counts_and_a_retry_counts_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([gated()])
        rule = Gate(count=2, period=MINUTE)
        for _ in range(2):
            (claim,) = (await ask(store, rule=rule)).claims
            await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=fixed(9, 0))
        assert (await ask(store, rule=rule)).claims == []

    async def test_each_key_has_a_window_of_its_own(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(key) for key in "abab"])
        claims = await pass_all(store, rule=Gate(count=1, period=MINUTE))
        assert sorted(str(claim.gate) for claim in claims) == ["greet[key=a]", "greet[key=b]"]

    async def test_a_limit_and_a_rate_hold_both(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated() for _ in range(5)])
        rule = Gate(most=1, count=2, period=MINUTE)
        for _ in range(2):
            (claim,) = await pass_all(store, rule=rule)
            await finish(store, claim, now=clock.now())
        assert await ask(store, rule=rule) == ([], clock.now() + MINUTE)

    @pytest.mark.covers("limit-exceeded")
    async def test_many_claimers_at_once_never_exceed_a_rate(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock)]
        workers = [f"w{number}" for number in range(6)]
        await hire(store, *workers)
        await store.enqueue([gated() for _ in range(30)])
        rule = Gate(count=5, period=MINUTE)
        asked = [pass_all(stores[n % 3], worker, rule=rule) for n, worker in enumerate(workers)]
        shares = await asyncio.gather(*asked)
        assert sum(map(len, shares)) == 5

    async def test_code_without_the_rate_does_not_empty_the_window(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated() for _ in range(4)])
        rule = Gate(count=2, period=MINUTE)
        assert len(await pass_all(store, rule=rule)) == 2
        assert len(await pass_all(store, rule=Gate(most=3))) == 1
        assert (await ask(store, rule=rule)).claims == []

    async def test_a_clock_that_is_set_back_does_not_shut_a_rate(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(due_at=1) for _ in range(4)])
        rule = Gate(count=2, period=MINUTE)
        assert len(await pass_all(store, rule=rule)) == 2
        clock.set(clock.now() - 60 * MINUTE)
        assert len(await pass_all(store, rule=rule)) == 2

    async def test_a_gate_is_not_forgotten_while_its_window_counts(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([gated()])
        rule = Gate(count=1, period=MINUTE)
        (claim,) = await pass_all(store, rule=rule)
        await finish(store, claim, now=clock.now())
        clock.advance(60)
        assert await store.prune_gates() == 0
        clock.set(clock.now() + 1)
        assert await store.prune_gates() == 1
