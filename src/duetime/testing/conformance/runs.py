"""How a schedule fares is told from the records of its jobs."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.model.job import JobId, JobTerms
from duetime.model.outcome import Cancelled, Failed, Outcome, Succeeded
from duetime.model.retry import fixed
from duetime.model.schedule.runs import ScheduleRuns
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    alter,
    declare,
    delete,
    finish,
    hire,
    job,
    occurrence_job,
    pause,
    prune,
    put,
    read_schedule,
    schedule,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite

NEVER = ScheduleRuns(last=None, succeeded=0, failed=0, at_least=frozenset())


async def run(
    store: Store, clock: FakeClock, outcome: Outcome | None = None, *, by_hand: bool = False, **changes: Any
) -> JobId:
    """Let a job of the schedule run to this end, at its time or triggered, a second after the one before."""
    now = clock.advance(1)
    new = job(schedule="s", **changes) if by_hand else occurrence_job("s", now, **changes)
    await store.enqueue([new])
    clock.advance(1)
    await finish(store, await take_one(store), outcome, now=clock.now())
    return new.id


async def fares(store: Store, name: str = "s", *, most: int = 100) -> ScheduleRuns:
    """How one schedule fares."""
    return (await store.runs([name], most=most))[name]


async def last(store: Store, name: str = "s") -> JobId | None:
    """The latest run of a schedule."""
    found = (await fares(store, name)).last
    return None if found is None else found.id


class TestRuns(StoreSuite):
    """`runs`: the latest, and how many there were."""

    async def test_a_run_that_went_well_is_told_with_its_times(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock)
        found = await fares(store)
        assert (found.succeeded, found.failed, found.at_least) == (1, 0, frozenset())
        assert found.last is not None
        assert (found.last.id, found.last.schedule, found.last.state) == (job_id, "s", State.SUCCEEDED)
        occurrence = clock.now() - SECOND
        assert (found.last.occurrence, found.last.created_at) == (occurrence, occurrence)
        assert (found.last.started_at, found.last.finished_at) == (clock.now(), clock.now())
        assert (found.last.error, found.last.reason) == (None, None)

    async def test_a_failure_comes_with_its_error(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await run(store, clock)
        failed = await run(store, clock, Failed(error="ValueError: boom", reason="timeout"))
        found = await fares(store)
        assert (found.succeeded, found.failed) == (1, 1)
        assert found.last is not None
        assert (found.last.id, found.last.state) == (failed, State.FAILED)
        assert (found.last.error, found.last.reason) == ("ValueError: boom", "timeout")

    async def test_a_failure_that_is_tried_again_is_none_yet(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await run(store, clock, Failed(error="boom"))
        await put(store, schedule="s", occurrence=clock.now())
        await finish(store, await take_one(store), Failed(error="again"), now=clock.now(), policy=fixed(1, 1))
        found = await fares(store)
        assert (found.last and found.last.id, found.succeeded, found.failed) == (job_id, 0, 1)
        clock.advance(1)
        await finish(store, await take_one(store), now=clock.now())
        assert ((await fares(store)).succeeded, (await fares(store)).failed) == (1, 1)

    async def test_what_was_cancelled_has_run_if_it_had_started(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        stopped = await run(store, clock, Cancelled("stopped"))
        called_off = await put(store, schedule="s", occurrence=clock.now())
        by_hand = await put(store, schedule="s")
        await store.cancel([called_off, by_hand], reason="off")
        found = await fares(store)
        assert found.last is not None
        assert (found.last.id, found.last.state, found.last.reason) == (stopped, State.CANCELLED, "stopped")
        assert (found.succeeded, found.failed) == (0, 0)
        triggered = await run(store, clock, Cancelled("stopped"), by_hand=True)
        await store.cancel([await put(store, schedule="s")], reason="off")
        assert await last(store) == triggered

    async def test_what_was_skipped_waits_or_runs_is_no_run(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        assert await fares(store) == NEVER
        await store.enqueue([occurrence_job("s", clock.now(), state=State.SKIPPED, reason="overlap")])
        await put(store, schedule="s", occurrence=clock.now() + 1)
        await take_one(store)
        await put(store, schedule="s", delay=SECOND)
        assert await fares(store) == NEVER

    async def test_the_latest_is_the_one_for_the_latest_time_whichever_ended_last(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        early, late = await store.enqueue(
            [occurrence_job("s", clock.now()), occurrence_job("s", clock.now() + 1)]
        )
        clock.advance(1)
        first, second = await take_one(store, limit=1), await take_one(store)
        assert (first.job_id, second.job_id) == (early, late)
        await finish(store, second, now=clock.now())
        await finish(store, first, Failed(error="slow"), now=clock.advance(1))
        assert await last(store) == late
        # Somebody makes up for what was missed long ago.
        await put(store, schedule="s", occurrence=5)
        await finish(store, await take_one(store), now=clock.now())
        assert await last(store) == late

    @pytest.mark.parametrize("outcome", [Succeeded(), Failed(error="boom"), Cancelled("stopped")], ids=str)
    async def test_what_was_triggered_by_hand_counts_at_the_time_it_was_made(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        await hire(store, "w1")
        await run(store, clock)
        triggered = [await run(store, clock, outcome, by_hand=True) for _ in range(3)]
        found = await fares(store)
        assert found.last is not None
        assert (found.last.id, found.last.occurrence) == (triggered[-1], None)
        assert (found.succeeded, found.failed) == (
            1 + 3 * isinstance(outcome, Succeeded),
            3 * isinstance(outcome, Failed),
        )
        regular = await run(store, clock)
        assert await last(store) == regular

    async def test_counting_stops_at_a_bound_and_says_so(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        for _ in range(3):
            await run(store, clock)
        await run(store, clock, Failed(error="boom"))
        await run(store, clock, by_hand=True)
        found = await fares(store, most=3)
        assert (found.succeeded, found.failed, found.at_least) == (3, 1, frozenset({State.SUCCEEDED}))
        found = await fares(store, most=4)
        assert (found.succeeded, found.failed, found.at_least) == (4, 1, frozenset())

    async def test_many_schedules_are_told_at_once_each_with_its_own(
        self, store: Store, clock: FakeClock
    ) -> None:
        names = [f"s{number:03}" for number in range(300)]
        ended = [occurrence_job(name, clock.now(), state=State.SUCCEEDED) for name in names[::2]]
        await store.enqueue(ended)
        await store.enqueue([job(state=State.SUCCEEDED), occurrence_job("other", 1, state=State.FAILED)])
        found = await store.runs(names, most=10)
        assert list(found) == names
        assert {name: runs.last.id for name, runs in found.items() if runs.last is not None} == {
            new.schedule: new.id for new in ended
        }
        assert await store.runs([], most=10) == {}

    async def test_a_schedule_that_does_not_fire_still_tells_how_it_has_fared(
        self, store: Store, clock: FakeClock
    ) -> None:
        """Paused or parked; what is taken back then has not run."""
        await hire(store, "w1")
        await declare(store, schedule("s", next_at=clock.now(), fired_through=0))
        job_id = await run(store, clock)
        before = await fares(store)
        await put(store, schedule="s", occurrence=clock.now() + SECOND, due_at=clock.now() + SECOND)
        await pause(store, "s")
        assert await fares(store) == before
        await alter(store, "s", parked_at=clock.now(), withdraw="parked")
        assert await last(store) == job_id

    async def test_a_schedule_that_is_made_again_has_the_records_of_its_name(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await declare(store, schedule("s", next_at=clock.now(), fired_through=0))
        job_id = await run(store, clock)
        assert await delete(store, "s")
        await declare(store, schedule("s", next_at=clock.now(), fired_through=0))
        assert (await read_schedule(store, "s")).made == 0
        assert ((await fares(store)).succeeded, await last(store)) == (1, job_id)
        again = await run(store, clock)
        assert ((await fares(store)).succeeded, await last(store)) == (2, again)

    async def test_records_that_were_pruned_are_not_counted(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        for outcome in (Failed(error="boom"), Succeeded(), Succeeded()):
            await run(store, clock, outcome)
        await run(store, clock, Failed(error="boom"), by_hand=True)
        clock.advance("1d")
        assert await prune(store, before=clock.now(), keep_per_schedule=1) == 3
        found = await fares(store)
        assert (found.succeeded, found.failed) == (1, 0)
        assert found.last is not None
        assert found.last.state is State.SUCCEEDED
        assert await prune(store, before=clock.now()) == 1
        assert await fares(store) == NEVER

    async def test_an_error_that_is_not_to_be_seen_any_more_is_not_told(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        failed = await run(store, clock, Failed(error="boom"), terms=JobTerms(failure_ttl=SECOND))
        found = (await fares(store)).last
        assert found is not None
        assert (found.id, found.error) == (failed, "boom")
        clock.advance(1)
        found = (await fares(store)).last
        assert found is not None
        assert (found.id, found.error) == (failed, None)
