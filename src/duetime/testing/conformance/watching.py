"""Those who watch see what changes, and workers know that they are watched."""

from __future__ import annotations

from duetime.model.states import State
from duetime.model.stored.watched import JobOutline, Journal, WatchedWorker
from duetime.model.time import SECOND
from duetime.model.worker import WorkerStats
from duetime.stores.base import Hint, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import LEASE, finish, hire, put, take_one
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening

WATCH = 30 * SECOND


class TestWatching(StoreSuite):
    """`watch`, `write_journal` and `glance`."""

    async def test_a_worker_that_is_not_watched_knows_that(self, store: Store) -> None:
        await hire(store, "w1")
        assert (await store.pulse("w1", WorkerStats(), lease=LEASE)).watched_until is None
        assert (await store.attend("w1")).watched_until is None

    async def test_a_living_worker_learns_that_it_is_watched(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        found = await store.watch([], lease=WATCH)
        assert {*found} == {WatchedWorker("w1", None, "alive", paused=False, journal=None)}
        until = clock.now() + WATCH
        assert (await store.attend("w1")).watched_until == until
        assert (await store.pulse("w1", WorkerStats(), lease=LEASE)).watched_until == until

    async def test_it_is_told_again_when_half_of_that_time_is_over(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", lease=10 * WATCH)
        await store.watch([], lease=WATCH)
        first = clock.now() + WATCH
        clock.set(clock.now() + WATCH // 2)
        await store.watch([], lease=WATCH)
        assert (await store.attend("w1")).watched_until == first
        clock.set(clock.now() + 1)
        await store.watch([], lease=WATCH)
        assert (await store.attend("w1")).watched_until == clock.now() + WATCH

    async def test_it_is_hinted_of_that(self, store: Store, other: Store) -> None:
        await hire(store, "w1")
        async with listening(other) as heard:
            await store.watch([], lease=WATCH)
            await heard(Hint("worker", "w1"))

    async def test_what_it_notes_is_read_and_hinted(self, store: Store, other: Store) -> None:
        await hire(store, "w1", "w2")
        journal = Journal(7, {"mail": {"failed": 2, "it's": 1}}, ["a", "b"], until=5)
        async with listening(other) as heard:
            await store.write_journal("w2", journal.text())
            await heard(Hint("journal"))
        noted = {worker.id: Journal.read(worker.journal) for worker in await other.watch([], lease=WATCH)}
        assert noted == {"w1": Journal(), "w2": journal}

    async def test_one_that_has_gone_is_read_only_by_those_who_know_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2", "w3")
        await store.write_journal("w1", "[1,{},[],0]")
        await store.retire("w1")
        await store.bury(["w2"])
        clock.set(clock.now() + LEASE + 1)
        found = {worker.id: (worker.state, worker.journal) for worker in await store.watch([], lease=WATCH)}
        assert found == {"w3": ("dead", None)}
        known = await store.watch(["w1", "w2", "w4"], lease=WATCH)
        found = {worker.id: (worker.state, worker.journal) for worker in known}
        assert found == {"w1": ("stopped", "[1,{},[],0]"), "w2": ("dead", None), "w3": ("dead", None)}

    async def test_one_that_is_paused_is_shown_so(self, store: Store) -> None:
        await hire(store, "w1")
        await store.pulse("w1", WorkerStats(paused_at=5), lease=LEASE)
        assert {worker.paused for worker in await store.watch([], lease=WATCH)} == {True}

    async def test_the_newest_jobs_and_those_asked_for_are_outlined_once(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first = await put(store)
        claim = await take_one(store, "w1")
        ended = clock.now() + 5
        await finish(store, claim, now=ended)
        later = [await put(store, queue="mail", delay=SECOND) for _ in range(3)]
        found = {one.id: one for one in await store.glance([first, later[2], "0" * 32], newest=2)}
        assert set(found) == {first, *later[1:]}
        assert found[later[1]].due_at == clock.now() + SECOND
        assert (found[later[1]].state, found[later[1]].queue) == (State.PENDING, "mail")
        now = clock.now()
        assert found[first] == JobOutline(
            first, claim.task, "default", State.SUCCEEDED, None, now, now, now, ended, "w1"
        )
        assert [one.id for one in await store.glance([], newest=1)] == [later[2]]
