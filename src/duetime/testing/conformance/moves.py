"""Operators can put jobs off and take them away from their workers."""

from __future__ import annotations

import pytest

from duetime.model.outcome import Interrupted, Succeeded
from duetime.model.states import State
from duetime.model.time import LATEST, LONGEST_DURATION, SECOND
from duetime.stores.base import ReleaseAnswer, SnoozeAnswer, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import finish, hire, outcomes, put, read, take, take_one
from duetime.testing.conformance.suite import StoreSuite


class TestSnooze(StoreSuite):
    """`snooze`."""

    async def test_a_job_that_waits_for_its_time_waits_longer(self, store: Store, clock: FakeClock) -> None:
        job_id = await put(store, delay=5 * SECOND)
        due = clock.now() + 5 * SECOND
        clock.advance(1)
        assert await store.snooze([job_id], delay=10 * SECOND) == {job_id: SnoozeAnswer.SNOOZED}
        assert (await read(store, job_id)).due_at == due + 10 * SECOND

    async def test_no_job_is_put_off_beyond_the_latest_time_there_is(self, store: Store) -> None:
        first, second = await put(store, due_at=LATEST), await put(store, due_at=LATEST - LONGEST_DURATION)
        await store.snooze([first, second], delay=LONGEST_DURATION)
        assert [(await read(store, job_id)).due_at for job_id in (first, second)] == [LATEST, LATEST]

    @pytest.mark.covers("no-way-to-interfere")
    async def test_an_overdue_job_is_put_off_from_now(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        clock.advance("1h")
        await hire(store, "w1")
        await store.snooze([job_id], delay=10 * SECOND)
        assert (await read(store, job_id)).due_at == clock.now() + 10 * SECOND
        assert await take(store) == []
        clock.advance(10)
        assert (await take_one(store)).job_id == job_id

    @pytest.mark.parametrize("ahead", [0, SECOND])
    async def test_a_claimed_job_stays_where_it_is(self, store: Store, ahead: int) -> None:
        await hire(store, "w1")
        await put(store, delay=5 if ahead else 0)
        claim = await take_one(store, ahead=ahead)
        before = await read(store, claim.job_id)
        assert await store.snooze([claim.job_id], delay=SECOND) == {claim.job_id: SnoozeAnswer.RUNNING}
        assert await read(store, claim.job_id) == before

    async def test_each_job_of_a_batch_gets_its_own_answer(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, now=clock.now())
        before = await read(store, claim.job_id)
        waiting = await put(store)
        assert await store.snooze([claim.job_id, "nothing", waiting], delay=SECOND) == {
            claim.job_id: SnoozeAnswer.FINISHED,
            "nothing": SnoozeAnswer.UNKNOWN,
            waiting: SnoozeAnswer.SNOOZED,
        }
        assert await read(store, claim.job_id) == before
        assert await store.snooze([], delay=SECOND) == {}


class TestRelease(StoreSuite):
    """`release`."""

    async def test_an_unstarted_claim_goes_back_and_costs_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await put(store, delay=5)
        claim = await take_one(store, ahead=SECOND)
        assert await store.release([claim.job_id], force=False) == {claim.job_id: ReleaseAnswer.RELEASED}
        record = await read(store, claim.job_id)
        assert (record.state, record.worker, record.started_at) == (State.PENDING, None, None)
        assert (record.due_at, record.failures, record.crashes) == (claim.due_at, 0, 0)
        assert await outcomes(store, claim.job_id) == []
        clock.advance(1)
        assert (await take_one(store, "w2")).fence > claim.fence

    async def test_a_started_claim_is_left_alone(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        before = await read(store, claim.job_id)
        assert await store.release([claim.job_id], force=False) == {claim.job_id: ReleaseAnswer.STARTED}
        assert await read(store, claim.job_id) == before

    @pytest.mark.covers("no-way-to-interfere")
    async def test_by_force_a_started_claim_goes_back_and_its_run_records_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        claim = await take_one(store)
        begun = clock.now()
        now = clock.advance(1)
        assert await store.release([claim.job_id], force=True) == {claim.job_id: ReleaseAnswer.RELEASED}
        assert await finish(store, claim, Succeeded("1"), now=now) == frozenset()
        (record,) = await store.get([claim.job_id])
        assert (record.state, record.result, record.due_at) == (State.PENDING, None, now)
        (kept,) = await store.attempts(claim.job_id)
        assert (kept.outcome, kept.worker, kept.started_at) == ("interrupted", "w1", begun)
        heir = await take_one(store, "w2")
        assert await finish(store, claim, Succeeded("1"), now=now) == frozenset()
        assert await finish(store, heir, Succeeded("2"), now=now) == {heir.token}
        assert (await read(store, claim.job_id)).result == "2"

    async def test_a_job_that_must_not_run_twice_is_not_handed_out_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store, on_crash="fail")
        claim = await take_one(store)
        await store.release([claim.job_id], force=True)
        record = await read(store, claim.job_id)
        assert (record.state, record.reason) == (State.CANCELLED, "released by force")
        assert await finish(store, claim, Interrupted(reason="stop"), now=clock.now()) == frozenset()

    async def test_a_job_whose_cancellation_is_requested_ends_instead(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.cancel([claim.job_id], reason="off")
        assert await store.release([claim.job_id], force=True) == {claim.job_id: ReleaseAnswer.RELEASED}
        record = await read(store, claim.job_id)
        assert (record.state, record.reason) == (State.CANCELLED, "off")

    async def test_what_no_worker_has_is_told_as_such(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, now=clock.now())
        waiting = await put(store)
        before = await store.get([claim.job_id, waiting])
        assert await store.release([waiting, claim.job_id, "nothing"], force=True) == {
            waiting: ReleaseAnswer.WAITING,
            claim.job_id: ReleaseAnswer.FINISHED,
            "nothing": ReleaseAnswer.UNKNOWN,
        }
        assert await store.get([claim.job_id, waiting]) == before
        assert await store.release([], force=True) == {}
