"""Operators can change jobs that wait, put them off, and take them away from their workers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import JobEdit, JobTerms, Key
from duetime.model.outcome import Interrupted, Succeeded
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import LATEST, LONGEST_DURATION, SECOND
from duetime.stores.base import EditAnswer, ReleaseAnswer, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import TASK, finish, hire, job, outcomes, put, read, take, take_one
from duetime.testing.conformance.suite import StoreSuite

EVERYTHING = JobEdit(
    delay=SECOND, queue="mail", priority=0, retries=7, timeout=8, expires=9, payload="[]", gate="g"
)


def seen(read: StoredJob) -> dict[str, Any]:
    """Return the conditions under which a job is still as it was read."""
    names = ("due_at", "fence", "queue", "priority", "retries", "timeout", "expires_at", "payload")
    return {f"if_{name}": getattr(read, name) for name in names}


class TestEdit(StoreSuite):
    """`edit`."""

    async def test_what_is_given_changes_and_all_else_stays(self, store: Store, clock: FakeClock) -> None:
        job_id = await put(store, delay=5, terms=JobTerms(tags=("a",), gate="g"), key=Key(value="k"))
        before = await read(store, job_id)
        changes: dict[str, Any] = {"queue": "mail", "priority": 0, "retries": 7, "timeout": 8}
        changes |= {"due_at": clock.now() + 9, "expires_at": clock.now() + 99}
        for name, value in changes.items():
            assert await store.edit([job_id], JobEdit(**{name: value})) == {job_id: EditAnswer.CHANGED}
        assert await read(store, job_id) == replace(before, **changes)
        assert await store.edit([job_id], JobEdit()) == {job_id: EditAnswer.CHANGED}
        assert await read(store, job_id) == replace(before, **changes)

    @pytest.mark.parametrize("gate", [None, "other"])
    async def test_new_arguments_come_with_their_gate(self, store: Store, gate: str | None) -> None:
        job_id = await put(store, terms=JobTerms(gate="g"))
        await store.edit([job_id], JobEdit(payload='{"a":1}', gate=gate))
        record = await read(store, job_id)
        assert (record.payload, record.gate) == ('{"a":1}', gate)
        await hire(store, "w1")
        assert [claim.payload for claim in await take(store)] == ([] if gate else ['{"a":1}'])

    async def test_a_delay_counts_from_now_and_a_deadline_from_the_new_due_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await put(store, delay=60 * SECOND, expires_at=clock.now() + 61 * SECOND)
        now = clock.advance(1)
        await store.edit([job_id], JobEdit(delay=5 * SECOND, expires=SECOND))
        record = await read(store, job_id)
        assert (record.due_at, record.expires_at) == (now + 5 * SECOND, now + 6 * SECOND)
        await store.edit([job_id], JobEdit(postpone=SECOND, expires=SECOND))
        assert (await read(store, job_id)).expires_at == now + 7 * SECOND
        await store.edit([job_id], JobEdit(expires=3 * SECOND))
        assert (await read(store, job_id)).expires_at == now + 9 * SECOND

    async def test_a_job_is_handed_out_where_and_when_it_is_now_and_no_more_where_it_was(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        sooner, later, moved, *others = await store.enqueue(
            [job(delay=60 * SECOND), *(job() for _ in range(4))]
        )
        await store.edit([sooner], JobEdit(due_at=clock.now()))
        await store.edit([later], JobEdit(delay=SECOND))
        await store.edit([moved], JobEdit(queue="mail"))
        await store.edit([others[-1]], JobEdit(priority=0))
        assert [claim.job_id for claim in await take(store)] == [others[1], sooner, others[0]]
        assert [claim.job_id for claim in await take(store, queues=("mail",))] == [moved]
        assert (await store.next_due(["default"], [TASK])).due_at == clock.now() + SECOND
        clock.advance(1)
        assert [claim.job_id for claim in await take(store)] == [later]

    async def test_a_job_that_waits_for_its_time_is_put_off_from_then(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await put(store, delay=5 * SECOND)
        due = clock.now() + 5 * SECOND
        clock.advance(1)
        await store.edit([job_id], JobEdit(postpone=10 * SECOND))
        assert (await read(store, job_id)).due_at == due + 10 * SECOND

    async def test_no_job_is_put_off_beyond_the_latest_time_there_is(self, store: Store) -> None:
        first, second = await put(store, due_at=LATEST), await put(store, due_at=LATEST - LONGEST_DURATION)
        await store.edit([first, second], JobEdit(postpone=LONGEST_DURATION))
        assert [(await read(store, job_id)).due_at for job_id in (first, second)] == [LATEST, LATEST]

    @pytest.mark.covers("no-way-to-interfere")
    async def test_an_overdue_job_is_put_off_from_now(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        clock.advance("1h")
        await hire(store, "w1")
        await store.edit([job_id], JobEdit(postpone=10 * SECOND))
        assert (await read(store, job_id)).due_at == clock.now() + 10 * SECOND
        assert await take(store) == []
        clock.advance(10)
        assert (await take_one(store)).job_id == job_id

    async def test_a_job_that_is_not_due_when_it_was_to_be_stays_as_it_is(
        self, store: Store, clock: FakeClock
    ) -> None:
        job_id = await put(store, delay=5 * SECOND)
        before, sooner = await read(store, job_id), JobEdit(delay=0, if_due_at=clock.now() + 5 * SECOND)
        other = sooner._replace(if_due_at=clock.now())
        assert await store.edit([job_id], other) != {job_id: EditAnswer.CHANGED}
        assert await read(store, job_id) == before
        assert await store.edit([job_id], sooner) == {job_id: EditAnswer.CHANGED}
        assert (await read(store, job_id)).due_at == clock.now()

    @pytest.mark.parametrize(
        "other", ["due_at", "queue", "priority", "retries", "timeout", "expires_at", "payload", "tried"]
    )
    async def test_a_job_that_is_not_as_it_was_read_stays_as_it_is(
        self, store: Store, clock: FakeClock, other: str
    ) -> None:
        job_id = await put(store, delay=5)
        read_before = await read(store, job_id)
        edit = JobEdit(delay=9, **seen(read_before))
        if other == "tried":
            await hire(store, "w1")
            await store.release([(await take_one(store, ahead=SECOND)).job_id], force=False)
        else:
            value: Any = {"due_at": clock.now() + 7, "queue": "mail", "payload": '{"a":1}'}.get(other, 7)
            await store.edit([job_id], JobEdit(**{other: value}))
        changed = await read(store, job_id)
        assert await store.edit([job_id], edit) == {job_id: EditAnswer.DIFFERENT}
        assert await read(store, job_id) == changed
        again = edit._replace(**seen(changed))
        assert await store.edit([job_id], again) == {job_id: EditAnswer.CHANGED}

    async def test_of_two_edits_at_once_of_what_both_have_read_one_is_made(
        self, store: Store, other: Store
    ) -> None:
        job_id = await put(store, delay=5)
        before = await read(store, job_id)
        edits = [JobEdit(priority=n, **seen(before)) for n in (1, 2)]
        answers = await asyncio.gather(store.edit([job_id], edits[0]), other.edit([job_id], edits[1]))
        assert sorted(answer[job_id] for answer in answers) == [EditAnswer.CHANGED, EditAnswer.DIFFERENT]
        winner = 1 + [answer[job_id] for answer in answers].index(EditAnswer.CHANGED)
        assert (await read(store, job_id)).priority == winner

    @pytest.mark.parametrize("ahead", [0, SECOND])
    async def test_a_claimed_job_stays_as_it_is(self, store: Store, ahead: int) -> None:
        await hire(store, "w1")
        await put(store, delay=5 if ahead else 0)
        claim = await take_one(store, ahead=ahead)
        before = await read(store, claim.job_id)
        assert await store.edit([claim.job_id], EVERYTHING) == {claim.job_id: EditAnswer.RUNNING}
        assert await read(store, claim.job_id) == before

    async def test_each_job_of_a_batch_gets_its_own_answer(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, now=clock.now())
        before = await read(store, claim.job_id)
        waiting = await put(store)
        assert await store.edit([claim.job_id, "nothing", waiting], EVERYTHING) == {
            claim.job_id: EditAnswer.FINISHED,
            "nothing": EditAnswer.UNKNOWN,
            waiting: EditAnswer.CHANGED,
        }
        assert await read(store, claim.job_id) == before
        assert await store.edit([], EVERYTHING) == {}

    @pytest.mark.covers("no-way-to-interfere")
    async def test_a_job_is_either_claimed_or_changed(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        for _ in range(20):
            ids = await store.enqueue([job(delay=SECOND // 2) for _ in range(10)])
            later = clock.now() + 60 * SECOND
            claims, answers = await asyncio.gather(
                take(store, limit=5, ahead=SECOND), other.edit(ids, JobEdit(due_at=later))
            )
            claimed = {claim.job_id for claim in claims}
            assert claimed == {one for one, answer in answers.items() if answer is EditAnswer.RUNNING}
            records = await store.get(ids)
            assert {record.id for record in records if record.due_at != later} == claimed
            assert {claim.due_at for claim in claims} <= {clock.now() + SECOND // 2}
            for claim in claims:
                assert await finish(store, claim, now=clock.now()) == {claim.token}


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
