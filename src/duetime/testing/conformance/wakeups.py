"""Who waits hears of new work, from its own process and from others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest
import pytest_asyncio

from duetime.model.job import JobEdit
from duetime.model.time import SECOND
from duetime.stores.base import Hint, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import declare, firing, hire, job, put, read_schedule, schedule, take_one
from duetime.testing.conformance.suite import StoreSuite

PATIENCE = 10
"""Far more than any store needs; a hint that is not there by then is lost."""
GRACE = 100
"""How many looks a store gets to begin to hear others."""

Heard: TypeAlias = Callable[[Hint], Awaitable[None]]


async def hears_others(store: Store) -> bool:
    """Whether a store that has begun to listen comes to hear others within a moment."""
    for _ in range(GRACE):
        if store.hears_others:
            return True
        await asyncio.sleep(0.01)
    return False


@asynccontextmanager
async def listening(store: Store) -> AsyncGenerator[Heard]:
    """Listen until the block ends; what it yields waits for a hint that covers the expected one."""
    hints: asyncio.Queue[Hint] = asyncio.Queue()
    ready = asyncio.Event()

    async def listen() -> None:
        wakeups = store.wakeups()
        ready.set()
        async for hint in wakeups:
            hints.put_nowait(hint)

    async def heard(expected: Hint) -> None:
        async with asyncio.timeout(PATIENCE):
            while (await hints.get()) not in (expected, Hint("any")):
                pass

    listener = asyncio.create_task(listen())
    try:
        await ready.wait()
        await hears_others(store)
        for _ in range(10):
            # What is said when listening begins must not pass for what the test waits for.
            await asyncio.sleep(0)
        while not hints.empty():
            hints.get_nowait()
        yield heard
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


class TestWakeups(StoreSuite):
    """`wakeups`."""

    @pytest_asyncio.fixture(params=["the same store", "another store"])
    async def speaker(self, request: pytest.FixtureRequest, store: Store, other: Store) -> Store:
        """The store that does something, while `store` listens.

        Where others cannot be heard, as through some poolers, workers poll; a store's own hints arrive all the same.
        """
        if request.param == "the same store":
            return store
        async with listening(store):
            return other if store.hears_others else store

    async def test_an_enqueued_job_is_heard_of(self, store: Store, speaker: Store) -> None:
        async with listening(store) as heard:
            await put(speaker)
            await heard(Hint("jobs"))

    async def test_a_released_lock_is_heard_of(self, store: Store, speaker: Store) -> None:
        await speaker.make_locks()
        await speaker.take_lock("reindex", token="a", holder="someone", ttl=SECOND)
        async with listening(store) as heard:
            assert await speaker.release_lock("reindex", token="a")
            await heard(Hint("lock", "reindex"))

    async def test_a_job_that_a_sibling_enqueues_in_another_threads_loop_is_heard_of(
        self, store: Store
    ) -> None:
        async def elsewhere() -> None:
            sibling = store.sibling()
            await sibling.open()
            try:
                await put(sibling)
            finally:
                await sibling.close()

        async with listening(store) as heard:
            await asyncio.to_thread(asyncio.run, elsewhere())
            await heard(Hint("jobs"))

    async def test_a_job_that_is_due_soon_is_heard_of(self, store: Store, speaker: Store) -> None:
        async with listening(store) as heard:
            await put(speaker, delay=SECOND)
            await heard(Hint("jobs"))

    async def test_a_job_that_is_to_run_sooner_is_heard_of(self, store: Store, speaker: Store) -> None:
        job_id = await put(store, delay=3600 * SECOND)
        async with listening(store) as heard:
            await speaker.edit([job_id], JobEdit(delay=0))
            await heard(Hint("jobs"))

    async def test_a_fired_schedule_is_heard_of(self, store: Store, speaker: Store, clock: FakeClock) -> None:
        await declare(store, schedule("s", next_at=clock.now(), fired_through=clock.now() - 1))
        plan = firing(await read_schedule(store, "s"), next_at=None)
        async with listening(store) as heard:
            await speaker.fire([plan])
            await heard(Hint("jobs"))

    async def test_the_worker_of_a_job_to_be_cancelled_hears_of_it(
        self, store: Store, speaker: Store
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        async with listening(store) as heard:
            await speaker.cancel([claim.job_id], reason="off")
            await heard(Hint("worker", "w1"))

    async def test_the_worker_that_loses_a_job_hears_of_it_and_so_do_others(
        self, store: Store, speaker: Store
    ) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        async with listening(store) as heard, listening(store) as also_heard:
            await speaker.release([claim.job_id], force=True)
            await heard(Hint("worker", "w1"))
            await also_heard(Hint("jobs"))

    async def test_a_declared_schedule_is_heard_of(
        self, store: Store, speaker: Store, clock: FakeClock
    ) -> None:
        async with listening(store) as heard:
            await declare(speaker, schedule("s", next_at=clock.now(), fired_through=0))
            await heard(Hint("schedules"))

    async def test_a_new_worker_is_heard_of(self, store: Store, speaker: Store) -> None:
        async with listening(store) as heard:
            await hire(speaker, "w1")
            await heard(Hint("workers"))

    async def test_a_resumed_queue_is_heard_of(self, store: Store, speaker: Store) -> None:
        await store.pause_queue("default", reason=None)
        await put(store)
        async with listening(store) as heard:
            await speaker.resume_queue("default")
            await heard(Hint("jobs"))

    async def test_hints_keep_coming(self, store: Store, speaker: Store) -> None:
        async with listening(store) as heard:
            for _ in range(5):
                await put(speaker)
                await heard(Hint("jobs"))

    async def test_several_listeners_all_hear(self, store: Store, speaker: Store) -> None:
        async with listening(store) as first, listening(store) as second:
            await speaker.enqueue([job(), job()])
            await first(Hint("jobs"))
            await second(Hint("jobs"))

    async def test_a_listener_can_leave_and_come_back(self, store: Store, speaker: Store) -> None:
        for _ in range(2):
            async with listening(store) as heard:
                await put(speaker)
                await heard(Hint("jobs"))
