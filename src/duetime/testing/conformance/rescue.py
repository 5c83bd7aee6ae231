"""The jobs of dead workers are taken over by exactly one living worker, and blame falls where it belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from duetime.model.job import Claim, JobId
from duetime.model.outcome import MAX_BLAMES, Crashed
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import OrphanedJob, RescueResult, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    hire,
    job,
    outcomes,
    put,
    read,
    rescue,
    settlement,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite


async def bring_home(store: Store, orphans: Iterable[OrphanedJob], *, now: int) -> None:
    """Settle orphans as the worker's janitor does."""
    batch = [
        settlement(
            orphan.claim,
            Crashed(
                worker=orphan.worker,
                started=orphan.started_at is not None,
                blamed=orphan.blamed,
                suspected=orphan.suspected,
            ),
            now=now,
            started_at=orphan.started_at,
        )
        for orphan in orphans
    ]
    assert await store.settle(batch) == {sent.token for sent in batch}


async def crash_once(store: Store, clock: FakeClock, worker: str) -> list[OrphanedJob]:
    """Let a worker die, `rescuer` take over, and every job go where the model sends it."""
    await store.bury([worker])
    orphans = await rescue(store, "rescuer")
    await bring_home(store, orphans, now=clock.now())
    return orphans


class TestRescue(StoreSuite):
    """`rescue`."""

    async def test_of_all_rescuers_one_is_told_that_a_lease_is_over(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        clock.set(clock.now() + LEASE + 1)
        await hire(store, "w3", "w4")
        first = await store.rescue("w3", "c3")
        assert (sorted(first.dead), first.orphans) == (["w1", "w2"], [])
        assert await other.rescue("w4", "c4") == RescueResult(dead=[], orphans=[])

    async def test_a_job_is_taken_over_under_a_new_fence_and_keeps_its_start(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store, payload='{"x":1}')
        claim = await take_one(store)
        begun = clock.now()
        clock.set(begun + LEASE + 1)
        await hire(other, "w2")
        (orphan,) = (await other.rescue("w2", "c2")).orphans
        assert (orphan.worker, orphan.started_at) == ("w1", begun)
        assert (orphan.claim.job_id, orphan.claim.fence, orphan.claim.claim_id) == (claim.job_id, 2, "c2")
        assert (orphan.claim.payload, orphan.claim.task) == (claim.payload, claim.task)
        record = await read(store, claim.job_id)
        assert (record.state, record.worker, record.fence, record.started_at) == (
            State.RUNNING,
            "w2",
            2,
            begun,
        )

    async def test_a_lease_must_be_over_before_anyone_takes_over(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        await take_one(store)
        clock.set(clock.now() + LEASE - 1)
        await hire(store, "w2")
        assert await rescue(store, "w2") == []
        assert (await store.attend("w1")).alive
        clock.set(clock.now() + 2)
        assert len(await rescue(store, "w2")) == 1
        assert not (await store.attend("w1")).alive

    @pytest.mark.parametrize("how", ["bury", "retire"])
    async def test_who_is_known_to_be_gone_is_relieved_at_once(self, store: Store, how: str) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        await take_one(store)
        await (store.bury(["w1"]) if how == "bury" else store.retire("w1"))
        assert [orphan.worker for orphan in await rescue(store, "w2")] == ["w1"]

    async def test_workers_are_declared_dead_even_when_they_hold_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        clock.set(clock.now() + LEASE + 1)
        await hire(store, "w2")
        assert await rescue(store, "w2") == []
        assert not (await store.attend("w1")).alive

    async def test_the_living_keep_their_jobs(self, store: Store) -> None:
        await hire(store, "w1", "w2", "w3")
        await store.enqueue([job(), job()])
        lost = await take_one(store, "w1", limit=1)
        kept = await take_one(store, "w2", limit=1)
        await store.bury(["w1"])
        assert [orphan.claim.job_id for orphan in await rescue(store, "w3")] == [lost.job_id]
        assert (await store.attend("w2")).held == {kept.token}

    async def test_what_was_taken_over_is_not_taken_over_again(self, store: Store) -> None:
        await hire(store, "w1", "w2", "w3")
        await put(store)
        await take_one(store)
        await store.bury(["w1"])
        assert len(await rescue(store, "w2")) == 1
        assert await rescue(store, "w2") == []
        assert await rescue(store, "w3") == []

    async def test_when_the_rescuer_dies_too_the_next_one_takes_over(self, store: Store) -> None:
        await hire(store, "w1", "w2", "w3")
        await put(store)
        await take_one(store)
        await store.bury(["w1"])
        await rescue(store, "w2")
        await store.bury(["w2"])
        (orphan,) = await rescue(store, "w3")
        assert (orphan.claim.fence, orphan.worker) == (3, "w2")

    @pytest.mark.parametrize("rescuer", ["dead", "stopped", "nobody"])
    async def test_who_is_not_alive_rescues_nothing(self, store: Store, rescuer: str) -> None:
        await hire(store, "w1", "dead", "stopped")
        await put(store)
        claim = await take_one(store)
        await store.bury(["w1", "dead"])
        await store.retire("stopped")
        before = await read(store, claim.job_id)
        assert await rescue(store, rescuer) == []
        assert await read(store, claim.job_id) == before

    async def test_rescuers_at_the_same_time_never_take_the_same_job(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        gone = [f"gone{number}" for number in range(4)]
        await hire(store, *gone)
        stored = await store.enqueue([job() for _ in range(40)])
        for worker in gone:
            await take(store, worker, limit=10)
        clock.set(clock.now() + LEASE + 1)
        rescuers = [f"r{number}" for number in range(6)]
        await hire(store, *rescuers)
        found = await asyncio.gather(
            *(rescue((store, other)[number % 2], worker) for number, worker in enumerate(rescuers))
        )
        # Who passes over what another one holds for a moment comes back for it.
        found.append(await rescue(store, "r0"))
        rescued = [orphan.claim for orphans in found for orphan in orphans]
        assert sorted(claim.job_id for claim in rescued) == sorted(stored)
        assert {claim.fence for claim in rescued} == {2}

    async def test_a_request_to_cancel_outlives_the_worker(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1", "rescuer")
        await put(store)
        claim = await take_one(store)
        await store.cancel([claim.job_id], reason="no more")
        (orphan,) = await crash_once(store, clock, "w1")
        assert orphan.claim.cancel_requested
        record = await read(store, claim.job_id)
        assert (record.state, record.reason, record.crashes) == (State.CANCELLED, "no more", 1)

    @pytest.mark.covers("worker-killed")
    async def test_a_started_job_runs_again_and_its_lost_try_is_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2", "rescuer")
        await store.enqueue([job(), job()])
        claims = await take(store)
        begun = clock.now()
        clock.advance(1)
        await crash_once(store, clock, "w1")
        for claim in await take(store, "w2"):
            assert (claim.fence, claim.failures, claim.crashes, claim.blames) == (3, 0, 1, 0)
        (attempt,) = await store.attempts(claims[0].job_id)
        assert (attempt.outcome, attempt.started_at, attempt.ended_at) == ("lost", begun, clock.now())

    async def test_an_unstarted_claim_gains_neither_crash_nor_attempt(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "rescuer")
        due = clock.now() + 5
        stored = await store.enqueue([job(due_at=due) for _ in range(50)])
        assert len(await take(store, ahead=SECOND)) == 50
        orphans = await crash_once(store, clock, "w1")
        assert [(orphan.started_at, orphan.blamed) for orphan in orphans] == [(None, False)] * 50
        for record in await store.get(stored):
            assert (record.state, record.due_at, record.started_at) == (State.PENDING, due, None)
            assert (record.failures, record.crashes, record.blames) == (0, 0, 0)
        assert await outcomes(store, stored[0]) == []

    async def test_a_claim_taken_ahead_and_started_counts_as_started(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "rescuer")
        await put(store, delay=5)
        claim = await take_one(store, ahead=SECOND)
        begun = clock.advance(1)
        await store.mark_started([claim.token], begun)
        (orphan,) = await crash_once(store, clock, "w1")
        assert (orphan.started_at, orphan.blamed) == (begun, True)

    @pytest.mark.covers("worker-killed")
    async def test_a_job_that_must_not_run_twice_fails(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1", "rescuer")
        job_id = await put(store, on_crash="fail")
        await take_one(store)
        await crash_once(store, clock, "w1")
        record = await read(store, job_id)
        assert (record.state, record.reason, record.crashes) == (State.FAILED, "crashed", 1)
        assert record.worker == "w1"


class TestBlame(StoreSuite):
    """Which job of a dead worker is the suspect."""

    async def run(self, store: Store, worker: str, *, jobs: int) -> list[Claim]:
        """Let a new worker begin this many jobs."""
        await hire(store, worker)
        return await take(store, worker, limit=jobs)

    async def suspects(self, store: Store, clock: FakeClock, worker: str) -> set[JobId]:
        """Let the worker die, and tell whom the store blames."""
        return {orphan.claim.job_id for orphan in await crash_once(store, clock, worker) if orphan.blamed}

    async def test_the_only_started_job_is_blamed(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "rescuer")
        await store.enqueue([job(), job(delay=5)])
        (only,) = await self.run(store, "w1", jobs=1)
        await take(store, "w1", ahead=SECOND)
        assert await self.suspects(store, clock, "w1") == {only.job_id}

    async def test_nobody_is_blamed_when_several_new_ones_ran(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "rescuer")
        await store.enqueue([job(), job()])
        await self.run(store, "w1", jobs=2)
        assert await self.suspects(store, clock, "w1") == set()

    @pytest.mark.covers("poison-job")
    async def test_of_several_the_only_one_that_crashed_before_is_blamed(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "rescuer")
        suspect = await put(store, priority=0)
        await self.run(store, "w1", jobs=1)
        await self.suspects(store, clock, "w1")
        clock.advance(2)
        await store.enqueue([job(), job()])
        assert len(await self.run(store, "w2", jobs=3)) == 3
        assert await self.suspects(store, clock, "w2") == {suspect}

    async def test_nobody_is_blamed_when_several_crashed_before(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "rescuer")
        await store.enqueue([job(), job()])
        await self.run(store, "w1", jobs=2)
        await self.suspects(store, clock, "w1")
        await put(store)
        assert len(await self.run(store, "w2", jobs=3)) == 3
        assert await self.suspects(store, clock, "w2") == set()

    @pytest.mark.covers("poison-job")
    async def test_of_several_that_crashed_before_the_one_with_the_most_crashes_is_blamed(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "rescuer", lease=1_000 * LEASE)
        twice = await put(store, priority=0)
        await self.run(store, "w1", jobs=1)
        await self.suspects(store, clock, "w1")
        await store.enqueue([job(), job()])
        for worker in ("w2", "w3"):
            clock.advance("1m")
            assert len(await self.run(store, worker, jobs=3)) == 3
            assert await self.suspects(store, clock, worker) == {twice}

    @pytest.mark.covers("poison-job")
    async def test_a_claim_that_was_due_may_have_been_started_and_is_a_suspect(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "rescuer", "w1")
        ran, held = await put(store), await put(store, delay=1)
        later = await put(store, delay=SECOND)
        await take_one(store, "w1")
        await take(store, "w1", ahead=SECOND)
        clock.set(clock.now() + 1)
        assert await self.suspects(store, clock, "w1") == set()
        records = {record.id: record for record in await store.get([ran, held, later])}
        assert [records[name].crashes for name in (ran, held, later)] == [1, 1, 0]
        assert await outcomes(store, held) == []

    async def test_blame_is_judged_for_each_worker_apart(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "rescuer")
        await store.enqueue([job() for _ in range(4)])
        (first,) = await self.run(store, "w1", jobs=1)
        await self.run(store, "w2", jobs=2)
        (last,) = await self.run(store, "w3", jobs=1)
        await store.bury(["w1", "w2"])
        assert await self.suspects(store, clock, "w3") == {first.job_id, last.job_id}

    @pytest.mark.covers("poison-job")
    async def test_a_job_that_kills_worker_after_worker_is_given_up(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "rescuer", lease=1_000 * LEASE)
        job_id = await put(store)
        for number in range(MAX_BLAMES):
            assert len(await self.run(store, f"w{number}", jobs=1)) == 1
            assert await self.suspects(store, clock, f"w{number}") == {job_id}
            clock.advance("1m")
        record = await read(store, job_id)
        assert (record.state, record.reason, record.blames) == (State.FAILED, "crashed", MAX_BLAMES)
        assert await outcomes(store, job_id) == ["lost"] * (MAX_BLAMES - 1)
