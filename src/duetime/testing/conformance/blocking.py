"""A thread that may wait stores jobs as an event loop does, or is told that it takes one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from duetime.errors import KeyTaken
from duetime.model.job import JobId, Key, NewJob
from duetime.model.stored.audit import AuditEntry
from duetime.stores.base import Hint, JobFilter, Store
from duetime.testing.conformance.kit import job, put
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening

CALLERS = 8
JOBS = 20


async def put_blocking(
    store: Store, *jobs: NewJob, entries: Sequence[AuditEntry] = ()
) -> Sequence[JobId] | None:
    """Store jobs from another thread."""
    return await asyncio.to_thread(store.enqueue_blocking, jobs, entries=entries)


async def stored(store: Store) -> list[JobId]:
    """Return the ids of all jobs, in order."""
    return sorted(found.id for found in await store.find(JobFilter(limit=1_000)))


class TestBlocking(StoreSuite):
    """`enqueue_blocking`."""

    async def test_jobs_are_stored_in_their_order_or_none_is_and_the_caller_is_told(
        self, store: Store
    ) -> None:
        asked = [job(), job(priority=1), job(key=Key(value="k"))]
        ids = await put_blocking(store, *asked)
        assert ids is None or ids == [one.id for one in asked]
        assert await stored(store) == sorted(ids or [])

    async def test_nothing_is_stored_by_an_empty_batch(self, store: Store) -> None:
        assert await put_blocking(store) == []

    async def test_a_key_that_is_taken_is_told_of(self, store: Store) -> None:
        key = Key(value="k", if_exists="raise")
        first = await put(store, key=key)
        entry = AuditEntry(verb="trigger", target="s", who="ann")
        with contextlib.suppress(KeyTaken):
            assert await put_blocking(store, job(), job(key=key), entries=[entry]) is None
        assert await stored(store) == [first]
        assert await store.entries("s", limit=9) == []

    async def test_what_is_stored_is_heard_of_by_all(self, store: Store, other: Store) -> None:
        async with listening(store) as heard, listening(other) as also_heard:
            if await put_blocking(store, job()) is not None:
                await heard(Hint("jobs"))
                if other.hears_others:
                    await also_heard(Hint("jobs"))

    async def test_many_threads_beside_an_event_loop_store_each_job_once(self, store: Store) -> None:
        def call() -> list[JobId]:
            return [job_id for _ in range(JOBS) for job_id in store.enqueue_blocking([job()]) or ()]

        async def await_() -> list[JobId]:
            return [await put(store) for _ in range(JOBS)]

        found = await asyncio.gather(*(asyncio.to_thread(call) for _ in range(CALLERS)), await_())
        assert await stored(store) == sorted(job_id for ids in found for job_id in ids)
