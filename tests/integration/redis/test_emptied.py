"""A Redis that somebody empties under a running worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.integration.kit import FleetAt, accepted, until
from tests.integration.redis.kit import check, tell
from tools.servers import RedisServer


@pytest.fixture
def forgetful_redis() -> Iterator[RedisServer]:
    """A Redis that loses everything when it ends."""
    with RedisServer("--appendonly", "no") as server:
        yield server


async def empty(server: RedisServer, how: str) -> None:
    """Lose all that a server has."""
    if how == "by command":
        await tell(server, "FLUSHALL")
    else:
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)


@pytest.mark.covers("emptied-store")
@pytest.mark.parametrize("how", ["by command", "by a restart"])
async def test_a_worker_registers_anew_says_so_and_goes_on_with_what_its_code_declares(
    forgetful_redis: RedisServer, fleet_at: FleetAt, how: str
) -> None:
    fleet = fleet_at(forgetful_redis.url())
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        store = app.scheduler.store
        worker = await fleet.start(lease="1500ms", ticking=True)
        running = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=running.id)
        await empty(forgetful_redis, how)

        await until(lambda: "was emptied" in worker.log, what=lambda: f"a word about it in\n{worker.log}")
        assert "registers anew" in worker.log
        await fleet.entry("cancelled", job=running.id)
        ids = [await accepted(app, call) for call in (app.note.call(), app.serve.call(1), app.serve.call(1))]
        await fleet.ended(store, ids)
        before = len([entry for entry in fleet.ledger.entries("start") if entry.task == "tick"])
        await until(
            lambda: len([e for e in fleet.ledger.entries("start") if e.task == "tick"]) > before,
            what=lambda: f"a schedule that is declared again\n{worker.log}",
        )
        assert (await check(store, "schema")).ok
        assert await store.get([running.id]) == []
