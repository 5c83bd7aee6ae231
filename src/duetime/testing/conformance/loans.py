"""A transaction that is lent to a handler is committed with the settlement of its job, or not at all."""

from __future__ import annotations

import pytest

from duetime.errors import ClaimLost
from duetime.model.outcome import Failed, Succeeded
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    finish,
    hire,
    job,
    outcomes,
    put,
    read,
    settlement,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite, in_transactions

MINUTE = 60 * SECOND


class TestLend(StoreSuite):
    """`lend`."""

    @pytest.mark.covers("effect-and-completion")
    @in_transactions
    async def test_a_loan_that_is_completed_settles_the_job_and_what_was_enqueued_in_it(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        claim = await take_one(store)
        loan = store.lend(timeout=MINUTE)
        connection = await loan.begin()
        (new,) = await store.enqueue([job()], tx=connection)
        assert await other.get([new]) == []
        await loan.complete(settlement(claim, Succeeded('"done"'), now=clock.now()))
        record = await read(other, job_id)
        assert (record.state, record.result) == (State.SUCCEEDED, '"done"')
        assert [claim.job_id for claim in await take(other)] == [new]

    @pytest.mark.covers("effect-and-completion")
    @in_transactions
    async def test_a_loan_that_is_abandoned_leaves_the_claim_and_nothing_else(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        claim = await take_one(store)
        loan = store.lend(timeout=MINUTE)
        (new,) = await store.enqueue([job()], tx=await loan.begin())
        await loan.abandon(ZeroDivisionError())
        assert await store.get([new]) == []
        assert (await read(store, job_id)).state is State.RUNNING
        assert claim.token in await finish(store, claim, now=clock.now())

    @pytest.mark.covers("vanished-job")
    @in_transactions
    async def test_a_loan_whose_claim_is_lost_commits_nothing(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await put(store, retries=3)
        claim = await take_one(store)
        await finish(store, claim, Failed(error="lost"), now=clock.now())
        clock.advance(MINUTE)
        await take(store)
        before = await read(store, job_id)
        loan = store.lend(timeout=MINUTE)
        (new,) = await store.enqueue([job()], tx=await loan.begin())
        with pytest.raises(ClaimLost, match=job_id):
            await loan.complete(settlement(claim, Succeeded(), now=clock.now()))
        assert await store.get([new]) == []
        assert await read(store, job_id) == before
        assert await outcomes(store, job_id) == ["error"]

    @in_transactions
    async def test_jobs_that_a_settlement_brings_are_stored_with_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        follower = job()
        loan = store.lend(timeout=MINUTE)
        await loan.begin()
        await loan.complete(settlement(claim, Succeeded(), now=clock.now(), new_jobs=(follower,)))
        assert (await read(store, follower.id)).state is State.PENDING

    @in_transactions
    async def test_one_loan_follows_another(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        ids = [await put(store) for _ in range(3)]
        for claim in await take(store):
            loan = store.lend(timeout=MINUTE)
            await loan.begin()
            await loan.complete(settlement(claim, Succeeded(), now=clock.now()))
        assert {(await read(store, job_id)).state for job_id in ids} == {State.SUCCEEDED}
