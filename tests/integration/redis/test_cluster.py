"""A store keeps its namespace on one primary of a cluster, whichever member it was told of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.states import State
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import finish, hire, job, put, read, take_one
from tests.integration.kit import FleetAt, accepted
from tests.integration.redis.cluster import Cluster, servers, slot_of
from tests.integration.redis.kit import check, follows, lives_and_is_heard_of, opened, tell
from tools.servers.process import HOST, free_port


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three primaries."""
    with servers(3) as members:
        cluster = Cluster(members)
        asyncio.run(cluster.form())
        yield cluster


async def test_whichever_member_is_named_first_the_namespace_is_kept_by_one_and_every_primary_is_examined(
    cluster: Cluster,
) -> None:
    other = next(member for member in cluster.members if member is not cluster.owner())
    nobody = f"{HOST}:{free_port()}"
    await lives_and_is_heard_of(f"redis+cluster://{nobody},{other.place}")
    sizes = {member: await tell(member, "DBSIZE") for member in cluster.members}
    assert {member for member, size in sizes.items() if size} == {cluster.owner()}

    await tell(other, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    async with opened(cluster.url()) as store:
        found = await check(store, "eviction")
    assert not found.ok
    assert other.place in found.detail


async def test_a_namespace_is_uninstalled_on_the_one_that_keeps_it(cluster: Cluster) -> None:
    async with opened(cluster.url()) as store:
        for _ in range(3):
            await put(store)
        assert (await store.uninstall())["{duetime}:job:*"] >= 3
    assert [await tell(member, "DBSIZE") for member in cluster.members] == [0, 0, 0]


async def test_more_calls_than_connections_wait_for_each_other(cluster: Cluster) -> None:
    async with opened(cluster.url(pool=2)) as store:
        stored = await asyncio.gather(*(store.enqueue([job()]) for _ in range(100)))
        assert len(await store.get([id_ for ids in stored for id_ in ids])) == 100


async def test_while_the_keys_are_moved_calls_are_refused_and_afterwards_all_is_where_it_went() -> None:
    with servers(2) as members:
        cluster, slot = Cluster(members), slot_of()
        await cluster.form()
        source = cluster.owner()
        (target,) = set(members) - {source}
        async with opened(cluster.url()) as store:
            await hire(store, "w1")
            job_id = await put(store)
            claim = await take_one(store)
            await cluster.begin_to_move(slot, source, target)
            with pytest.raises(StoreUnavailable, match="moves our keys"):
                await put(store)
            with pytest.raises(StoreUnavailable, match="moves our keys"):
                await store.counts()
            assert await tell(target, "DBSIZE") == 0
            await cluster.move(slot, source, target)
            assert await finish(store, claim, now=await store.now()) == {claim.token}
            assert (await read(store, job_id)).state is State.SUCCEEDED
            await put(store)
            assert await tell(source, "DBSIZE") == 0


async def test_a_cluster_that_cannot_be_reached_is_told_as_such() -> None:
    with pytest.raises(StoreUnavailable, match="cannot serve us"):
        await open_store(f"redis+cluster://{HOST}:{free_port()}").open()


@pytest.mark.covers("lagging-replica")
async def test_workers_go_on_when_a_replica_takes_the_place_of_their_primary(fleet_at: FleetAt) -> None:
    with servers(4) as (*members, replica):
        cluster = Cluster(members)
        await cluster.form(mortal=True)
        await cluster.follow(replica, cluster.owner())
        fleet = fleet_at(cluster.url())
        app, gate = fleet.app(), fleet.gate()
        async with app.scheduler:
            worker = await fleet.start()
            running = await app.wait_for.enqueue(gate.path)
            await fleet.entry("start", job=running.id)
            await follows(replica, cluster.owner())
            await asyncio.to_thread(cluster.owner().kill)
            gate.open()
            later = await accepted(app, app.note.call())
            records = await fleet.ended(app.scheduler.store, [running.id, later])

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}
    assert records[running.id].result == str(worker.pid)
    assert len(fleet.ledger.entries("start", job=running.id)) == 1
