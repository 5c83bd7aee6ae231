"""A worker lives as long as it is heard of, and never comes back from the dead."""

from __future__ import annotations

import pytest

from duetime.model.stored.jobs import StoredWorker
from duetime.model.time import SECOND
from duetime.model.worker import WorkerStats
from duetime.stores.base import PeerWorker, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import LEASE, finish, hire, job, put, rescue, take, take_one, worker_info
from duetime.testing.conformance.suite import StoreSuite

STATS = WorkerStats(
    running=1, done=2, failed=3, loop_lag=4, last_error="it's 5", paused_at=6, paused_reason="a 7"
)


async def record(store: Store, worker: str) -> StoredWorker:
    """Read one worker."""
    (found,) = [row for row in await store.workers() if row.id == worker]
    return found


class TestPulse(StoreSuite):
    """`register`, `pulse`, `attend`, `retire` and `bury`."""

    async def test_registering_adds_a_living_worker_and_tells_the_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        info = worker_info(
            "w1",
            host="h",
            host_key="k",
            pid=77,
            pid_started="1.5",
            version="1.2",
            queues=("b", "a"),
            tasks=("t2", "t1"),
            slots=8,
            declares=("s",),
            fires=True,
            name="w",
        )
        assert await store.register(info, lease=LEASE) == clock.now()
        assert await record(store, "w1") == StoredWorker(
            id="w1",
            state="alive",
            host="h",
            host_key="k",
            pid=77,
            pid_started="1.5",
            version="1.2",
            queues=("b", "a"),
            tasks=("t2", "t1"),
            declares=("s",),
            fires=True,
            name="w",
            slots=8,
            started_at=clock.now(),
            beat_at=clock.now(),
            lease_until=clock.now() + LEASE,
            stats=WorkerStats(),
        )

    async def test_registering_again_after_a_lost_answer_is_harmless(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        assert await store.register(worker_info("w1"), lease=LEASE) == clock.now()
        assert (await store.attend("w1")).held == {claim.token}

    async def test_a_pulse_counts_the_workers_that_live(self, store: Store) -> None:
        for name in ("w1", "w2", "w3", "w4"):
            await hire(store, name)
        await store.bury(["w3"])
        await store.retire("w4")
        assert (await store.pulse("w1", WorkerStats(), lease=LEASE)).workers == 2
        assert (await store.attend("w1")).workers == 0

    async def test_a_pulse_renews_the_lease_and_keeps_the_figures(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        clock.advance(10)
        pulse = await store.pulse("w1", STATS, lease=LEASE)
        assert (pulse.alive, pulse.now) == (True, clock.now())
        row = await record(store, "w1")
        assert (row.beat_at, row.lease_until, row.stats) == (clock.now(), clock.now() + LEASE, STATS)

    @pytest.mark.covers("lease-outlives-job")
    async def test_a_worker_that_pulses_is_never_rescued(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        claim = await take_one(store)
        for _ in range(5):
            clock.set(clock.now() + LEASE - 1)
            await store.pulse("w2", STATS, lease=LEASE)
            assert (await store.pulse("w1", STATS, lease=LEASE)).held == {claim.token}
            assert await rescue(store, "w2") == []

    async def test_a_pulse_lists_exactly_what_the_worker_holds(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([job(), job(), job(), job(delay=5)])
        ended, running, *_ = await take(store, limit=2)
        await take(store, "w2", limit=1)
        (unstarted,) = await take(store, ahead=SECOND)
        await finish(store, ended, now=clock.now())
        for pulse in (await store.pulse("w1", STATS, lease=LEASE), await store.attend("w1")):
            assert pulse.held == {running.token, unstarted.token}
            assert pulse.cancelling == frozenset()

    async def test_a_pulse_tells_what_is_to_be_cancelled(self, store: Store, other: Store) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([job(), job()])
        mine = await take_one(store, limit=1)
        theirs = await take_one(store, "w2", limit=1)
        await other.cancel([mine.job_id, theirs.job_id], reason="no more")
        for pulse in (await store.pulse("w1", STATS, lease=LEASE), await store.attend("w1")):
            assert pulse.cancelling == {mine.job_id}
            assert pulse.held == {mine.token}

    async def test_attending_renews_nothing(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        before = await record(store, "w1")
        clock.advance(10)
        pulse = await store.attend("w1")
        assert (pulse.alive, pulse.now) == (True, clock.now())
        assert await record(store, "w1") == before

    async def test_a_late_pulse_counts_while_nobody_has_declared_the_worker_dead(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        clock.set(clock.now() + 5 * LEASE)
        assert (await store.pulse("w1", STATS, lease=LEASE)).alive
        assert (await record(store, "w1")).lease_until == clock.now() + LEASE

    @pytest.mark.parametrize("end", ["buried", "expired", "retired"])
    async def test_who_is_gone_stays_gone(
        self, store: Store, other: Store, clock: FakeClock, end: str
    ) -> None:
        await hire(store, "w1")
        await put(store)
        await take_one(store)
        if end == "buried":
            await other.bury(["w1"])
        elif end == "retired":
            await store.retire("w1")
        else:
            clock.set(clock.now() + LEASE + 1)
        await hire(other, "w2")
        await rescue(other, "w2")
        before = await record(store, "w1")
        clock.advance(1)
        assert not (await store.pulse("w1", STATS, lease=LEASE)).alive
        assert not (await store.attend("w1")).alive
        await store.register(worker_info("w1"), lease=LEASE)
        assert not (await store.attend("w1")).alive
        assert await record(store, "w1") == before
        assert before.state == ("stopped" if end == "retired" else "dead")
        assert await take(store) == []

    async def test_an_unknown_worker_is_not_alive(self, store: Store, clock: FakeClock) -> None:
        for pulse in (await store.pulse("nobody", STATS, lease=LEASE), await store.attend("nobody")):
            assert (pulse.alive, pulse.now, pulse.held) == (False, clock.now(), frozenset())
        assert await store.workers() == []

    async def test_a_worker_whose_job_was_taken_over_no_longer_holds_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        await take_one(store)
        clock.set(clock.now() + LEASE + 1)
        await hire(store, "w2")
        (orphan,) = await rescue(store, "w2")
        assert (await store.attend("w1")).held == frozenset()
        assert (await store.attend("w2")).held == {orphan.claim.token}

    async def test_only_the_living_can_be_buried(self, store: Store) -> None:
        await hire(store, "w1", "w2", "w3")
        await store.retire("w1")
        assert await store.bury(["w1", "w2", "nobody"]) == ["w2"]
        assert {row.id: row.state for row in await store.workers()} == {
            "w1": "stopped",
            "w2": "dead",
            "w3": "alive",
        }
        assert await store.bury([]) == []
        assert await store.bury(["w2"]) == [], "it was dead before"

    async def test_who_has_no_lease_counts_as_dead_before_anybody_says_so(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await store.retire("w2")
        clock.set(clock.now() + LEASE)
        assert (await record(store, "w1")).state == "alive"
        clock.advance(1)
        assert (await record(store, "w1")).state == "dead"
        assert (await record(store, "w2")).state == "stopped"
        await store.pulse("w1", STATS, lease=LEASE)
        assert (await record(store, "w1")).state == "alive", "nobody had taken it for dead"

    async def test_the_dead_cannot_retire(self, store: Store) -> None:
        await hire(store, "w1")
        await store.bury(["w1"])
        await store.retire("w1")
        await store.retire("nobody")
        assert (await record(store, "w1")).state == "dead"


class TestPeers(StoreSuite):
    """`peers`."""

    async def test_the_living_of_the_same_host_are_peers(self, store: Store) -> None:
        hosts = {"me": "k", "near": "k", "buried": "k", "stopped": "k", "far": "other", "nowhere": None}
        for number, (worker, host_key) in enumerate(hosts.items()):
            info = worker_info(worker, host_key=host_key, pid=100 + number, pid_started="9")
            await store.register(info, lease=LEASE)
        await store.bury(["buried"])
        await store.retire("stopped")
        assert await store.peers("me", "k", soon=0) == [
            PeerWorker(id="near", pid=101, pid_started="9", same_host=True, lease_left=LEASE)
        ]

    async def test_a_worker_that_cannot_tell_its_host_has_no_neighbours(self, store: Store) -> None:
        await hire(store, "me", "w1")
        assert await store.peers("me", None, soon=LEASE) == []

    @pytest.mark.covers("cut-off-worker")
    async def test_a_worker_elsewhere_is_a_peer_when_its_lease_ends_soon(
        self, store: Store, clock: FakeClock
    ) -> None:
        for worker in ("me", "far", "renewed"):
            await store.register(worker_info(worker, host_key=worker), lease=LEASE)
        clock.set(clock.now() + LEASE - 2 * SECOND)
        await store.pulse("renewed", STATS, lease=LEASE)
        assert await store.peers("me", "me", soon=SECOND) == []
        for passed, left in ((SECOND + 1, SECOND - 1), (SECOND, -1)):
            clock.set(clock.now() + passed)
            [peer] = await store.peers("me", "me", soon=SECOND)
            assert (peer.id, peer.same_host, peer.lease_left) == ("far", False, left)
