"""A store opens on an empty database, by any number of processes at once, and lets go of everything."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance import story
from duetime.testing.conformance.kit import hire, job, put, read, take
from duetime.testing.conformance.suite import MakeStore, StoreSuite


class TestLifecycle(StoreSuite):
    """`open`, `close`, `migrate`, `uninstall`, `sibling` and `doctor`."""

    @pytest.mark.covers("cold-start-race")
    async def test_many_processes_may_open_an_empty_database_at_once(
        self, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = await asyncio.gather(*(make_store(clock, namespace="empty") for _ in range(5)))
        ids = [await put(store) for store in stores]
        for store in stores:
            assert [record.id for record in await store.get(ids)] == ids

    async def test_the_tables_have_the_version_that_the_code_needs(self, store: Store) -> None:
        status = await store.schema_status()
        assert status.found == status.wanted > 0
        assert status.pending == ()

    async def test_migrating_again_changes_nothing(self, store: Store, other: Store) -> None:
        job_id = await put(store)
        before = await store.schema_status()
        statuses = await asyncio.gather(store.migrate(), other.migrate(), store.migrate())
        assert {status.found for status in statuses} == {before.wanted}
        assert (await read(other, job_id)).id == job_id

    async def test_a_store_has_one_identity_wherever_it_is_opened_and_another_store_another(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stranger = await make_store(clock, namespace="stranger")
        assert await store.identity() == await other.identity()
        assert await stranger.identity() != await store.identity()

    async def test_an_uninstalled_store_is_as_if_it_had_never_been(
        self, store: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        await story.tell(store, clock)
        neighbours = [await make_store(clock, namespace=name) for name in ("duetime_jobs", "due")]
        kept = [await put(neighbour) for neighbour in neighbours]
        identity = await store.identity()
        foreseen = await store.uninstall(dry_run=True)
        assert sum((await store.counts()).values()) > 0
        assert await store.uninstall() == foreseen
        assert sum(foreseen.values()) > 40
        assert all(count > 0 for name, count in foreseen.items() if name.endswith(("jobs", "job:*")))
        assert (await store.schema_status()).found == 0
        assert await store.uninstall() == {}
        for neighbour, job_id in zip(neighbours, kept, strict=True):
            assert (await read(neighbour, job_id)).id == job_id
        anew = await make_store(clock)
        assert (await anew.counts(), await anew.schedules(), await anew.workers()) == ({}, [], [])
        assert await anew.identity() != identity

    async def test_closing_twice_is_harmless(self, store: Store) -> None:
        await put(store)
        await store.close()
        await store.close()

    async def test_what_was_stored_outlives_the_store(
        self, store: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        job_id = await put(store, payload="[1]")
        await store.close()
        assert (await read(await make_store(clock), job_id)).payload == "[1]"

    @pytest.mark.covers("plain-values")
    async def test_what_was_read_is_plain_and_outlives_the_store(self, store: Store) -> None:
        await hire(store, "w1")
        job_id = await put(store, payload='{"a":1}')
        (claim,) = await take(store)
        record = await read(store, job_id)
        await store.close()
        assert (claim.job_id, claim.payload, record.payload) == (job_id, '{"a":1}', '{"a":1}')
        assert msgspec.json.decode(msgspec.json.encode(record), type=type(record)) == record
        assert msgspec.json.decode(msgspec.json.encode(claim), type=type(claim)) == claim

    async def test_a_sibling_serves_another_threads_loop(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        stored = await store.enqueue([job(), job()])

        async def elsewhere() -> tuple[int, list[str]]:
            sibling = store.sibling()
            await sibling.open()
            try:
                return await sibling.now(), [claim.job_id for claim in await take(sibling, limit=1)]
            finally:
                await sibling.close()

        assert await asyncio.to_thread(asyncio.run, elsewhere()) == (clock.now(), stored[:1])
        assert [claim.job_id for claim in await take(store)] == stored[1:]

    async def test_verbs_may_be_called_at_the_same_time(self, store: Store) -> None:
        await hire(store, "w1")
        ids = await asyncio.gather(*(put(store) for _ in range(40)))
        shares = await asyncio.gather(*(take(store, limit=5) for _ in range(10)))
        claimed = [claim.job_id for share in shares for claim in share]
        claimed += [claim.job_id for claim in await take(store)]
        assert sorted(claimed) == sorted(ids)

    async def test_a_verb_that_is_cancelled_leaves_the_store_in_order(self, store: Store) -> None:
        await hire(store, "w1")
        for _ in range(10):
            batch = [job() for _ in range(50)]
            enqueuing = asyncio.create_task(store.enqueue(batch))
            await asyncio.sleep(0)
            enqueuing.cancel()
            await asyncio.gather(enqueuing, return_exceptions=True)
        job_id = await put(store, queue="after")
        assert [claim.job_id for claim in await take(store, queues=["after"])] == [job_id]
        stored = sum((await store.counts()).values()) - 1
        assert stored % 50 == 0

    async def test_the_doctor_explains_each_finding(self, store: Store) -> None:
        checks = await store.doctor()
        assert checks
        for check in checks:
            assert check.name
            assert check.detail
            assert check.ok or check.fix
