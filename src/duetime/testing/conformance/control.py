"""Operators can cancel, delete and pause, and are told what came of it."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.job import JobTerms, Key
from duetime.model.outcome import Cancelled, Failed, Interrupted, Outcome, Released, Succeeded
from duetime.model.reports import NewLogPart
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import CancelAnswer, DeleteAnswer, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.callbacks import ALL
from duetime.testing.conformance.kit import (
    finish,
    hire,
    job,
    occurrence_job,
    outcomes,
    put,
    read,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite


async def paused_queues(store: Store) -> dict[str, str | None]:
    """Return the paused queues with their reasons."""
    return {queue.name: queue.paused_reason for queue in await store.queues() if queue.paused_at is not None}


class TestCancel(StoreSuite):
    """`cancel`."""

    async def test_a_pending_job_is_cancelled_with_the_reason(self, store: Store, clock: FakeClock) -> None:
        job_id = await put(store, delay=5)
        clock.advance(1)
        assert await store.cancel([job_id], reason="it's off") == {job_id: CancelAnswer.CANCELLED}
        record = await read(store, job_id)
        assert (record.state, record.reason, record.finished_at) == (State.CANCELLED, "it's off", clock.now())

    @pytest.mark.parametrize("ahead", [0, SECOND])
    async def test_a_claimed_job_is_asked_to_stop(self, store: Store, clock: FakeClock, ahead: int) -> None:
        await hire(store, "w1")
        await put(store, delay=5 if ahead else 0)
        claim = await take_one(store, ahead=ahead)
        assert await store.cancel([claim.job_id], reason="off") == {claim.job_id: CancelAnswer.REQUESTED}
        record = await read(store, claim.job_id)
        assert (record.state, record.cancel_requested_at, record.finished_at) == (
            State.RUNNING,
            clock.now(),
            None,
        )
        assert await finish(store, claim, Cancelled("off"), now=clock.now()) == {claim.token}
        assert (await read(store, claim.job_id)).state is State.CANCELLED

    @pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(error="boom"), Cancelled("no")])
    async def test_an_ended_job_stays_as_it_is(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, outcome, now=clock.now())
        before = await read(store, claim.job_id)
        clock.advance(1)
        assert await store.cancel([claim.job_id], reason="off") == {claim.job_id: CancelAnswer.FINISHED}
        assert await read(store, claim.job_id) == before

    async def test_an_unknown_job_is_told_as_such(self, store: Store) -> None:
        assert await store.cancel(["nothing"], reason="off") == {"nothing": CancelAnswer.UNKNOWN}
        assert await store.cancel([], reason="off") == {}

    @pytest.mark.covers("cancel-searches")
    async def test_each_job_of_a_batch_gets_its_own_answer(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        ended, held = await store.enqueue([job(priority=0), job(priority=1)])
        (claim,) = await take(store, limit=1)
        await finish(store, claim, now=clock.now())
        await take_one(store, limit=1)
        waiting = await put(store)
        assert await store.cancel([waiting, "nothing", held, ended], reason="off") == {
            waiting: CancelAnswer.CANCELLED,
            "nothing": CancelAnswer.UNKNOWN,
            held: CancelAnswer.REQUESTED,
            ended: CancelAnswer.FINISHED,
        }

    async def test_asking_twice_keeps_the_first_request(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        asked = clock.now()
        for reason in ("first", "second"):
            await store.cancel([claim.job_id], reason=reason)
            clock.advance(1)
        assert (await read(store, claim.job_id)).cancel_requested_at == asked

    @pytest.mark.parametrize(
        "outcome", [Released(), Released(5), Failed(error="boom"), Interrupted(reason="stop")]
    )
    async def test_a_job_that_would_go_back_ends_instead(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.cancel([claim.job_id], reason="off")
        now = clock.advance(1)
        assert await finish(store, claim, outcome, now=now, policy=fixed(5, 1)) == {claim.token}
        record = await read(store, claim.job_id)
        assert (record.state, record.reason, record.finished_at) == (State.CANCELLED, "off", now)
        clock.advance("1h")
        assert await take(store) == []

    @pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(error="boom")])
    async def test_a_job_that_ended_before_it_could_be_stopped_keeps_its_outcome(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.cancel([claim.job_id], reason="off")
        await finish(store, claim, outcome, now=clock.now())
        expected = State.SUCCEEDED if isinstance(outcome, Succeeded) else State.FAILED
        assert (await read(store, claim.job_id)).state is expected

    async def test_the_reason_of_the_one_who_asked_is_kept_when_a_run_stops(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.cancel([claim.job_id], reason="ordered twice")
        await finish(store, claim, Cancelled("cancelled on request"), now=clock.now())
        assert (await read(store, claim.job_id)).reason == "ordered twice"

    async def test_a_cancelled_job_that_ran_shows_its_start(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        begun = clock.now()
        await store.cancel([claim.job_id], reason="off")
        await finish(store, claim, Interrupted(reason="stop"), now=clock.advance(1))
        record = await read(store, claim.job_id)
        assert (record.started_at, record.worker) == (begun, "w1")


class TestDelete(StoreSuite):
    """`delete`."""

    async def test_a_job_that_has_ended_goes_with_its_tries_and_its_log(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id, other = await put(store, priority=0), await put(store)
        for outcome in (Failed(error="boom"), Failed(error="again", final=True)):
            claim, *_ = claims = await take(store, limit=2)
            await store.report([], [NewLogPart(one.token, 1, 1, "a line") for one in claims])
            for one in claims:
                await finish(store, one, outcome, now=clock.now(), policy=fixed(5, 0))
        assert await store.delete([claim.job_id]) == {job_id: DeleteAnswer.DELETED}
        assert await store.get([job_id]) == []
        assert await outcomes(store, job_id) == []
        assert await store.logs(job_id) == []
        assert await store.counts() == {("default", State.FAILED): 1}
        assert [record.id for record in await store.find(JobFilter(states=frozenset({State.FAILED})))] == [
            other
        ]
        assert await outcomes(store, other) == ["error"]
        assert len(await store.logs(other)) == 2

    @pytest.mark.parametrize("gate", [None, "g"])
    async def test_a_job_that_waits_goes_and_is_not_handed_out(self, store: Store, gate: str | None) -> None:
        await hire(store, "w1")
        job_id = await put(store, terms=JobTerms(gate=gate))
        assert await store.delete([job_id]) == {job_id: DeleteAnswer.DELETED}
        assert await take(store) == []
        assert (await store.census(most=10)).tallies == []
        assert await store.find(JobFilter(states=frozenset({State.PENDING}))) == []

    @pytest.mark.parametrize("ahead", [0, SECOND])
    async def test_a_job_that_a_worker_has_stays_and_goes_on(
        self, store: Store, clock: FakeClock, ahead: int
    ) -> None:
        await hire(store, "w1")
        await put(store, delay=5 if ahead else 0)
        claim = await take_one(store, ahead=ahead)
        before = await read(store, claim.job_id)
        assert await store.delete([claim.job_id]) == {claim.job_id: DeleteAnswer.RUNNING}
        assert await read(store, claim.job_id) == before
        assert await finish(store, claim, now=clock.now()) == {claim.token}
        assert await store.delete([claim.job_id]) == {claim.job_id: DeleteAnswer.DELETED}

    async def test_each_job_of_a_batch_gets_its_own_answer(self, store: Store) -> None:
        await hire(store, "w1")
        running = await put(store)
        await take_one(store)
        waiting, skipped = await put(store), await put(store, state=State.SKIPPED)
        assert await store.delete([waiting, "nothing", running, skipped]) == {
            waiting: DeleteAnswer.DELETED,
            "nothing": DeleteAnswer.UNKNOWN,
            running: DeleteAnswer.RUNNING,
            skipped: DeleteAnswer.DELETED,
        }
        assert await store.delete([waiting]) == {waiting: DeleteAnswer.UNKNOWN}
        assert await store.delete([]) == {}

    async def test_more_jobs_than_one_statement_takes_go_in_one_call(self, store: Store) -> None:
        ids = await store.enqueue([job() for _ in range(2_500)])
        assert await store.delete(ids) == dict.fromkeys(ids, DeleteAnswer.DELETED)
        assert await store.counts() == {}

    @pytest.mark.parametrize("ended", [False, True])
    async def test_its_key_is_free_at_once(self, store: Store, clock: FakeClock, *, ended: bool) -> None:
        key = Key(value="k", keep=60 * SECOND)
        await hire(store, "w1")
        job_id = await put(store, key=key)
        if ended:
            await finish(store, await take_one(store), now=clock.now())
        assert await put(store, key=key) == job_id
        await store.delete([job_id])
        assert await put(store, key=key) != job_id

    async def test_an_occurrence_leaves_no_trace_in_its_schedule(
        self, store: Store, clock: FakeClock
    ) -> None:
        gone, kept = occurrence_job("s", clock.now() + 1), occurrence_job("s", clock.now() + 2)
        await store.enqueue([gone, kept])
        await store.delete([gone.id])
        past = await store.past_occurrences("s", until=clock.now() + 9, limit=9)
        assert [record.id for record in past] == [kept.id]
        assert [record.id for record in await store.find(JobFilter(schedule="s"))] == [kept.id]

    async def test_nothing_is_called_back(self, store: Store) -> None:
        await store.delete([await put(store, terms=ALL)])
        assert await store.counts() == {}

    async def test_a_claim_that_was_settled_before_cannot_bring_it_back(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, now=clock.now())
        await store.delete([claim.job_id])
        assert await finish(store, claim, Failed(error="boom"), now=clock.now()) == frozenset()
        await store.report([], [NewLogPart(claim.token, 1, 1, "a line")])
        assert await store.logs(claim.job_id) == []
        assert await store.counts() == {}

    @pytest.mark.covers("purge-takes-running")
    async def test_a_job_is_either_claimed_or_deleted(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        for _ in range(20):
            ids = await store.enqueue([job() for _ in range(10)])
            claims, answers = await asyncio.gather(take(store, limit=5), other.delete(ids))
            claimed = {claim.job_id for claim in claims}
            assert claimed == {one for one, answer in answers.items() if answer is DeleteAnswer.RUNNING}
            assert {record.id for record in await store.get(ids)} == claimed
            for claim in claims:
                assert await finish(store, claim, now=clock.now()) == {claim.token}


class TestQueues(StoreSuite):
    """`pause_queue` and `resume_queue`."""

    @pytest.mark.covers("nothing-to-see")
    async def test_paused_queues_are_listed_with_their_reasons(self, store: Store, other: Store) -> None:
        assert await paused_queues(store) == {}
        await store.pause_queue("a", reason="it's broken")
        await store.pause_queue("b", reason=None)
        assert await paused_queues(other) == {"a": "it's broken", "b": None}
        await other.resume_queue("a")
        await other.resume_queue("never paused")
        assert await paused_queues(store) == {"b": None}

    async def test_a_pause_leaves_running_jobs_alone(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await store.pause_queue("default", reason=None)
        assert (await store.attend("w1")).held == {claim.token}
        assert await finish(store, claim, now=clock.now()) == {claim.token}

    async def test_pausing_twice_keeps_the_later_reason(self, store: Store) -> None:
        for reason in ("first", "second"):
            await store.pause_queue("a", reason=reason)
        assert await paused_queues(store) == {"a": "second"}
