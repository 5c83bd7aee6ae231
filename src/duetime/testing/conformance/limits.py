"""Limits hold over all claimers, and what they stop hides nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.ids import new_token
from duetime.model.job import Claim, JobId, JobTerms, NewJob
from duetime.model.limits import Gate, gate_name
from duetime.model.outcome import Failed, Snoozed
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.time import MINUTE, SECOND
from duetime.model.worker import WorkerStats
from duetime.stores.base import ClaimRequest, Hint, LimitedClaims, NextDue, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    TASK,
    finish,
    hire,
    job,
    put,
    read,
    rescue,
    settlement,
    take,
)
from duetime.testing.conformance.suite import MakeStore, StoreSuite
from duetime.testing.conformance.wakeups import listening

ONE = Gate(most=1)


def gated(key: object = None, **changes: Any) -> NewJob:
    """A job at the gate of a key, or at the one gate of its task."""
    new = job(**changes)
    name = gate_name(new.task) if key is None else gate_name(new.task, "key", str(key))
    return new._replace(terms=replace(new.terms, gate=name))


async def ask(store: Store, worker: str = "w1", *, rule: Gate = ONE, **changes: Any) -> LimitedClaims:
    """Claim up to a hundred jobs under one rule."""
    demand = ClaimRequest(
        worker=worker,
        claim_id=new_token(),
        queues=(("default", 100),),
        limit=100,
        tasks=(TASK,),
        limits={TASK: rule},
    )
    return await store.claim_limited(replace(demand, **changes))


async def pass_all(store: Store, worker: str = "w1", **changes: Any) -> list[Claim]:
    """Claim until nothing more may start."""
    claims: list[Claim] = []
    while found := (await ask(store, worker, **changes)).claims:
        claims += found
    return claims


async def run_all(
    stores: list[Store], workers: list[str], clock: FakeClock, count: int, **changes: Any
) -> tuple[list[JobId], Counter[str | None]]:
    """Let workers claim and end jobs all at once; return the jobs, and the most at each gate and in each queue."""
    running: Counter[str | None] = Counter()
    peaks: Counter[str | None] = Counter()
    done: list[JobId] = []

    async def work(mine: Store, worker: str) -> None:
        while len(done) < count:
            claims = (await ask(mine, worker, **changes)).claims
            running.update([claim.gate for claim in claims] + [claim.queue for claim in claims])
            for name in running:
                peaks[name] = max(peaks[name], running[name])
            for claim in claims:
                # Before the store hears of it: only then may it let the next one through.
                running.subtract([claim.gate, claim.queue])
                done.append(claim.job_id)
                await finish(mine, claim, now=clock.now())

    await asyncio.gather(*(work(stores[n % len(stores)], worker) for n, worker in enumerate(workers)))
    return done, peaks


def most_at_once(claims: list[Claim]) -> int:
    """How many claims the fullest gate has let through."""
    return max(Counter(claim.gate for claim in claims).values())


class TestGates(StoreSuite):
    """`claim_limited` at the gates of tasks and of keys."""

    @pytest.mark.parametrize("most", [1, 3])
    async def test_no_more_run_at_once_than_the_limit_says(
        self, store: Store, clock: FakeClock, most: int
    ) -> None:
        await hire(store, "w1")
        stored = await store.enqueue([gated() for _ in range(5)])
        claims = await pass_all(store, rule=Gate(most=most))
        assert [claim.job_id for claim in claims] == stored[:most]
        await finish(store, claims[0], now=clock.now())
        assert [claim.job_id for claim in await pass_all(store, rule=Gate(most=most))] == [stored[most]]

    async def test_a_claim_is_the_start_under_a_raised_fence(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        (job_id,) = await store.enqueue([gated("a")])
        (claim,) = (await ask(store, claim_id="c1")).claims
        record = await read(store, job_id)
        assert (record.state, record.started_at, record.worker) == (State.RUNNING, clock.now(), "w1")
        assert (claim.fence, claim.claim_id, claim.claimed_at) == (1, "c1", clock.now())
        assert (claim.gate, claim.limited, claim.queue_limited) == ("greet[key=a]", True, False)

    async def test_a_plain_claim_leaves_gated_jobs_alone_and_a_limited_one_the_others(
        self, store: Store
    ) -> None:
        await hire(store, "w1")
        at_gate, plain = await store.enqueue([gated(), job()])
        assert [claim.job_id for claim in (await ask(store)).claims] == [at_gate]
        assert [claim.job_id for claim in await take(store)] == [plain]

    @pytest.mark.covers("limit-starves")
    async def test_a_full_gate_hides_nobody(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated("full", priority=0, due_at=number) for number in range(300)])
        (first,) = (await ask(store, rule=ONE)).claims
        assert first.gate == "greet[key=full]"
        others = await store.enqueue([gated(key, priority=9) for key in ("a", "m", "z")])
        assert {claim.job_id for claim in (await ask(store)).claims} == set(others)
        assert (await ask(store)).claims == []

    @pytest.mark.covers("limit-starves")
    async def test_very_many_full_gates_hide_nobody(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(f"{number:04}") for number in range(1_200) for _ in (1, 2)])
        claims = await pass_all(store, queues=(("default", 2_000),), rule=Gate(most=1))
        assert (len(claims), most_at_once(claims)) == (1_200, 1)
        # One that is old, so that no look at the latest jobs finds it, and behind all others.
        (last,) = await store.enqueue([gated("zzz", due_at=1)])
        assert [claim.job_id for claim in await pass_all(store)] == [last]

    async def test_a_new_job_is_found_at_once_behind_very_many_gates(self, store: Store) -> None:
        await hire(store, "w1")
        # More than one claim walks past.
        await store.enqueue([gated(f"{number:05}", queue="foreign", due_at=1) for number in range(10_500)])
        (last,) = await store.enqueue([gated("zzz")])
        assert [claim.job_id for claim in (await ask(store)).claims] == [last]

    async def test_a_queue_that_is_asked_for_only_now_is_looked_at_from_the_first_gate(
        self, store: Store
    ) -> None:
        await hire(store, "w1")
        # More than one claim walks past, all of them in a queue that nobody asks for.
        (first,) = await store.enqueue([gated("00000", queue="mail", due_at=1)])
        await store.enqueue([gated(f"{number:05}", queue="foreign") for number in range(1, 10_501)])
        assert (await ask(store)).claims == []
        found = await ask(store, queues=(("default", 9), ("mail", 9)))
        assert [claim.job_id for claim in found.claims] == [first]

    async def test_gates_of_the_future_are_not_walked_past(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(f"{number:05}", delay=MINUTE) for number in range(10_500)])
        assert await ask(store) == ([], None), "it is through at once, and nothing is left to look at"
        (due,) = await store.enqueue([gated("zzz")])
        assert [claim.job_id for claim in (await ask(store)).claims] == [due]
        clock.advance(60)
        assert len(await pass_all(store, limit=20_000, queues=(("default", 20_000),))) == 10_500

    async def test_jobs_pass_a_gate_by_priority_then_due_time(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        now = clock.now()
        late, urgent, early = await store.enqueue(
            [gated(due_at=now - 1), gated(priority=0), gated(due_at=now - 2)]
        )
        order: list[JobId] = []
        while found := (await ask(store)).claims:
            order.append(found[0].job_id)
            await finish(store, found[0], now=now)
        assert order == [urgent, early, late]

    async def test_the_most_urgent_of_all_gates_comes_first_when_slots_are_few(self, store: Store) -> None:
        await hire(store, "w1")
        _, second, first = await store.enqueue([gated("a"), gated("b", priority=3), gated("c", priority=0)])
        assert [claim.job_id for claim in (await ask(store, limit=2)).claims] == [first, second]

    async def test_what_is_not_due_waits_for_its_time(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated("a", delay=SECOND)])
        assert (await ask(store)).claims == []
        assert (await ask(store, ahead=2 * SECOND)).claims == []
        clock.advance(1)
        assert len((await ask(store)).claims) == 1

    async def test_jobs_behind_one_that_is_not_due_pass_it(self, store: Store) -> None:
        await hire(store, "w1")
        _, due = await store.enqueue([gated(priority=0, delay=SECOND), gated(priority=5)])
        assert [claim.job_id for claim in (await ask(store)).claims] == [due]

    async def test_unknown_tasks_paused_queues_and_foreign_queues_are_left_alone(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(task="stranger"), gated(queue="paused"), gated(queue="foreign")])
        await store.pause_queue("paused", reason=None)
        mine = await put(store, terms=JobTerms(gate="greet"), priority=9)
        found = await ask(store, queues=(("default", 9), ("paused", 9)))
        assert [claim.job_id for claim in found.claims] == [mine]

    async def test_a_task_without_a_limit_in_this_code_passes_the_gates_of_older_code(
        self, store: Store
    ) -> None:
        await hire(store, "w1")
        stored = await store.enqueue([gated("a"), gated("a"), gated()])
        claims = await pass_all(store, limits={})
        assert sorted(claim.job_id for claim in claims) == sorted(stored)

    async def test_each_queue_gives_no_more_than_its_share_and_all_no_more_than_the_limit(
        self, store: Store
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(key, queue=queue) for queue in "ab" for key in range(4)])
        found = await ask(store, limit=4, queues=(("a", 1), ("b", 9)), rule=Gate(most=9))
        assert sorted(claim.queue for claim in found.claims) == ["a", "b", "b", "b"]

    @pytest.mark.parametrize("nothing", [{"queues": ()}, {"tasks": ()}, {"queues": (("default", 0),)}])
    async def test_a_demand_for_nothing_gets_nothing(self, store: Store, nothing: dict[str, Any]) -> None:
        await hire(store, "w1")
        await store.enqueue([gated()])
        assert (await ask(store, **nothing)).claims == []

    @pytest.mark.parametrize("end", ["bury", "retire", "never"])
    async def test_a_worker_that_is_not_alive_gets_nothing(self, store: Store, end: str) -> None:
        await store.enqueue([gated()])
        if end != "never":
            await hire(store, "w1")
        if end == "bury":
            await store.bury(["w1"])
        if end == "retire":
            await store.retire("w1")
        assert (await ask(store)).claims == []

    @pytest.mark.covers("limit-exceeded")
    async def test_many_claimers_at_once_never_exceed_a_limit(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock), await make_store(clock)]
        workers = [f"w{number}" for number in range(8)]
        await hire(store, *workers)
        stored = await store.enqueue([gated(number % 3) for number in range(60)])
        done, peaks = await run_all(stores, workers, clock, len(stored), rule=Gate(most=2))
        assert sorted(done) == sorted(stored)
        assert max(peaks[f"greet[key={number}]"] for number in range(3)) == 2

    async def test_a_lost_answer_is_found_under_its_claim_id(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated("a"), gated("b")])
        found = await ask(store, claim_id="c1")
        again = await store.claims_under("w1", "c1")
        assert {claim.token for claim in again} == {claim.token for claim in found.claims}
        assert {claim.gate for claim in again} == {"greet[key=a]", "greet[key=b]"}

    @pytest.mark.parametrize("outcome", [Failed(error="boom"), Snoozed(SECOND)])
    async def test_a_job_that_goes_back_keeps_its_gate_and_frees_its_place(
        self, store: Store, clock: FakeClock, outcome: Failed | Snoozed
    ) -> None:
        await hire(store, "w1")
        first, second = await store.enqueue([gated(due_at=1), gated()])
        (claim,) = (await ask(store)).claims
        await finish(store, claim, outcome, now=clock.now(), policy=fixed(1, 1))
        (next_one,) = (await ask(store)).claims
        assert (claim.job_id, next_one.job_id) == (first, second)
        clock.advance(1)
        assert (await ask(store)).claims == []
        await finish(store, next_one, now=clock.now())
        assert [(c.job_id, c.gate) for c in (await ask(store)).claims] == [(first, "greet")]

    @pytest.mark.covers("limit-leaks")
    async def test_the_place_of_a_dead_worker_is_free_when_its_job_is_rescued(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([gated(on_crash="fail"), gated()])
        await ask(store, "w1")
        await store.bury(["w1"])
        assert (await ask(store, "w2")).claims == [], "the dead worker's process may still run its job"
        (orphan,) = await rescue(store, "w2")
        assert orphan.claim.limited
        assert (await ask(store, "w2")).claims == []
        await finish(store, orphan.claim, now=clock.now())
        assert len((await ask(store, "w2")).claims) == 1

    async def test_the_end_of_a_limited_job_is_hinted(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated()])
        (claim,) = (await ask(store)).claims
        async with listening(store) as heard:
            await store.settle([settlement(claim, Failed(error="boom"), now=clock.now())])
            await heard(Hint("limits"))

    async def test_waiting_at_a_gate_is_not_being_due(self, store: Store, clock: FakeClock) -> None:
        now = clock.now()
        assert await store.next_due(["default"], [TASK]) == NextDue(now, None)
        await store.enqueue([gated("a"), gated("b", delay=5), gated("c", delay=9), gated(task="x", delay=1)])
        assert await store.next_due(["default"], [TASK]) == NextDue(now, None, now + 5, limited=True)
        assert await store.next_due(["foreign"], [TASK]) == NextDue(now, None, None, limited=True)

    async def test_behind_very_many_jobs_of_others_the_next_due_time_is_found_in_steps(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        await store.enqueue([gated(task="x", delay=number) for number in range(1, 151)])
        await store.enqueue([gated("mine", delay=200)])
        assert (await store.next_due(["default"], [TASK])).limited_at == now + 100
        clock.set(now + 100)
        assert (await store.next_due(["default"], [TASK])).limited_at == now + 200

    async def test_a_pulse_tells_that_jobs_wait_at_gates(self, store: Store) -> None:
        await hire(store, "w1")
        assert not (await store.pulse("w1", WorkerStats(), lease=LEASE)).limited
        await store.enqueue([gated()])
        assert (await store.pulse("w1", WorkerStats(), lease=LEASE)).limited

    async def test_gates_that_no_job_needs_are_forgotten(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(key) for key in "abc"] + [gated("c")])
        claims = {claim.gate: claim for claim in (await ask(store)).claims}
        clock.advance(1)
        assert await store.prune_gates() == 0
        await finish(store, claims["greet[key=a]"], now=clock.now())
        await finish(store, claims["greet[key=c]"], now=clock.now())
        assert await store.prune_gates() == 1, "b runs, and at c one waits"
        assert await store.prune_gates() == 0
        await store.enqueue([gated("a"), gated("b")])
        assert {claim.gate for claim in await pass_all(store)} == {"greet[key=a]", "greet[key=c]"}
