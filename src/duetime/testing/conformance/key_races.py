"""Whoever asks for a key at the same time, and whatever happens to its holder meanwhile, there is one holder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from duetime.errors import KeyTaken
from duetime.model.job import Key, NewJob
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.keys import KEPT, RAISE, REPLACE, RETURN, THROTTLED, jobs_of
from duetime.testing.conformance.kit import finish, hire, job, put, take, take_one
from duetime.testing.conformance.suite import MakeStore, StoreSuite


class TestKeysUnderConcurrency(StoreSuite):
    """Many stores ask for the same keys at once."""

    @pytest.mark.covers("key-conflict-is-told")
    @pytest.mark.parametrize("policy", [RETURN, REPLACE, KEPT, THROTTLED])
    async def test_a_key_has_one_live_job(self, make_store: MakeStore, clock: FakeClock, policy: Key) -> None:
        stores = [await make_store(clock) for _ in range(4)]
        names = [f"k{number}" for number in range(5)]
        asked = [[[job(key=replace(policy, value=name))] for name in names] for _ in range(8)]
        answers = await asyncio.gather(
            *(stores[n % 4].enqueue(batch) for n, batches in enumerate(asked) for batch in batches)
        )
        live = await jobs_of(stores[0])
        assert sorted(str(found.key) for found in live) == names
        assert {job_id for (job_id,) in answers} == {found.id for found in live}

    async def test_of_those_that_insist_one_wins(self, make_store: MakeStore, clock: FakeClock) -> None:
        stores = [await make_store(clock) for _ in range(4)]
        answers = await asyncio.gather(
            *(stores[n % 4].enqueue([job(key=RAISE), job()]) for n in range(20)), return_exceptions=True
        )
        assert sum(isinstance(answer, KeyTaken) for answer in answers) == 19
        assert len(await jobs_of(stores[0])) == 2

    async def test_batches_that_want_each_others_keys_all_end(
        self, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [await make_store(clock) for _ in range(4)]
        names = [f"k{number}" for number in range(10)]
        batches: list[Sequence[NewJob]] = [
            [job(key=replace(REPLACE, value=name)) for name in (names if n % 2 else reversed(names))]
            for n in range(12)
        ]
        await asyncio.gather(*(stores[n % 4].enqueue(batch) for n, batch in enumerate(batches)))
        assert sorted(str(found.key) for found in await jobs_of(stores[0])) == names

    @pytest.mark.parametrize("policy", [KEPT, RETURN, REPLACE])
    async def test_a_job_that_ends_while_others_ask_leaves_one_holder_at_the_most(
        self, make_store: MakeStore, clock: FakeClock, policy: Key
    ) -> None:
        stores = [await make_store(clock) for _ in range(3)]
        await hire(stores[0], "w1")
        for _ in range(10):
            first = await put(stores[0], key=policy)
            claim = await take_one(stores[0])
            answers = await asyncio.gather(
                stores[1].enqueue([job(key=policy)]),
                finish(stores[0], claim, now=clock.now()),
                stores[2].enqueue([job(key=policy)]),
            )
            assert answers[1] == {claim.token}
            served = {answers[0][0], answers[2][0]}
            behind = [found for found in await jobs_of(stores[0]) if not found.state.terminal]
            if policy is KEPT:
                assert served == {first}
                assert behind == []
                clock.advance(10)
                continue
            assert len(behind) <= 1
            assert served <= {first, *(found.id for found in behind)}
            if policy is REPLACE:
                assert len(behind) == 1
            await store_is_emptied(stores[0], clock)

    async def test_a_replacement_that_races_the_claim_is_run_by_somebody(
        self, make_store: MakeStore, clock: FakeClock
    ) -> None:
        one, two = [await make_store(clock) for _ in range(2)]
        await hire(one, "w1")
        for number in range(10):
            await put(one, key=REPLACE, payload="old")
            claims, _ = await asyncio.gather(take(one), two.enqueue([job(key=REPLACE, payload=f"{number}")]))
            claims += await take(one)
            assert [claim.payload for claim in claims][-1] == f"{number}"
            for claim in claims:
                await finish(one, claim, now=clock.now())


async def store_is_emptied(store: Store, clock: FakeClock) -> None:
    """Run what waits to its end."""
    for claim in await take(store):
        await finish(store, claim, now=clock.now())
