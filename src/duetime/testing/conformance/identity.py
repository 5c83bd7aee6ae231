"""A job is one record, known by its id through every claim, try and rescue: never a copy of it, never its contents."""

from __future__ import annotations

import pytest

from duetime.model.outcome import Failed, Outcome, Released, Succeeded
from duetime.model.retry import exponential, fixed
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.fencing import lose
from duetime.testing.conformance.kit import (
    LEASE,
    finish,
    hire,
    job,
    outcomes,
    put,
    read,
    rescue,
    take,
    take_one,
)
from duetime.testing.conformance.rescue import bring_home
from duetime.testing.conformance.suite import StoreSuite

GROWING = exponential(7, jitter=False)
WAITS = (5, 10, 20, 40, 80, 160, 300)
"""What it makes of seven retries, in seconds."""


class TestIdentity(StoreSuite):
    """What stays the same of a job."""

    @pytest.mark.parametrize("outcome", [Succeeded(), Failed(error="boom"), Released()])
    @pytest.mark.covers("claim-by-contents")
    async def test_a_run_that_changed_what_it_was_given_is_settled_and_leaves_nothing_behind(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        await hire(store, "w1")
        job_id = await put(store, payload='{"to": ["ann"], "tries": 0}')
        claim = await take_one(store)
        changed = claim._replace(payload='{"tries":1}', priority=9)
        assert await finish(store, changed, outcome, now=clock.now(), policy=fixed(3, 1)) == {claim.token}
        assert (await store.attend("w1")).held == frozenset()
        record = await read(store, job_id)
        assert (record.payload, record.priority) == (claim.payload, claim.priority)
        await store.bury(["w1"])
        await hire(store, "w2")
        assert await rescue(store, "w2") == [], "nothing is left that somebody could take for lost"

    @pytest.mark.covers("every-retry-is-the-first")
    async def test_the_waits_of_a_failing_job_grow_and_it_is_the_same_job_until_it_is_given_up(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", lease=3600 * SECOND)
        job_id = await put(store, payload='{"to": "ann"}')
        waited: list[int] = []
        for number in range(len(WAITS) + 1):
            claim = await take_one(store)
            assert (claim.job_id, claim.failures, claim.payload) == (job_id, number, '{"to": "ann"}')
            await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=GROWING)
            record = await read(store, job_id)
            if record.state is State.PENDING:
                waited.append((record.due_at - clock.now()) // SECOND)
                clock.set(record.due_at)
        assert tuple(waited) == WAITS
        record = await read(store, job_id)
        assert (record.state, record.failures) == (State.FAILED, len(WAITS) + 1)
        assert await outcomes(store, job_id) == ["error"] * len(WAITS)
        assert await take(store) == []
        assert await store.counts() == {("default", State.FAILED): 1}

    @pytest.mark.covers("rescue-makes-copies")
    async def test_a_rescue_moves_what_was_running_and_adds_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([job() for _ in range(3)])
        ended, retried, lost = await take(store)
        await finish(store, ended, now=clock.now())
        await finish(store, retried, Failed(error="boom"), now=clock.now(), policy=fixed(3, 1))
        await store.bury(["w1"])
        orphans = await rescue(store, "w2")
        assert [orphan.claim.job_id for orphan in orphans] == [lost.job_id]
        await bring_home(store, orphans, now=clock.now())
        for _ in range(2):
            assert await rescue(store, "w2") == []
        assert await store.counts() == {("default", State.SUCCEEDED): 1, ("default", State.PENDING): 2}
        clock.advance(1)
        claims = await take(store, "w2")
        assert sorted(claim.job_id for claim in claims) == sorted([retried.job_id, lost.job_id])

    @pytest.mark.covers("overdue-is-not-abandoned")
    async def test_how_late_a_job_is_does_not_make_its_claim_older(
        self, store: Store, clock: FakeClock
    ) -> None:
        await put(store)
        clock.set(clock.now() + 100 * LEASE)
        await hire(store, "w1", "w2")
        claim = await take_one(store)
        assert await rescue(store, "w2") == []
        clock.set(clock.now() + LEASE - 1)
        assert await rescue(store, "w2") == []
        assert await finish(store, claim, now=clock.now()) == {claim.token}

    @pytest.mark.covers("late-answer-frees-anothers-claim")
    @pytest.mark.parametrize("outcome", [Succeeded(), Failed(error="late"), Released()])
    async def test_a_late_answer_leaves_the_next_holder_its_claim_and_the_job_its_rescue(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        (late,), (rescued,) = await lose(store, clock)
        assert await finish(store, late, outcome, now=clock.now(), policy=fixed(9, 1)) == frozenset()
        assert (await store.attend("w2")).held == {rescued.token}
        await store.bury(["w2"])
        await hire(store, "w3")
        (orphan,) = await rescue(store, "w3")
        assert (orphan.claim.job_id, orphan.worker) == (late.job_id, "w2")
