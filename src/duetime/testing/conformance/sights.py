"""A heartbeat sees what hints may have missed, and only what it was to look for."""

from __future__ import annotations

import pytest

from duetime.model.limits import Gate
from duetime.model.time import SECOND, Instant
from duetime.model.worker import WorkerStats
from duetime.stores.base import PulseFindings, PulseQuery, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import LEASE, alter, declare, hire, job, pause, put, schedule, take_one
from duetime.testing.conformance.limits import gated
from duetime.testing.conformance.suite import StoreSuite

JOBS = PulseQuery(queues=("default", "mail"), tasks=("greet",))
ALL = PulseQuery(queues=("default", "mail"), tasks=("greet",), schedules=True, orphans=True)


async def sight(store: Store, wants: PulseQuery = ALL) -> PulseFindings:
    """Return what a heartbeat sees."""
    seen = (await store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)).sight
    assert seen is not None
    return seen


async def next_job(store: Store) -> Instant | None:
    """Return when a heartbeat says that the next job falls due."""
    return (await sight(store, JOBS)).due_at


class TestSight(StoreSuite):
    """`pulse` with something to look for."""

    async def test_a_heartbeat_that_is_to_look_for_nothing_sees_nothing(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        assert (await store.pulse("w1", WorkerStats(), lease=LEASE)).sight is None

    async def test_where_nothing_is_nothing_is_seen(self, store: Store) -> None:
        await hire(store, "w1")
        assert await sight(store) == PulseFindings(None, None, None, orphans=False)

    @pytest.mark.covers("idle-writes")
    async def test_the_earliest_job_of_all_queues_and_priorities_is_seen(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        await store.enqueue([job(delay=50), job(delay=40, queue="mail", priority=9)])
        assert await next_job(store) == now + 40
        await put(store, priority=3)
        assert await next_job(store) == now

    async def test_jobs_of_other_queues_and_tasks_are_not_seen(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(queue="other"), job(task="unknown")])
        assert await next_job(store) is None

    @pytest.mark.covers("lease-behind-backlog")
    async def test_behind_very_many_jobs_of_other_tasks_a_heartbeat_tells_when_to_look_further(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        await store.enqueue([job(task="unknown", delay=number) for number in range(1, 100)])
        assert await next_job(store) is None
        await store.enqueue([job(delay=200)])
        assert await next_job(store) == now + 200
        await store.enqueue([job(task="unknown", delay=number) for number in range(100, 151)])
        # A store that finds its way through all of them need not look again before.
        assert await next_job(store) in {now + 100, now + 200}
        await put(store, delay=50)
        assert await next_job(store) == now + 50

    async def test_what_cannot_be_claimed_is_not_seen(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job(queue="mail")])
        await take_one(store, limit=1)
        await store.pause_queue("mail", reason=None)
        assert await next_job(store) is None

    async def test_jobs_under_limits_are_told_of_by_the_limits(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([gated(), job(queue="mail")])
        await store.set_queue_limit("mail", Gate(1))
        pulse = await store.pulse("w1", WorkerStats(), lease=LEASE, wants=ALL)
        assert pulse.limited
        assert pulse.sight is not None
        assert pulse.sight.due_at is None

    async def test_the_next_schedule_and_the_next_that_goes_on_are_seen(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        names = {"s1": 30, "s2": 20, "paused": 1, "parked": 2, "later": 3, "sooner": 4}
        await declare(
            store, *(schedule(name, next_at=now + at, fired_through=now) for name, at in names.items())
        )
        assert await pause(store, "paused")
        assert await alter(store, "parked", parked_at=now)
        assert await alter(store, "later", paused_at=now, paused_until=now + 9)
        assert await alter(store, "sooner", paused_at=now, paused_until=now + 8)
        assert await sight(store) == PulseFindings(None, now + 20, now + 8, orphans=False)
        assert await sight(store, JOBS) == PulseFindings(None, None, None, orphans=False)

    async def test_the_end_of_a_lease_is_seen(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1", "w2")
        clock.set(clock.now() + LEASE - SECOND)
        assert not (await sight(store)).orphans
        clock.advance(2)
        assert (await sight(store)).orphans
        assert not (await sight(store, JOBS)).orphans

    async def test_a_job_of_a_worker_that_is_gone_is_seen(self, store: Store) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        await take_one(store, "w2")
        assert not (await sight(store)).orphans
        await store.bury(["w2"])
        assert (await sight(store)).orphans

    @pytest.mark.covers("cut-off-worker")
    async def test_a_pulse_tells_when_the_first_lease_of_the_others_ends(
        self, store: Store, clock: FakeClock
    ) -> None:
        async def ends() -> Instant | None:
            return (await store.pulse("w1", WorkerStats(), lease=LEASE)).lease_ends

        began = clock.now()
        await hire(store, "w1")
        assert await ends() is None
        await hire(store, "w2", "w3")
        clock.set(began + SECOND)
        await store.pulse("w2", WorkerStats(), lease=LEASE)
        assert await ends() == began + LEASE
        await store.retire("w3")
        assert await ends() == began + SECOND + LEASE
        clock.set(began + LEASE + 2 * SECOND)
        assert await ends() == began + SECOND + LEASE, "also when it has passed"
        await store.bury(["w2"])
        assert await ends() is None

    async def test_a_pulse_tells_when_the_last_of_the_living_was_started(
        self, store: Store, clock: FakeClock
    ) -> None:
        began = clock.now()
        await hire(store, "w1")
        clock.advance(1)
        await hire(store, "w2")

        async def newest() -> Instant:
            return (await store.pulse("w1", WorkerStats(), lease=LEASE)).newest

        assert await newest() == began + SECOND
        await store.retire("w2")
        assert await newest() == began
