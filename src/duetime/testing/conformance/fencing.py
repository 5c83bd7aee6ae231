"""Who has lost a job can write nothing about it, and harms nobody by trying."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.job import Claim
from duetime.model.outcome import Crashed, Failed, Outcome, Released, Succeeded
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    finish,
    hire,
    job,
    outcomes,
    read,
    rescue,
    settlement,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite


async def lose(store: Store, clock: FakeClock, *, jobs: int = 1) -> tuple[list[Claim], list[Claim]]:
    """Let `w1` begin jobs and stop answering, and `w2` take them over; return both sides' claims."""
    await hire(store, "w1")
    await store.enqueue([job() for _ in range(jobs)])
    claims = await take(store)
    clock.set(clock.now() + LEASE + 1)
    await hire(store, "w2")
    taken_over = [orphan.claim for orphan in await rescue(store, "w2")]
    taken_over.sort(key=lambda claim: claim.job_id)
    return claims, taken_over


class TestFencing(StoreSuite):
    """The fence on every write for a claim."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"fence": 0},
            {"fence": 2},
            {"claim_id": "somebody else's"},
            {"claim_id": ""},
            {"fence": 2, "claim_id": "somebody else's"},
            {"job_id": "0" * 32},
        ],
        ids=str,
    )
    @pytest.mark.covers("stale-settlement")
    async def test_a_settlement_under_a_wrong_token_changes_nothing(
        self, store: Store, clock: FakeClock, wrong: dict[str, object]
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job()])
        claim = await take_one(store)
        before = await read(store, claim.job_id)
        token = claim.token._replace(**wrong)  # type: ignore[arg-type]
        for outcome in (Succeeded(), Failed(error="boom"), Released()):
            sent = settlement(claim, outcome, now=clock.now(), policy=fixed(3, 1), token=token)
            assert await store.settle([sent]) == frozenset()
        assert await read(store, claim.job_id) == before
        assert await outcomes(store, claim.job_id) == []

    async def test_a_job_that_nobody_holds_cannot_be_settled(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job()])
        claim = await take_one(store)
        await finish(store, claim, Released(), now=clock.now())
        before = await read(store, claim.job_id)
        ahead_of_time, of_another_past = claim._replace(fence=2), claim._replace(claim_id="other")
        for wrong in (ahead_of_time, of_another_past):
            assert await finish(store, wrong, now=clock.now()) == frozenset()
        assert await read(store, claim.job_id) == before

    @pytest.mark.covers("stale-settlement")
    async def test_a_zombies_settlement_is_refused_and_its_siblings_are_accepted(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        (lost, *_), _ = await lose(store, clock)
        await store.enqueue([job() for _ in range(3)])
        kept = await take(store, "w2")
        before = await read(store, lost.job_id)
        batch = [settlement(claim, Succeeded("1"), now=clock.now()) for claim in (kept[0], lost, *kept[1:])]
        assert await other.settle(batch) == {claim.token for claim in kept}
        assert await read(store, lost.job_id) == before
        assert {(await read(store, claim.job_id)).state for claim in kept} == {State.SUCCEEDED}

    async def test_runs_of_several_claims_are_settled_together_each_under_its_own_token(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(3)])
        first = await take_one(store, limit=1)
        await finish(store, await take_one(store, limit=1), Released(), now=clock.now())
        claims = [first, await take_one(store, limit=1), await take_one(store, limit=1)]
        ends = [Succeeded("1"), Succeeded("2"), Succeeded(result_error="too long")]
        batch = [settlement(c, end, now=clock.now()) for c, end in zip(claims, ends, strict=True)]
        assert await store.settle(batch) == {claim.token for claim in claims}
        records = await store.get([claim.job_id for claim in claims])
        assert [(record.result, record.result_error) for record in records] == [
            ("1", None),
            ("2", None),
            (None, "too long"),
        ]

    @pytest.mark.parametrize("borrowed", ["claim_id", "fence"])
    async def test_a_success_under_the_token_of_its_neighbour_is_refused(
        self, store: Store, clock: FakeClock, borrowed: str
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job()])
        await finish(store, await take_one(store), Released(), now=clock.now())
        one = await take_one(store)
        await store.enqueue([job()])
        other = await take_one(store)
        wrong = other.token._replace(**{borrowed: getattr(one, borrowed)})
        batch = [
            settlement(one, Succeeded("1"), now=clock.now()),
            settlement(other, Succeeded("2"), now=clock.now(), token=wrong),
        ]
        assert await store.settle(batch) == {one.token}
        assert (await read(store, other.job_id)).state is State.RUNNING

    @pytest.mark.parametrize("outcome", [Succeeded("zombie"), Failed(error="zombie"), Released(1)])
    async def test_after_a_rescue_only_the_rescuer_can_settle(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        (zombie,), (rescued,) = await lose(store, clock)
        before = await read(store, zombie.job_id)
        assert await finish(store, zombie, outcome, now=clock.now(), policy=fixed(9, 1)) == frozenset()
        assert await read(store, zombie.job_id) == before
        assert await finish(store, rescued, now=clock.now()) == {rescued.token}
        assert (await read(store, zombie.job_id)).result is None

    async def test_a_zombie_is_refused_also_when_its_job_was_freed_run_and_ended_by_others(
        self, store: Store, clock: FakeClock
    ) -> None:
        (zombie,), (rescued,) = await lose(store, clock)
        crash = Crashed(worker="w1", started=True, blamed=False)
        steps = [rescued]
        await finish(store, rescued, crash, now=clock.now())
        steps.append(await take_one(store, "w2"))
        await finish(store, steps[-1], Released(), now=clock.now())
        steps.append(await take_one(store, "w2"))
        await finish(store, steps[-1], Succeeded("mine"), now=clock.now())
        before = await read(store, zombie.job_id)
        for stale in (zombie, *steps[:-1]):
            assert await finish(store, stale, Succeeded("zombie"), now=clock.now()) == frozenset()
        assert await read(store, zombie.job_id) == before
        assert [claim.fence for claim in (zombie, *steps)] == [1, 2, 3, 4]

    async def test_a_zombie_adds_no_attempts_and_no_new_jobs(self, store: Store, clock: FakeClock) -> None:
        (zombie,), _ = await lose(store, clock)
        extra = job()
        sent = settlement(
            zombie, Failed(error="zombie"), now=clock.now(), policy=fixed(9, 1), new_jobs=(extra,)
        )
        assert await store.settle([sent]) == frozenset()
        assert await outcomes(store, zombie.job_id) == []
        assert await store.get([extra.id]) == []

    async def test_new_jobs_come_only_from_accepted_siblings(self, store: Store, clock: FakeClock) -> None:
        (zombie,), (rescued,) = await lose(store, clock)
        bad, good = job(), job()
        batch = [
            settlement(zombie, Succeeded(), now=clock.now(), new_jobs=(bad,)),
            settlement(rescued, Succeeded(), now=clock.now(), new_jobs=(good,)),
        ]
        assert await store.settle(batch) == {rescued.token}
        assert [record.id for record in await store.get([bad.id, good.id])] == [good.id]

    async def test_a_zombie_cannot_record_a_start(self, store: Store, clock: FakeClock) -> None:
        (zombie,), _ = await lose(store, clock)
        before = await read(store, zombie.job_id)
        await store.mark_started([zombie.token], 1)
        assert await read(store, zombie.job_id) == before

    async def test_a_late_settlement_counts_while_nobody_has_taken_over(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job()])
        claim = await take_one(store)
        clock.set(clock.now() + 9 * LEASE)
        await store.bury(["w1"])
        assert await finish(store, claim, now=clock.now()) == {claim.token}
        await hire(store, "w2")
        assert await rescue(store, "w2") == []

    async def test_of_a_late_worker_and_its_rescuer_exactly_one_gets_each_job(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(40)])
        claims = await take(store)
        clock.set(clock.now() + LEASE + 1)
        await hire(store, "w2")

        async def settle_one_by_one() -> set[str]:
            accepted = [await finish(store, claim, now=clock.now()) for claim in claims]
            return {token.job_id for tokens in accepted for token in tokens}

        async def take_over() -> set[str]:
            return {orphan.claim.job_id for orphan in await rescue(other, "w2")}

        settled, rescued = await asyncio.gather(settle_one_by_one(), take_over())
        assert settled.isdisjoint(rescued)
        assert settled | rescued == {claim.job_id for claim in claims}
