"""A Redis whose disk or memory is full: what runs can end as soon as that is possible, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.states import State
from tests.integration.kit import FleetAt, accepted, until
from tests.integration.redis.kit import check, tell
from tests.integration.tasks import App
from tools.servers import RedisServer


@contextmanager
def full_disk(server: RedisServer) -> Iterator[None]:
    """Let no file of the server grow."""
    server.bound_files(1)
    try:
        yield
    finally:
        server.bound_files(None)


async def enqueued_until_refused(app: App) -> list[JobId]:
    """Return what a server has accepted before it found that its disk is full; it will write that later."""
    ids: list[JobId] = []
    while True:
        try:
            ids.append((await app.note.enqueue()).id)
        except StoreUnavailable as refused:
            assert "cannot write to its disk" in str(refused)  # noqa: PT017 - what came before it counts
            return ids


@pytest.mark.covers("full-store")
async def test_with_a_full_disk_changes_are_refused_and_made_when_there_is_room(
    own_redis: RedisServer, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(own_redis.url())
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start()
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        with full_disk(own_redis):
            ids = [running.id, *await enqueued_until_refused(app)]
            found = await check(store, "disk")
            assert not found.ok
            assert found.fix
            gate.open()
            await fleet.entry("end", job=running.id)
            await until(lambda: "cannot write to its disk" in worker.log, what="a word about it")
        ids.append(await accepted(app, app.note.call()))
        records = await fleet.ended(store, ids)
        assert (await check(store, "disk")).ok

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}
    assert len(fleet.ledger.entries("start", job=running.id)) == 1


@pytest.mark.covers("full-store")
async def test_with_full_memory_what_runs_ends_and_nothing_starts_until_there_is_room(
    own_redis: RedisServer, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(own_redis.url())
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(concurrency=1)
        running, waiting = await app.wait_for.enqueue(gate.path), await app.note.enqueue()
        await fleet.entry("start", job=running.id)
        await tell(own_redis, "CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="no memory left"):
            await app.note.enqueue()
        found = await check(store, "memory")
        assert not found.ok
        assert found.fix
        gate.open()
        await fleet.ended(store, [running.id])
        await until(lambda: "no memory left" in worker.log, what="a word about it")
        assert (await store.get([waiting.id]))[0].state is State.PENDING
        await tell(own_redis, "CONFIG", "SET", "maxmemory", "0")
        records = await fleet.ended(store, [running.id, waiting.id])

    assert {(r.state, r.crashes) for r in records.values()} == {(State.SUCCEEDED, 0)}
