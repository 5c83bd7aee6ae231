from __future__ import annotations

import asyncio
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from duetime import Scheduler
from duetime.locks import DistributedLock, open_lock
from duetime.stores.open import open_store


async def test_a_lock_of_a_scheduler_is_the_one_that_its_url_names(store_url: str) -> None:
    async with Scheduler(store_url) as scheduler:
        lock = scheduler.lock("reindex", ttl=30)
        assert await lock.acquire()
        [owner] = await scheduler.locks.list()
        assert (owner.name, owner.fence) == ("reindex", lock.fence)
        assert not await open_lock(store_url, "reindex").acquire(timeout=0)
        assert await scheduler.locks.release("reindex")
        assert not await scheduler.locks.release("reindex")
        left_behind = scheduler.sync.lock("reindex")
        assert await asyncio.to_thread(left_behind.acquire, 0)
        assert not await lock.renew()
        [successor] = await scheduler.locks.list()
        assert successor.fence > owner.fence
    # Closed with the scheduler, and open again with the next use.
    assert await scheduler.locks.cleanup() == 0
    assert await scheduler.locks.release("reindex")
    assert await scheduler.locks.cleanup() == 1
    # Else it is renewed in ten seconds, by a connection that no one closes.
    assert not await asyncio.to_thread(left_behind.renew)
    await scheduler.locks.close()


async def test_locks_may_be_kept_elsewhere(store_url: str, tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path}"
    async with Scheduler(store_url, locks=elsewhere) as scheduler, scheduler.lock("reindex"):
        assert not await open_lock(elsewhere, "reindex").acquire(timeout=0)
        assert await open_lock(store_url, "reindex").acquire(timeout=0, renew=False)


async def test_a_lock_makes_its_own_table_and_nothing_else(store_url: str) -> None:
    lock = open_lock(store_url, "reindex", namespace="bare")
    async with lock:
        assert lock.held
    store = open_store(store_url, namespace="bare", auto_migrate=False)
    await store.open(check=False)
    assert (await store.schema_status()).found == 0
    await store.close()


def _child(lock: DistributedLock, said: Connection) -> None:
    said.send((lock.held, lock.sync.release(), lock.sync.acquire(timeout=0)))


def test_a_forked_child_does_not_hold_the_locks_of_its_parent(tmp_path: Path) -> None:
    lock = open_lock(f"file://{tmp_path}", "reindex", ttl=1)
    with lock.sync as held:
        context = multiprocessing.get_context("fork")
        hear, say = context.Pipe()
        child = context.Process(target=_child, args=(lock, say))
        child.start()
        assert hear.recv() == (False, False, False)
        child.join()
        assert held.renew()
