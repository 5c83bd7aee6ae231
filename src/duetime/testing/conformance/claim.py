"""Jobs are handed out once, in order, to workers that are alive and can run them."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from duetime.model.job import Claim, JobId, Key
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import TASK, finish, hire, job, put, read, take, take_one
from duetime.testing.conformance.suite import MakeStore, StoreSuite


def ids(claims: list[Claim]) -> list[JobId]:
    """The jobs of claims, in order."""
    return [claim.job_id for claim in claims]


class TestClaim(StoreSuite):
    """`claim` of what is due."""

    async def test_a_claim_is_the_start(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        job_id = await put(store)
        clock.advance(3)
        claim = await take_one(store, claim_id="c1")
        record = await read(store, job_id)
        assert (record.state, record.started_at, record.worker) == (State.RUNNING, clock.now(), "w1")
        assert record.fence == claim.fence == 1
        assert (claim.claim_id, claim.claimed_at) == ("c1", clock.now())

    async def test_a_job_that_comes_in_behind_a_long_backlog_is_not_left_behind(self, store: Store) -> None:
        await hire(store, "w1")
        backlog = [job(due_at=1_000 + n) for n in range(2_000)]
        await store.enqueue(backlog)
        handed_out = [
            job_id
            for _ in range(3)
            for job_id in ids(await take(store, queues=[("default", 600)], limit=600))
        ]
        assert handed_out == [new.id for new in backlog[:1_800]]
        late = await put(store, due_at=1)
        for _ in range(2):
            handed_out += ids(await take(store, queues=[("default", 600)], limit=600))
        assert sorted(handed_out) == sorted([late, *(new.id for new in backlog)])

    async def test_a_claim_carries_what_the_job_asked_for(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        asked = job(
            payload='{"x":1}',
            queue="mail",
            priority=9,
            on_crash="fail",
            retries=2,
            timeout=SECOND,
            schedule="s",
            occurrence=clock.now(),
        )
        await store.enqueue([asked])
        assert await take_one(store, queues=["mail"], claim_id="c1") == Claim(
            job_id=asked.id,
            fence=1,
            claim_id="c1",
            task=TASK,
            payload='{"x":1}',
            queue="mail",
            priority=9,
            due_at=clock.now(),
            claimed_at=clock.now(),
            failures=0,
            crashes=0,
            blames=0,
            on_crash="fail",
            retries=2,
            timeout=SECOND,
            schedule="s",
            occurrence=clock.now(),
            cancel_requested_at=None,
        )

    @pytest.mark.parametrize("limit", [1, 7, 100])
    @pytest.mark.covers("claim-order")
    async def test_the_order_is_priority_then_due_time_then_id(
        self, store: Store, clock: FakeClock, limit: int
    ) -> None:
        await hire(store, "w1")
        jobs = [
            job(priority=p, due_at=clock.now() - due)
            for p in (0, 4, 5, 9)
            for due in (0, 1, 2)
            for _ in (1, 2)
        ]
        expected = [new.id for new in sorted(jobs, key=lambda new: (new.priority, new.due_at, new.id))]
        random.Random(1).shuffle(jobs)
        await store.enqueue(jobs)
        taken: list[JobId] = []
        while claims := await take(store, limit=limit):
            taken += ids(claims)
        assert taken == expected

    async def test_jobs_of_equal_urgency_go_first_come_first_served(self, store: Store) -> None:
        await hire(store, "w1")
        stored = [await put(store) for _ in range(5)]
        assert ids(await take(store)) == stored

    async def test_each_queue_gives_no_more_than_its_share_and_all_no_more_than_the_limit(
        self, store: Store
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([job(queue=queue) for queue in ("a", "b", "c") for _ in range(5)])
        claims = await take(store, queues=[("b", 2), ("a", 1), ("c", 9)], limit=6)
        assert [claim.queue for claim in claims] == ["b", "b", "a", "c", "c", "c"]

    async def test_queues_are_looked_at_in_the_order_of_the_demand(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(queue="a", priority=0), job(queue="b", priority=9)])
        assert [claim.queue for claim in await take(store, queues=["b", "a"], limit=1)] == ["b"]

    async def test_a_limit_that_the_first_queue_uses_up_leaves_the_rest_alone(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(queue=queue) for queue in ("a", "b") for _ in range(3)])
        assert [claim.queue for claim in await take(store, queues=["a", "b"], limit=3)] == ["a"] * 3
        assert (await store.counts())["b", State.PENDING] == 3

    @pytest.mark.covers("sub-second-due")
    async def test_a_job_is_due_at_its_instant_and_not_before(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store, delay=2)
        clock.set(clock.now() + 1)
        assert await take(store) == []
        clock.set(clock.now() + 1)
        assert len(await take(store)) == 1

    @pytest.mark.covers("unknown-task")
    async def test_unknown_tasks_are_left_alone_even_at_the_head(self, store: Store) -> None:
        await hire(store, "w1")
        strangers = await store.enqueue([job(task="stranger", priority=0, due_at=1) for _ in range(200)])
        known = await put(store)
        assert ids(await take(store, limit=1, tasks=("other", TASK))) == [known]
        assert {record.state for record in await store.get(strangers)} == {State.PENDING}

    @pytest.mark.parametrize(
        "nothing", [{"limit": 0}, {"tasks": ()}, {"queues": ()}, {"queues": [("default", 0)]}]
    )
    async def test_a_demand_for_nothing_gets_nothing(self, store: Store, nothing: dict[str, object]) -> None:
        await hire(store, "w1")
        await put(store)
        assert await take(store, **nothing) == []  # type: ignore[arg-type]

    async def test_a_queue_that_does_not_exist_gives_nothing(self, store: Store) -> None:
        await hire(store, "w1")
        assert await take(store, queues=["nowhere"]) == []

    async def test_a_paused_queue_gives_nothing_until_it_is_resumed(self, store: Store, other: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(queue="a"), job(queue="b")])
        await other.pause_queue("a", reason="repairs")
        assert [claim.queue for claim in await take(store, queues=["a", "b"])] == ["b"]
        await other.resume_queue("a")
        assert [claim.queue for claim in await take(store, queues=["a", "b"])] == ["a"]

    async def test_only_jobs_below_the_given_priority_number_are_taken(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(priority=priority) for priority in range(10)])
        assert [claim.priority for claim in await take(store, below_priority=3)] == [0, 1, 2]
        assert await take(store, below_priority=0) == []

    async def test_a_worker_that_never_registered_gets_nothing(self, store: Store) -> None:
        await put(store)
        assert await take(store, "stranger") == []

    async def test_a_dead_worker_gets_nothing(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        await store.bury(["w1"])
        assert await take(store) == []

    async def test_a_stopped_worker_gets_nothing(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        await store.retire("w1")
        assert await take(store) == []

    @pytest.mark.covers("double-claim")
    async def test_a_claimed_job_is_not_handed_out_again(self, store: Store, other: Store) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        await take_one(store)
        assert await take(other, "w2") == []
        assert await take(store) == []

    async def test_ended_jobs_are_not_handed_out(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        await finish(store, await take_one(store), now=clock.now())
        await store.cancel([await put(store)], reason="test")
        assert await take(store) == []

    @pytest.mark.covers("double-claim")
    async def test_eight_claimers_never_get_the_same_job_and_leave_none(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock)]
        stored = await store.enqueue([job(priority=number % 3, due_at=number % 5) for number in range(200)])
        workers = [f"w{number}" for number in range(8)]
        await hire(store, *workers)

        async def work(mine: Store, worker: str) -> list[Claim]:
            taken: list[Claim] = []
            while claims := await take(mine, worker, limit=7):
                taken += claims
            return taken

        shares = await asyncio.gather(*(work(stores[n % 3], worker) for n, worker in enumerate(workers)))
        claims = [claim for share in shares for claim in share]
        # A claimer may pass over what another one is just taking, and stop early; nothing may be left for good.
        claims += await take(store, limit=200, queues=[("default", 200)])
        assert sorted(ids(claims)) == sorted(stored)
        assert {claim.fence for claim in claims} == {1}
        for record in await store.get(stored):
            assert record.state is State.RUNNING

    async def test_a_thousand_jobs_are_handed_out_at_once(self, store: Store) -> None:
        await hire(store, "w1")
        stored = await store.enqueue([job() for _ in range(1_000)])
        assert ids(await take(store, queues=[("default", 1_000)], limit=1_000)) == stored

    async def test_many_queues_and_tasks_are_no_obstacle(self, store: Store) -> None:
        await hire(store, "w1")
        names = [f"n{number}" for number in range(60)]
        await store.enqueue([job(queue=name, task=name) for name in names])
        claims = await take(store, queues=names, tasks=tuple(names))
        assert [claim.queue for claim in claims] == names


class TestClaimAhead(StoreSuite):
    """`claim` of what will be due within a moment."""

    async def test_what_falls_due_within_the_window_is_held_unstarted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        soon, edge, _later = [await put(store, delay=delay) for delay in (1, SECOND, SECOND + 1)]
        claims = await take(store, ahead=SECOND)
        assert ids(claims) == [soon, edge]
        assert [claim.claimed_at for claim in claims] == [clock.now()] * 2
        for record in await store.get([soon, edge]):
            assert (record.state, record.started_at, record.worker) == (State.RUNNING, None, "w1")

    async def test_what_is_already_due_is_not_taken_ahead(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job(due_at=clock.now() - 1)])
        assert await take(store, ahead=SECOND) == []

    async def test_due_jobs_do_not_use_up_the_limit(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(priority=0) for _ in range(50)])
        soon = await put(store, delay=1)
        assert ids(await take(store, ahead=SECOND, limit=1)) == [soon]

    async def test_a_job_whose_crash_is_its_failure_is_never_held_unstarted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        job_id = await put(store, on_crash="fail", delay=1)
        assert await take(store, ahead=SECOND) == []
        clock.advance(1)
        assert ids(await take(store)) == [job_id]

    async def test_a_job_that_crashed_before_is_never_held_unstarted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        now = clock.now()
        back: dict[str, Any] = {"state": State.PENDING, "finished_at": None, "due_at": now + 1, "crashes": 1}
        await finish(store, claim, now=now, **back)
        assert await take(store, ahead=SECOND) == []
        clock.advance(1)
        assert (await take_one(store)).crashes == 1

    async def test_a_job_that_only_failed_before_may_be_held(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        now = clock.now()
        back: dict[str, Any] = {"state": State.PENDING, "finished_at": None, "due_at": now + 1, "failures": 1}
        await finish(store, await take_one(store), now=now, **back)
        assert (await take_one(store, ahead=SECOND)).failures == 1

    @pytest.mark.covers("debounce-leaks")
    async def test_a_job_that_a_request_under_its_key_may_replace_is_not_claimed_before_it_is_due(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        key = Key(value="k", if_exists="replace")
        job_id = await put(store, delay=SECOND // 2, key=key)
        assert await take(store, ahead=SECOND) == []
        assert await store.enqueue([job(delay=SECOND, key=key)]) == [job_id]
        assert await take(store, ahead=SECOND) == []
        clock.advance(1)
        assert ids(await take(store, unstarted=True)) == [job_id]

    async def test_what_is_due_can_be_held_unstarted_too_if_it_is_safe(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        safe, unsafe, _later = await store.enqueue([job(), job(on_crash="fail"), job(delay=1)])
        claim = await take_one(store, unstarted=True)
        assert (claim.job_id, claim.claimed_at) == (safe, clock.now())
        assert (await read(store, safe)).started_at is None
        assert ids(await take(store)) == [unsafe]

    async def test_priority_shares_pauses_and_life_count_ahead_too(self, store: Store) -> None:
        await hire(store, "w1", "dead")
        await store.bury(["dead"])
        for queue in ("a", "b", "paused"):
            await store.enqueue([job(queue=queue, priority=p, delay=9 - p) for p in (5, 0, 9)])
        await store.pause_queue("paused", reason=None)
        demand = [("a", 2), ("paused", 9), ("b", 9)]
        assert await take(store, "dead", queues=demand, ahead=SECOND) == []
        claims = await take(store, queues=demand, ahead=SECOND, limit=3, below_priority=9)
        assert [(claim.queue, claim.priority) for claim in claims] == [("a", 0), ("a", 5), ("b", 0)]

    async def test_starting_is_recorded(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job(delay=5), job(delay=6)])
        first, second = await take(store, ahead=SECOND)
        clock.advance(1)
        await store.mark_started([first.token], clock.now())
        assert (await read(store, first.job_id)).started_at == clock.now()
        assert (await read(store, second.job_id)).started_at is None

    @pytest.mark.parametrize("wrong", [{"fence": 2}, {"fence": 0}, {"claim_id": "other"}])
    async def test_only_the_holder_can_record_a_start(self, store: Store, wrong: dict[str, object]) -> None:
        await hire(store, "w1")
        await put(store, delay=5)
        claim = await take_one(store, ahead=SECOND)
        await store.mark_started([claim._replace(**wrong).token], 1)  # type: ignore[arg-type]
        assert (await read(store, claim.job_id)).started_at is None

    async def test_a_start_recorded_too_late_changes_nothing(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store, delay=5)
        claim = await take_one(store, ahead=SECOND)
        await finish(store, claim, now=clock.now())
        before = await read(store, claim.job_id)
        await store.mark_started([claim.token], 1)
        assert await read(store, claim.job_id) == before
