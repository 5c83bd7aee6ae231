"""Locks have one owner at a time, by the store's clock, and fences that rise."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from duetime.model.locks import Attempt
from duetime.model.time import HOUR, SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.suite import StoreSuite

TTL = 30 * SECOND


async def take(store: Store, token: str, *, name: str = "reindex", holder: str = "someone") -> Attempt:
    """Try to take a lock."""
    return await store.take_lock(name, token=token, holder=holder, ttl=TTL)


async def owner(store: Store, name: str = "reindex") -> str | None:
    """Return the token that owns a lock."""
    found = await store.locks(name)
    return found[0].token if found else None


class TestLocks(StoreSuite):
    """`take_lock`, `renew_lock`, `release_lock`, `locks` and `forget_locks`."""

    @pytest.fixture(autouse=True)
    async def made(self, store: Store) -> None:
        """See that there are locks; it does nothing the second time."""
        await store.make_locks()
        await store.make_locks()

    async def test_a_lock_has_one_owner(self, store: Store, clock: FakeClock) -> None:
        fence, left = await take(store, "a", holder="worker 1")
        assert fence == clock.now()
        assert left == TTL
        clock.advance(10)
        assert await take(store, "b") == (None, TTL - 10 * SECOND)
        [lock] = await store.locks()
        assert lock == (
            "reindex", "a", "worker 1", fence, clock.now() - 10 * SECOND, clock.now() + 20 * SECOND, 20 * SECOND,
        )  # fmt: skip
        assert (await take(store, "b", name="other"))[0] is not None
        assert [lock.name for lock in await store.locks()] == ["other", "reindex"]

    @pytest.mark.covers("lock-expired")
    async def test_a_lock_past_its_deadline_is_taken_over(self, store: Store, clock: FakeClock) -> None:
        first, _ = await take(store, "a")
        clock.advance(30)
        second, _ = await take(store, "b")
        assert first is not None
        assert second is not None
        assert second > first
        assert await owner(store) == "b"

    async def test_a_lock_passes_from_one_token_to_another(self, store: Store, clock: FakeClock) -> None:
        first, _ = await take(store, "a")
        clock.advance(10)
        successor = partial(store.take_lock, "reindex", holder="heir", ttl=TTL)
        assert await successor(token="b", instead_of="c") == (None, TTL - 10 * SECOND)
        second, left = await successor(token="b", instead_of="a")
        assert first is not None
        assert second is not None
        assert (second > first, left) == (True, TTL)
        [lock] = await store.locks()
        assert (lock.token, lock.holder, lock.since, lock.left) == ("b", "heir", clock.now(), TTL)
        assert not await store.renew_lock("reindex", token="a", ttl=TTL)
        assert await successor(token="c", instead_of="a") == (None, TTL)

    @pytest.mark.covers("lock-takeover-race")
    async def test_one_of_many_takes_an_expired_lock_over(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        for turn in range(10):
            tries = [
                take(each, f"{turn} {n} {each is other}", name="raced")
                for n in range(4)
                for each in (store, other)
            ]
            answers = await asyncio.gather(*tries)
            assert len([fence for fence, _ in answers if fence is not None]) == 1
            clock.advance(31)

    @pytest.mark.covers("lock-released-by-others")
    async def test_only_the_owner_releases_and_only_in_time(self, store: Store, clock: FakeClock) -> None:
        await take(store, "a")
        assert not await store.release_lock("reindex", token="b")
        assert await owner(store) == "a"
        assert await store.release_lock("reindex", token="a")
        assert await owner(store) is None
        assert not await store.release_lock("reindex", token="a")
        assert not await store.release_lock("unknown", token="a")
        await take(store, "a")
        clock.advance(30)
        assert not await store.release_lock("reindex", token="a")

    @pytest.mark.covers("lock-renewed-by-others")
    async def test_only_the_owner_renews_and_only_in_time(self, store: Store, clock: FakeClock) -> None:
        await take(store, "a")
        clock.advance(20)
        assert not await store.renew_lock("reindex", token="b", ttl=HOUR)
        assert await store.renew_lock("reindex", token="a", ttl=TTL)
        clock.advance(20)
        assert await owner(store) == "a"
        clock.advance(10)
        assert not await store.renew_lock("reindex", token="a", ttl=TTL)
        assert await owner(store) is None

    async def test_a_fence_rises_with_every_owner_also_after_a_cleanup(
        self, store: Store, clock: FakeClock
    ) -> None:
        fences: list[int] = []
        for step in range(6):
            fence, _ = await take(store, str(step))
            fences.append(fence or 0)
            assert await store.release_lock("reindex", token=str(step))
            if step == 3:
                clock.advance(1)
                assert await store.forget_locks() == 1
        assert fences == sorted(set(fences))

    async def test_a_fence_rises_where_the_clock_goes_back(self, store: Store, clock: FakeClock) -> None:
        first, _ = await take(store, "a")
        await store.release_lock("reindex", token="a")
        clock.set(clock.now() - 60 * SECOND)
        assert await store.forget_locks() == 0
        second, _ = await take(store, "b")
        assert first is not None
        assert second == first + 1

    async def test_a_cleanup_leaves_what_is_held(self, store: Store, clock: FakeClock) -> None:
        await take(store, "a", name="gone")
        clock.advance(20)
        await take(store, "b", name="held")
        clock.advance(15)
        assert await store.forget_locks() == 1
        assert await store.forget_locks() == 0
        assert [lock.name for lock in await store.locks()] == ["held"]

    async def test_many_processes_may_see_to_the_locks_at_once(self, store: Store, other: Store) -> None:
        await asyncio.gather(*(each.make_locks() for each in (store, other) for _ in range(4)))
        assert (await take(other, "a"))[0] is not None
