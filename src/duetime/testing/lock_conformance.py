"""The suite that defines a lock: subclass `LockSuite` in a test module, and give it the fixture `make_lock`.

Time is real in it, since a lock has its deadline by the clock of what it is kept in.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Protocol

import pytest

from duetime.errors import LockLost, LockMisused, LockNotAcquired
from duetime.locks import DistributedLock
from duetime.model.job import Token

_PATIENCE = 30
"""Seconds after which a test fails that waits for what must come."""


class MakeLock(Protocol):
    """Makes locks that are kept in one place: the same name is the same lock."""

    def __call__(self, name: str, *, ttl: float = 30, timeout: float | None = None) -> DistributedLock:
        """Return a lock that is not held."""
        ...


async def take(lock: DistributedLock, token: str) -> int | None:
    """Take a lock as a process does that then falls silent: no one renews it."""
    return (await lock.try_take(token=token, holder="silent")).fence


async def lose(lock: DistributedLock) -> None:
    """Have a lock that is held end, as if it had been taken over, without its owner knowing."""
    owner = await lock.owner()
    assert owner is not None
    assert await lock.try_release(token=owner.token)


class LockSuite:
    """What every lock does."""

    pytestmark = pytest.mark.asyncio

    async def test_one_owner_at_a_time(self, make_lock: MakeLock) -> None:
        first, second = make_lock("reindex"), make_lock("reindex")
        assert await first.acquire()
        assert (first.held, second.held) == (True, False)
        assert not await second.acquire(timeout=0)
        assert not await asyncio.create_task(second.acquire(timeout=0.05))
        async with make_lock("other", timeout=0):
            assert await first.release()
        assert await second.acquire(timeout=0)
        assert second.fence > first.fence
        assert await second.release()

    async def test_a_release_lets_the_next_one_in(self, make_lock: MakeLock) -> None:
        first, second = make_lock("reindex"), make_lock("reindex")
        assert await first.acquire()
        waiting = asyncio.create_task(second.acquire(timeout=_PATIENCE))
        assert await first.release()
        assert await waiting
        assert await second.release()

    @pytest.mark.covers("lock-released-by-others")
    async def test_only_the_owner_releases_or_renews(self, make_lock: MakeLock) -> None:
        first, second = make_lock("reindex"), make_lock("reindex")
        assert await first.acquire()
        assert not await second.release()
        assert not await second.renew()
        assert not await second.try_release(token="another")
        assert not await second.try_extend(token="another")
        assert await first.renew()
        assert await first.release()
        assert not await first.release()
        assert not await first.renew()

    async def test_the_owner_is_told(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=30)
        assert await lock.owner() is None
        async with lock:
            owner = await make_lock("reindex").owner()
            assert owner is not None
            assert (owner.name, owner.fence) == ("reindex", lock.fence)
            assert str(os.getpid()) in owner.holder
            assert 25 < (owner.deadline - owner.since).total_seconds() < 35
        assert await lock.owner() is None

    @pytest.mark.covers("lock-expired")
    async def test_a_lock_is_taken_over_after_its_deadline(self, make_lock: MakeLock) -> None:
        silent, successor = make_lock("reindex", ttl=0.2), make_lock("reindex")
        began = time.monotonic()
        first = await take(silent, "silent")
        assert first is not None
        assert await successor.acquire(timeout=_PATIENCE)
        assert time.monotonic() - began > 0.19
        assert successor.fence > first
        assert not await silent.try_extend(token="silent")
        assert not await silent.try_release(token="silent")
        owner = await silent.owner()
        assert owner is not None
        assert owner.fence == successor.fence
        assert await successor.release()

    @pytest.mark.covers("lock-takeover-race")
    async def test_one_of_many_takes_an_expired_lock_over(self, make_lock: MakeLock) -> None:
        last, silent, takers = 0, make_lock("reindex", ttl=0.1), [make_lock("reindex") for _ in range(4)]
        for turn in range(5):
            expired = await take(silent, f"{turn}")
            assert expired is not None
            won: list[tuple[str, int]] = []
            while not won:
                tokens = [f"{turn} {n}" for n in range(len(takers))]
                tries = zip(takers, tokens, strict=True)
                answers = await asyncio.gather(
                    *(t.try_take(token=token, holder="taker") for t, token in tries)
                )
                won = [
                    (token, a.fence) for token, a in zip(tokens, answers, strict=True) if a.fence is not None
                ]
            [(token, fence)] = won
            assert last < expired < fence
            last = fence
            assert await silent.try_release(token=token)

    async def test_a_lock_passes_from_one_token_to_another(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex")
        first = await take(lock, "first")
        assert first is not None
        assert (await lock.try_take(token="second", holder="heir", instead_of="none")).fence is None
        second = (await lock.try_take(token="second", holder="heir", instead_of="first")).fence
        assert second is not None
        assert second > first
        assert not await lock.try_extend(token="first")
        assert not await lock.try_release(token="first")
        assert await lock.try_release(token="second")

    async def test_a_job_has_the_lock_of_its_earlier_claim(self, make_lock: MakeLock) -> None:
        earlier, other, later = make_lock("reindex", ttl=0.6), make_lock("reindex"), make_lock("reindex")
        lost = threading.Event()
        assert not await earlier.acquire_for_job(Token("a", 1, "x"), caller=1, on_loss=lost.set)
        assert await other.acquire_for_job(Token("b", 7, "y"), caller=2, on_loss=lost.set)
        assert not await later.acquire_for_job(Token("a", 3, "z"), caller=3, on_loss=lambda: None)
        assert later.fence > earlier.fence
        assert await asyncio.to_thread(lost.wait, _PATIENCE)
        # A claim that was lost before it had the lock comes too late.
        assert await earlier.acquire_for_job(Token("a", 2, "x"), caller=1, on_loss=lambda: None)
        assert await later.release()

    async def test_a_lock_that_is_not_renewed_ends_at_its_deadline(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=0.5)
        assert await lock.acquire(timeout=0, renew=False)
        async with make_lock("reindex", timeout=_PATIENCE):
            assert (await lock.renew(), await lock.release()) == (False, False)

    async def test_a_lock_that_is_used_does_not_run_out(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=1.5)
        async with lock:
            owner = await lock.owner()
            assert owner is not None
            until = owner.deadline
            while owner is not None and owner.deadline <= until:
                owner = await lock.owner()
            assert owner is not None
            # Not even while the event loop is blocked.
            time.sleep(2)  # noqa: ASYNC251 -- it is
            assert await lock.renew()

    async def test_a_fence_rises_with_every_owner_also_after_a_cleanup(self, make_lock: MakeLock) -> None:
        fences: list[int] = []
        for turn in range(6):
            lock = make_lock("reindex")
            async with lock:
                fences.append(lock.fence)
            if turn == 3:
                await lock.cleanup()
        assert fences == sorted(set(fences))

    async def test_a_loss_cancels_the_block_and_is_raised(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=0.3)

        async def work() -> None:
            async with lock:
                await lose(lock)
                await asyncio.Event().wait()

        with pytest.raises(LockLost, match="reindex"):
            await asyncio.wait_for(work(), _PATIENCE)
        assert lock.lost.is_set()
        assert (await lock.renew(), await lock.release()) == (False, False)
        async with lock:
            assert not lock.lost.is_set()

    async def test_a_loss_is_told_at_the_end_of_a_block_that_did_not_wait(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex")

        async def work() -> None:
            async with lock:
                await lose(lock)

        with pytest.raises(LockLost):
            await work()

    @pytest.mark.covers("lock-left-behind")
    async def test_another_cancellation_stays_one(self, make_lock: MakeLock) -> None:
        lock, entered = make_lock("reindex"), asyncio.Event()

        async def stay() -> None:
            async with lock:
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(stay())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await lock.owner() is None

    @pytest.mark.covers("lock-left-behind")
    async def test_a_release_that_is_given_up_takes_place_all_the_same(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=3_600)
        for turns in range(4):
            assert await lock.acquire(timeout=_PATIENCE)
            releasing = asyncio.create_task(lock.release())
            for _ in range(turns):
                await asyncio.sleep(0)
            releasing.cancel()
            await asyncio.wait([releasing])
            if not turns:
                # It had not begun.
                assert await lock.release()

    @pytest.mark.covers("lock-left-behind")
    async def test_a_block_that_fails_releases(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex")
        with pytest.raises(ZeroDivisionError):
            async with lock:
                _ = 1 // 0
        assert await lock.owner() is None

    async def test_who_gives_up_waiting_does_not_have_it(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex")
        async with lock:
            waiting = asyncio.create_task(make_lock("reindex").acquire())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert await lock.owner() is None

    @pytest.mark.covers("lock-contended-block")
    async def test_a_block_that_cannot_begin_in_time(self, make_lock: MakeLock) -> None:
        async with make_lock("reindex"):
            late = make_lock("reindex", timeout=0)
            with pytest.raises(LockNotAcquired, match="reindex"):
                async with late:
                    raise AssertionError
            assert issubclass(LockNotAcquired, TimeoutError)

    @pytest.mark.covers("lock-contended-block")
    async def test_a_task_does_not_wait_for_itself(self, make_lock: MakeLock) -> None:
        async with make_lock("reindex"):
            with pytest.raises(LockMisused, match="would wait for itself"):
                await make_lock("reindex").acquire(timeout=5)

    async def test_there_is_no_fence_before_the_first_owner(self, make_lock: MakeLock) -> None:
        with pytest.raises(LockMisused, match="no fence"):
            _ = make_lock("reindex").fence

    async def test_code_without_a_loop_has_the_same_lock(self, make_lock: MakeLock) -> None:
        def work() -> int:
            with make_lock("reindex").sync as held:
                assert held.held
                assert held.renew()
                assert not make_lock("reindex").sync.acquire(timeout=0)
                owner = held.owner()
                assert owner is not None
                assert owner.fence == held.fence
                with pytest.raises(LockMisused):
                    make_lock("reindex").sync.acquire()
            assert held.cleanup() >= 0
            return held.fence

        fence = await asyncio.to_thread(work)
        lock = make_lock("reindex")
        assert await lock.acquire(timeout=0)
        assert lock.fence > fence
        assert await lock.release()

    async def test_a_thread_is_told_of_a_loss(self, make_lock: MakeLock) -> None:
        lock = make_lock("reindex", ttl=0.3)

        def work() -> None:
            with lock.sync as held:
                asyncio.run(lose(lock))
                assert held.lost.wait(_PATIENCE)

        with pytest.raises(LockLost):
            await asyncio.to_thread(work)
