"""Queues can be counted, however full they are, and emptied, without touching what workers have."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from duetime.model.job import JobTerms
from duetime.model.limits import UNLIMITED, Gate
from duetime.model.outcome import Cancelled, Failed
from duetime.model.queues import (
    DueJobs,
    QueueCensus,
    Registry,
    RegistryCount,
    StoredQueue,
    count_by_registry,
)
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.callbacks import ALL, called
from duetime.testing.conformance.kit import TASK, finish, hire, job, put, read, take, take_one
from duetime.testing.conformance.suite import StoreSuite


async def counted(store: Store, queue: str = "default", *, most: int = 100) -> RegistryCount:
    """Count one queue."""
    return count_by_registry(await store.census(most=most), [queue])[queue]


def count(**jobs: int) -> Counter[Registry]:
    """How many jobs are in each registry, as `Count` has them."""
    return Counter({Registry(name): number for name, number in jobs.items()})


class TestRegistries(StoreSuite):
    """`census`."""

    async def test_each_job_is_in_the_registry_where_people_look_for_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        for outcome in (None, None, Failed(error="e"), Cancelled("stopped")):
            await put(store)
            await finish(store, await take_one(store), outcome, now=clock.now())
        called_off = await put(store)
        await store.cancel([called_off], reason="off")
        await put(store, state=State.SKIPPED, reason="paused")
        await put(store)
        await take_one(store)
        await put(store, delay=5)
        await take_one(store, ahead=SECOND)
        await store.enqueue([job(), job(priority=0), job(delay=60), job(delay=60), job(delay=60, priority=9)])
        assert await counted(store) == RegistryCount(
            jobs=count(scheduled=4, queued=2, active=1, finished=2, failed=2, cancelled=1, skipped=1)
        )

    async def test_queues_are_counted_apart_also_at_gates(self, store: Store) -> None:
        await store.enqueue(
            [
                job(queue="a"),
                job(queue="b", delay=60),
                job(queue="b"),
                job(queue="c", terms=JobTerms(gate="g")),
                job(queue="c", terms=JobTerms(gate="h"), delay=60),
            ]
        )
        counts = count_by_registry(await store.census(most=100), ["empty"])
        assert {queue: found.jobs for queue, found in counts.items()} == {
            "a": count(queued=1),
            "b": count(queued=1, scheduled=1),
            "c": count(queued=1, scheduled=1),
            "empty": count(),
        }
        assert not any(found.at_least for found in counts.values())

    @pytest.mark.covers("counting-reads-all")
    async def test_what_is_too_much_to_count_is_said_to_be_more(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(4)])
        for claim in await take(store):
            await finish(store, claim, now=clock.now())
        assert (await counted(store, most=5)).at_least == set()
        await store.enqueue([job() for _ in range(3)])
        found = await counted(store, most=3)
        assert found.jobs[Registry.QUEUED] == 3
        assert found.at_least == set(Registry) - {Registry.SCHEDULED, Registry.ACTIVE}
        await store.enqueue([job(terms=JobTerms(gate="g"), delay=9) for _ in range(3)])
        assert Registry.SCHEDULED in (await counted(store, most=3)).at_least

    async def test_what_is_set_for_queues_is_told_with_them(self, store: Store, clock: FakeClock) -> None:
        await store.pause_queue("a", reason="it's late")
        since = clock.now()
        await store.pause_queue("b", reason=None)
        clock.advance(1)
        await store.resume_queue("b")
        await store.set_queue_limit("b", Gate(3, 5, SECOND))
        census = await store.census(most=1)
        assert census == QueueCensus(
            queues=[
                StoredQueue(name="a", paused_at=since, paused_reason="it's late", limit=UNLIMITED),
                StoredQueue(name="b", paused_at=None, paused_reason=None, limit=Gate(3, 5, SECOND)),
            ],
            tallies=[],
            gates_whole=True,
            history_whole=True,
        )


class TestDueJobs(StoreSuite):
    """`due_jobs`."""

    async def test_they_are_told_by_queue_and_task_also_at_gates(self, store: Store) -> None:
        gate = JobTerms(gate="g")
        await store.enqueue([job(), job(priority=0), job(task="other"), job(queue="b")])
        await store.enqueue([job(queue="b", terms=gate), job(queue="b", terms=gate, task="other")])
        assert await store.due_jobs(most=100) == [
            DueJobs("b", TASK, 2),
            DueJobs("b", "other", 1),
            DueJobs("default", TASK, 2),
            DueJobs("default", "other", 1),
        ]

    async def test_what_is_not_due_what_a_worker_has_and_what_has_ended_is_left_out(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        await finish(store, await take_one(store), now=clock.now())
        await put(store)
        await take_one(store)
        await store.enqueue([job(delay=60), job(delay=60, terms=JobTerms(gate="g"))])
        assert await store.due_jobs(most=100) == []
        clock.advance(60)
        assert [found.jobs for found in await store.due_jobs(most=100)] == [2]

    async def test_those_that_will_not_go_are_found_behind_many_to_come(self, store: Store) -> None:
        await store.enqueue([job(delay=60, priority=0) for _ in range(9)])
        await store.enqueue([job(task="lost", priority=9), job(task="lost", queue="z")])
        await store.enqueue([job(queue=f"q{number}", delay=60) for number in range(3)])
        assert await store.due_jobs(most=5) == [DueJobs("default", "lost", 1), DueJobs("z", "lost", 1)]

    async def test_at_least_as_many_are_counted_as_were_asked_for(self, store: Store) -> None:
        await store.enqueue([job(priority=number) for number in range(9)])
        [found] = await store.due_jobs(most=5)
        assert found.jobs >= 5


class TestPurge(StoreSuite):
    """`purge`."""

    async def test_pending_jobs_of_the_queue_are_cancelled_with_the_reason_in_small_steps(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = await store.enqueue(
            [
                job(),
                job(delay=60),
                job(priority=0),
                job(terms=JobTerms(gate="g")),
                job(terms=JobTerms(gate="h")),
            ]
        )
        other = await put(store, queue="other")

        async def purge() -> int:
            return await store.purge("default", before=clock.now(), reason="it's off", limit=2)

        assert [await purge() for _ in range(4)] == [2, 2, 1, 0]
        for record in await store.get(ids):
            assert (record.state, record.reason, record.finished_at) == (
                State.CANCELLED,
                "it's off",
                clock.now(),
            )
        assert (await read(store, other)).state is State.PENDING

    async def test_what_a_worker_has_is_left_alone(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        running = await put(store)
        await take_one(store)
        held = await put(store, delay=5)
        await take_one(store, ahead=SECOND)
        assert await store.purge("default", before=clock.now(), reason="off", limit=10) == 0
        for record in await store.get([running, held]):
            assert (record.state, record.cancel_requested_at) == (State.RUNNING, None)

    @pytest.mark.covers("purge-takes-running")
    async def test_a_job_is_either_claimed_or_purged(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        for _ in range(20):
            ids = await store.enqueue([job() for _ in range(10)])
            purge = other.purge("default", before=clock.now(), reason="off", limit=10)
            claims, purged = await asyncio.gather(take(store, limit=5), purge)
            records = await store.get(ids)
            running = [record for record in records if record.state is State.RUNNING]
            assert {claim.job_id for claim in claims} == {record.id for record in running}
            assert [record.cancel_requested_at for record in running] == [None] * len(claims)
            assert purged == [record.state for record in records].count(State.CANCELLED)
            for claim in claims:
                await finish(store, claim, now=clock.now())

    async def test_a_purge_calls_back_as_a_cancel_does(self, store: Store, clock: FakeClock) -> None:
        job_id = await put(store, terms=ALL)
        await store.purge("default", before=clock.now(), reason="off", limit=10)
        assert [called_back.task for called_back in await called(store, job_id)] == ["forget"]

    async def test_what_is_stored_later_is_left_alone(self, store: Store, clock: FakeClock) -> None:
        before = clock.now()
        clock.advance(1)
        late = [await put(store), await put(store, terms=JobTerms(gate="g"))]
        assert await store.purge("default", before=before, reason="off", limit=10) == 0
        assert {record.state for record in await store.get(late)} == {State.PENDING}
