"""What is old goes in small steps that are counted; what was promised to stay stays."""

from __future__ import annotations

import pytest

from duetime.model.job import FOREVER, JobId, JobTerms, Key
from duetime.model.outcome import Cancelled, Failed, Outcome, Succeeded
from duetime.model.retention import Retention
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.time import DAY, HOUR, SECOND
from duetime.stores.base import JobFilter, PruneResult, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    finish,
    hire,
    job,
    occurrence_job,
    outcomes,
    prune,
    put,
    read,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite


async def run(store: Store, clock: FakeClock, outcome: Outcome, **asked: object) -> JobId:
    """Let a job run to this end."""
    job_id = await put(store, **asked)
    await finish(store, await take_one(store), outcome, now=clock.now())
    return job_id


class TestPrune(StoreSuite):
    """`prune`: old records."""

    @pytest.mark.covers("retention")
    async def test_what_ended_before_goes_with_its_attempts(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=fixed(1, 1))
        clock.advance(1)
        await finish(store, await take_one(store), now=clock.now())
        assert await prune(store, before=clock.now()) == 0
        assert await outcomes(store, claim.job_id) == ["error"]
        assert await prune(store, before=clock.now() + 1) == 1
        assert await store.get([claim.job_id]) == []
        assert await outcomes(store, claim.job_id) == []

    @pytest.mark.covers("retention")
    async def test_every_kind_of_end_counts_and_what_lives_stays(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(4)])
        succeeded, failed, cancelled, running = await take(store)
        await finish(store, succeeded, now=clock.now())
        await finish(store, failed, Failed(error="boom"), now=clock.now())
        await finish(store, cancelled, Cancelled("off"), now=clock.now())
        skipped = await put(store, state=State.SKIPPED, reason="misfire")
        waiting = await put(store)
        clock.advance("1d")
        assert await prune(store, before=clock.now()) == 4
        left = [claim.job_id for claim in (succeeded, failed, cancelled, running)]
        assert [record.id for record in await store.get([*left, skipped, waiting])] == [
            running.job_id,
            waiting,
        ]

    @pytest.mark.covers("retention")
    async def test_one_step_is_small_starts_with_the_oldest_and_tells_where_to_go_on(
        self, store: Store, clock: FakeClock
    ) -> None:
        stored = await store.enqueue([job(state=State.SKIPPED) for _ in range(2_500)])
        clock.advance(1)
        first = await store.prune(Retention(before=clock.now()))
        assert first.last is not None
        assert 0 < first.jobs <= 1_000
        assert [record.id for record in await store.get(stored)] == stored[first.jobs :]
        second = await store.prune(Retention(before=clock.now()), after=first.last)
        assert 0 < second.jobs <= 1_000
        assert first.jobs + await prune(store, before=clock.now()) + second.jobs == 2_500

    async def test_old_jobs_that_live_do_not_hide_ended_ones_behind_them(
        self, store: Store, clock: FakeClock
    ) -> None:
        await store.enqueue([job() for _ in range(1_500)])
        await put(store, state=State.SKIPPED)
        clock.advance(1)
        assert await prune(store, before=clock.now()) == 1

    @pytest.mark.covers("retention")
    async def test_a_dry_run_counts_and_removes_nothing(self, store: Store, clock: FakeClock) -> None:
        stored = await store.enqueue([job(state=State.SKIPPED) for _ in range(3)])
        clock.advance(1)
        assert await store.prune(Retention(before=clock.now()), dry_run=True) == PruneResult(3, None)
        assert len(await store.get(stored)) == 3

    async def test_without_an_age_no_record_goes(self, store: Store, clock: FakeClock) -> None:
        await put(store, state=State.SKIPPED)
        clock.advance("1000d")
        assert await prune(store, before=None) == 0

    @pytest.mark.covers("retention")
    async def test_the_latest_of_each_schedule_stay(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        ended = {"state": State.SKIPPED}
        often = [occurrence_job("often", number, **ended) for number in range(1, 8)]
        seldom = [occurrence_job("seldom", number, **ended) for number in range(1, 3)]
        plain = job(**ended)
        # One that still waits is not among the latest that are kept.
        await store.enqueue([*often, *seldom, plain, occurrence_job("often", 9)])
        clock.advance(1)
        assert await prune(store, before=clock.now(), keep_per_schedule=3) == 5
        left = {found.id for found in await store.find(JobFilter()) if found.state.terminal}
        assert left == {kept.id for kept in (*often[-3:], *seldom)}
        assert await prune(store, before=clock.now(), keep_per_schedule=3) == 0
        assert await prune(store, before=clock.now()) == 5

    async def test_a_withdrawn_occurrence_is_not_among_the_latest(
        self, store: Store, clock: FakeClock
    ) -> None:
        ended = {"state": State.CANCELLED, "schedule": "s"}
        await store.enqueue([job(**ended), job(**ended, occurrence=5)])
        clock.advance(1)
        assert await prune(store, before=clock.now(), keep_per_schedule=1) == 1

    async def test_a_record_stays_as_long_as_it_holds_a_key(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await run(store, clock, Succeeded(), key=Key(value="kept", keep=10 * SECOND))
        await run(store, clock, Succeeded(), key=Key(value="throttled", period=10 * SECOND))
        clock.advance(9)
        assert await prune(store, before=clock.now()) == 0
        clock.advance(1)
        assert await prune(store, before=clock.now()) == 2


class TestTimesToLive(StoreSuite):
    """Results and errors that are kept for a time of their own."""

    async def test_a_result_is_gone_when_its_time_is_over(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, Succeeded('"x"'), terms=JobTerms(result_ttl=HOUR))
        clock.set(clock.now() + HOUR - 1)
        assert (await read(store, job_id)).result == '"x"'
        clock.set(clock.now() + 1)
        hidden = await read(store, job_id)
        assert (hidden.state, hidden.result) == (State.SUCCEEDED, None)
        assert hidden.result_error == "its result was kept for 1 hour only"
        assert await store.find(JobFilter()) == [hidden]

    async def test_a_result_is_dropped_for_good_by_the_next_prune(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, Succeeded('"x"'), terms=JobTerms(result_ttl=HOUR))
        then = clock.now()
        clock.advance("1h")
        hidden = await read(store, job_id)
        assert await prune(store, before=None) == 0
        assert await read(store, job_id) == hidden
        # Back in time, a result that was only hidden would show again.
        clock.set(then)
        assert await read(store, job_id) == hidden

    async def test_an_error_is_gone_when_its_time_is_over_and_those_of_earlier_tries_with_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        failed = Failed(error="boom", traceback="line 1", error_type="Boom")
        job_id = await put(store, terms=JobTerms(failure_ttl=HOUR))
        await finish(store, await take_one(store), failed, now=clock.now(), policy=fixed(1, 0))
        await finish(store, await take_one(store), failed, now=clock.now())
        then = clock.now()
        clock.advance("1h")
        hidden = await read(store, job_id)
        assert (hidden.state, hidden.error, hidden.traceback) == (State.FAILED, None, None)
        assert hidden.reason == "error"
        await prune(store, before=None)
        clock.set(then)
        assert await read(store, job_id) == hidden
        (attempt,) = await store.attempts(job_id)
        assert (attempt.outcome, attempt.error, attempt.traceback) == ("error", None, None)
        # Of which kind it was does no harm, and stays.
        assert (hidden.error_type, attempt.error_type) == ("Boom", "Boom")

    async def test_what_was_not_said_stays_with_the_record(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        good = await run(store, clock, Succeeded('"x"'), terms=JobTerms(failure_ttl=SECOND))
        bad = await run(store, clock, Failed(error="boom"), terms=JobTerms(result_ttl=SECOND))
        clock.advance("1d")
        await prune(store, before=None)
        assert [(found.result, found.error) for found in await store.get([good, bad])] == [
            ('"x"', None),
            (None, "boom"),
        ]

    async def test_a_job_that_returned_nothing_has_nothing_to_drop(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, Succeeded(), terms=JobTerms(result_ttl=SECOND))
        clock.advance(2)
        await prune(store, before=None)
        assert (await read(store, job_id)).result_error is None

    @pytest.mark.covers("retention")
    @pytest.mark.parametrize(
        ("outcome", "terms"),
        [
            (Succeeded('"x"'), JobTerms(result_ttl=FOREVER)),
            (Failed(error="boom"), JobTerms(failure_ttl=FOREVER)),
        ],
    )
    async def test_what_is_kept_for_ever_is_never_removed(
        self, store: Store, clock: FakeClock, outcome: Outcome, terms: JobTerms
    ) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, outcome, terms=terms)
        before = await read(store, job_id)
        clock.advance("10000d")
        assert await prune(store, before=clock.now()) == 0
        assert await read(store, job_id) == before

    async def test_a_record_stays_as_long_as_its_result_is_to_be_there(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, Succeeded('"x"'), terms=JobTerms(result_ttl=2 * DAY))
        clock.advance("1d")
        assert await prune(store, before=clock.now()) == 0
        assert (await read(store, job_id)).result == '"x"'
        clock.advance("1d")
        assert await prune(store, before=clock.now()) == 1
