"""What runs came to is written as decided, once, however often it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.model.job import Claim
from duetime.model.outcome import (
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Skipped,
    Snoozed,
    Succeeded,
    fingerprint_of,
)
from duetime.model.reports import Progress
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.stored.jobs import StoredAttempt
from duetime.model.time import SECOND
from duetime.stores.base import JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.enqueue import ODD_TEXT
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
from duetime.testing.conformance.suite import StoreSuite

TWICE = fixed(2, 10)
EVERYTHING = JobFilter(limit=1_000)


async def started(store: Store, **changes: Any) -> Claim:
    """A job that `w1` has just begun."""
    await hire(store, "w1")
    await put(store, **changes)
    return await take_one(store)


class TestSettle(StoreSuite):
    """`settle`."""

    @pytest.mark.covers("run-record")
    async def test_success_is_recorded_with_its_result_and_times(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        begun = clock.now()
        clock.advance(2)
        assert await finish(store, claim, Succeeded('{"sent":1}'), now=clock.now()) == {claim.token}
        record = await read(store, claim.job_id)
        assert (record.state, record.result) == (State.SUCCEEDED, '{"sent":1}')
        assert (record.started_at, record.finished_at) == (begun, clock.now())
        assert (record.worker, record.fence, record.attempt) == ("w1", 1, 1)

    async def test_a_result_that_could_not_be_kept_is_told(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        await finish(store, claim, Succeeded(result_error="too big"), now=clock.now())
        record = await read(store, claim.job_id)
        assert (record.state, record.result, record.result_error) == (State.SUCCEEDED, None, "too big")

    @pytest.mark.covers("run-record")
    async def test_failure_is_recorded_with_error_traceback_and_reason(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        await finish(
            store, claim, Failed(error="boom", traceback="line 1", reason="timeout"), now=clock.now()
        )
        record = await read(store, claim.job_id)
        assert (record.state, record.failures, record.finished_at) == (State.FAILED, 1, clock.now())
        assert (record.error, record.traceback, record.reason) == ("boom", "line 1", "timeout")

    async def test_failures_and_tries_tell_of_which_kind_they_are(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        boom = Failed(error="boom", error_type="app.Boom", place="app:work")
        await finish(store, claim, boom, now=clock.now(), policy=TWICE)
        kind = ("app.Boom", fingerprint_of(claim.task, "app.Boom", "app:work"))
        waiting = await read(store, claim.job_id)
        assert (waiting.error_type, waiting.fingerprint) == kind
        clock.advance(10)
        await finish(store, await take_one(store), Failed(error="late", reason="timeout"), now=clock.now())
        record, (attempt,) = await read(store, claim.job_id), await store.attempts(claim.job_id)
        assert (attempt.error_type, attempt.fingerprint) == kind
        assert (record.error_type, record.fingerprint) == (None, fingerprint_of(claim.task, "timeout"))

    async def test_a_job_that_came_too_late_is_recorded_as_skipped(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        await finish(store, claim, Skipped("expired"), now=clock.now(), started=False)
        record = await read(store, claim.job_id)
        assert (record.state, record.reason, record.finished_at) == (State.SKIPPED, "expired", clock.now())
        assert (record.started_at, await outcomes(store, claim.job_id)) == (None, [])

    async def test_a_snoozed_run_goes_back_and_is_kept(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        await finish(store, claim, Snoozed(5 * SECOND), now=clock.now())
        record = await read(store, claim.job_id)
        assert (record.state, record.due_at) == (State.PENDING, clock.now() + 5 * SECOND)
        assert (record.failures, record.started_at) == (0, None)
        assert await outcomes(store, claim.job_id) == ["snoozed"]
        clock.advance(5)
        assert (await take_one(store)).attempt == 1

    async def test_a_cancelled_run_is_recorded_with_its_reason(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        await finish(store, claim, Cancelled("stopped"), now=clock.now())
        record = await read(store, claim.job_id)
        assert (record.state, record.reason, record.finished_at) == (State.CANCELLED, "stopped", clock.now())

    async def test_a_request_to_cancel_comes_before_going_back(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        begun = clock.now()
        await store.report([Progress(claim.token, 0.5, "half")], [])
        await store.cancel([claim.job_id], reason="off")
        ended = clock.advance(3)
        await finish(store, claim, Failed(error="boom"), now=ended, policy=TWICE)
        record = await read(store, claim.job_id)
        assert (record.state, record.reason, record.worker) == (State.CANCELLED, "off", "w1")
        assert (record.started_at, record.finished_at, record.progress) == (begun, ended, 0.5)

    @pytest.mark.covers("run-record", "every-retry-is-the-first")
    async def test_a_job_to_be_retried_waits_unowned_and_its_try_is_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        begun = clock.now()
        ended = clock.advance(3)
        await finish(store, claim, Failed(error="boom", traceback="line 1"), now=ended, policy=TWICE)
        record = await read(store, claim.job_id)
        assert (record.state, record.worker, record.started_at) == (State.PENDING, None, None)
        assert (record.due_at, record.finished_at, record.failures) == (ended + 10 * SECOND, None, 1)
        assert await store.attempts(claim.job_id) == [
            StoredAttempt(
                job_id=claim.job_id,
                fence=1,
                worker="w1",
                due_at=begun,
                started_at=begun,
                ended_at=ended,
                outcome="error",
                error="boom",
                traceback="line 1",
                fingerprint=fingerprint_of(claim.task, "error"),
            )
        ]

    async def test_each_try_is_kept_in_order_and_success_forgets_the_error(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        for reason in ("error", "timeout"):
            await finish(store, claim, Failed(error="boom", reason=reason), now=clock.now(), policy=TWICE)
            assert await take(store) == []
            clock.advance(10)
            claim = await take_one(store)
        assert (claim.fence, claim.failures, claim.attempt) == (3, 2, 3)
        await finish(store, claim, now=clock.now())
        record = await read(store, claim.job_id)
        assert (record.state, record.failures) == (State.SUCCEEDED, 2)
        assert (record.error, record.traceback, record.error_type, record.fingerprint) == (None,) * 4
        assert await outcomes(store, claim.job_id) == ["error", "timeout"]

    async def test_a_job_that_ends_at_its_first_try_has_no_attempt_rows(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        await finish(store, claim, now=clock.now())
        assert await outcomes(store, claim.job_id) == []

    @pytest.mark.parametrize("ahead", [0, SECOND])
    async def test_a_release_costs_nothing(self, store: Store, clock: FakeClock, ahead: int) -> None:
        await hire(store, "w1")
        before = await read(store, await put(store, delay=5 if ahead else 0))
        claim = await take_one(store, ahead=ahead)
        await finish(store, claim, Released(), now=clock.now(), started=not ahead)
        after = await read(store, before.id)
        assert (after.state, after.due_at, after.worker, after.started_at) == (
            State.PENDING,
            before.due_at,
            None,
            None,
        )
        assert (after.failures, after.crashes, after.blames) == (0, 0, 0)
        assert await outcomes(store, before.id) == []
        assert (await take_one(store, ahead=ahead)).fence == 2

    async def test_a_release_can_put_a_job_off(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        await finish(store, claim, Released(5), now=clock.now())
        assert (await read(store, claim.job_id)).due_at == clock.now() + 5

    async def test_an_interrupted_job_is_free_again_and_its_try_is_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        await finish(store, claim, Interrupted(reason="shutdown"), now=clock.now())
        assert await outcomes(store, claim.job_id) == ["interrupted"]
        assert (await take_one(store)).failures == 0

    async def test_a_batch_may_hold_every_outcome(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(400)])
        claims = await take(store, queues=[("default", 400)], limit=400)
        kinds: list[Outcome] = [Succeeded("1"), Failed(error="boom"), Cancelled("no"), Released()]
        batch = [settlement(claim, kinds[n % 4], now=clock.now()) for n, claim in enumerate(claims)]
        assert await store.settle(batch) == {claim.token for claim in claims}
        assert await store.counts() == {
            ("default", State.SUCCEEDED): 100,
            ("default", State.FAILED): 100,
            ("default", State.CANCELLED): 100,
            ("default", State.PENDING): 100,
        }

    async def test_an_empty_batch_is_nothing(self, store: Store) -> None:
        assert await store.settle([]) == frozenset()

    async def test_new_jobs_arrive_with_the_settlement(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        follow = job(payload='{"after":1}')
        await finish(store, claim, now=clock.now(), new_jobs=(follow,))
        record = await read(store, follow.id)
        assert (record.state, record.payload) == (State.PENDING, '{"after":1}')

    async def test_errors_are_kept_without_what_no_database_can_hold(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        bad = f"before\x00after \ud800 {ODD_TEXT}"
        await finish(store, claim, Failed(error=bad, traceback=bad), now=clock.now())
        record = await read(store, claim.job_id)
        for text in (record.error, record.traceback):
            assert text is not None
            assert text.startswith("before")
            assert "after" in text
            assert text.endswith(ODD_TEXT)
            assert "\x00" not in text

    async def test_a_long_traceback_survives(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        await finish(store, claim, Failed(error="boom", traceback="é" * 100_000), now=clock.now())
        assert (await read(store, claim.job_id)).traceback == "é" * 100_000


class TestRepeatedSettlement(StoreSuite):
    """A settlement whose answer was lost is sent again."""

    @pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(error="boom"), Released(), Cancelled("no")])
    async def test_it_is_accepted_again_and_changes_nothing(
        self, store: Store, other: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await started(store)
        sent = settlement(claim, outcome, now=clock.now(), policy=TWICE, new_jobs=(job(delay=SECOND),))
        assert await store.settle([sent]) == {claim.token}
        before, tries = await store.find(EVERYTHING), await outcomes(store, claim.job_id)
        clock.advance(1)
        assert await other.settle([sent]) == {claim.token}
        assert await store.find(EVERYTHING) == before
        assert await outcomes(store, claim.job_id) == tries

    async def test_it_is_accepted_beside_new_ones(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job()])
        first, second = [settlement(claim, Succeeded(), now=clock.now()) for claim in await take(store)]
        await store.settle([first])
        assert await store.settle([first, second]) == {first.token, second.token}

    async def test_it_is_accepted_once_when_it_comes_twice_in_a_batch(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await started(store)
        sent = settlement(claim, Failed(error="boom"), now=clock.now(), policy=TWICE)
        assert await store.settle([sent, sent]) == {claim.token}
        assert await outcomes(store, claim.job_id) == ["error"]
        assert (await read(store, claim.job_id)).failures == 1

    @pytest.mark.parametrize("first", [Succeeded("1"), Failed(error="boom"), Cancelled("no")])
    @pytest.mark.covers("stale-settlement")
    async def test_what_has_ended_never_changes_whatever_is_sent(
        self, store: Store, clock: FakeClock, first: Outcome
    ) -> None:
        claim = await started(store)
        await finish(store, claim, first, now=clock.now())
        before = await read(store, claim.job_id)
        clock.advance(1)
        for outcome in (Succeeded("2"), Failed(error="other"), Released(5), Interrupted(reason="x")):
            await finish(store, claim, outcome, now=clock.now())
        assert await read(store, claim.job_id) == before

    async def test_once_somebody_else_has_the_job_it_is_refused(self, store: Store, clock: FakeClock) -> None:
        claim = await started(store)
        sent = settlement(claim, Released(), now=clock.now())
        await store.settle([sent])
        await take_one(store)
        before = await read(store, claim.job_id)
        assert await store.settle([sent]) == frozenset()
        assert await read(store, claim.job_id) == before
