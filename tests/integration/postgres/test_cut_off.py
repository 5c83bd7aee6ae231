"""Workers that cannot reach the database for a while, and live: nobody takes their jobs before their leases end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack

import pytest

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND
from tests.integration.kit import Fleet, FleetAt, accepted
from tests.integration.tasks import App
from tests.support import network
from tests.support.proxy import Proxy, before
from tools.servers import PostgresServer

pytestmark = pytest.mark.covers("cut-off-worker")

ELSEWHERE = "another-host/pid:[1]"
HOSTS = {"here": None, "elsewhere": ELSEWHERE}
"""On this host the process is seen to live; elsewhere there is nothing but the lease."""


async def begin(fleet: Fleet, app: App, queue: str, pid: int, gate: str) -> list[JobId]:
    """Start a job that may run again and one that must not, in the only worker of a queue."""
    jobs = [await task.options(queue=queue).enqueue(gate) for task in (app.wait_for, app.wait_for_once)]
    for job in jobs:
        await fleet.entry("start", job=job.id, pid=pid)
    return [job.id for job in jobs]


def assert_ran_once(fleet: Fleet, records: Mapping[JobId, StoredJob]) -> None:
    starts = {job_id: len(fleet.ledger.entries("start", job=job_id)) for job_id in records}
    assert set(starts.values()) == {1}
    assert {(job.state, job.crashes) for job in records.values()} == {(State.SUCCEEDED, 0)}


async def cut(proxy: Proxy, *, seconds: float) -> None:
    await asyncio.to_thread(proxy.refuse)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(proxy.accept)


async def test_a_worker_whose_connections_are_reset_and_refused_within_its_lease_keeps_its_jobs(
    postgres_url: str, fleet_at: FleetAt
) -> None:
    fleet = fleet_at(postgres_url)
    app, gate = fleet.app(), fleet.gate()
    with ExitStack() as stack:
        proxies = {seconds: stack.enter_context(before(postgres_url)) for seconds in (0.2, 1, 3, 4, 8)}
        async with app.scheduler:
            jobs: list[JobId] = []
            queues: list[str] = []
            for seconds, proxy in proxies.items():
                for host, host_key in HOSTS.items():
                    queues.append(f"{host}-{seconds}")
                    victim = await fleet.start(
                        url=proxy.url(postgres_url), host_key=host_key, queues=queues[-1:], lease=30
                    )
                    jobs += await begin(fleet, app, queues[-1], victim.pid, gate.path)
            await fleet.start(queues=queues, lease=30)
            await asyncio.gather(*(cut(proxy, seconds=seconds) for seconds, proxy in proxies.items()))
            gate.open()
            assert_ran_once(fleet, await fleet.ended(app.scheduler.store, jobs))


async def test_a_worker_that_is_slow_to_reach_a_promoted_standby_keeps_its_jobs(fleet_at: FleetAt) -> None:
    # What was acknowledged is on the standby.
    primary = PostgresServer(settings={"synchronous_standby_names": "*"})
    with (
        primary,
        PostgresServer(primary=primary) as standby,
        before(primary.url()) as slow,
        before(primary.url()) as quick,
    ):
        fleet = fleet_at(quick.url(primary.url()))
        app, gate = fleet.app(), fleet.gate()
        async with app.scheduler:
            jobs: list[JobId] = []
            for host, host_key in HOSTS.items():
                victim = await fleet.start(
                    url=slow.url(primary.url()), host_key=host_key, queues=[host], lease=30
                )
                jobs += await begin(fleet, app, host, victim.pid, gate.path)
            await fleet.start(queues=[*HOSTS, "default"], lease=30)
            for proxy in (slow, quick):
                proxy.refuse()
                proxy.lead_to(standby.url())
            primary.stop("immediate")
            standby.promote()
            quick.accept()
            await fleet.entry("start", job=await accepted(app, app.note.call()))
            await asyncio.sleep(6)
            slow.accept()
            gate.open()
            assert_ran_once(fleet, await fleet.ended(app.scheduler.store, jobs))


@pytest.mark.timeout(120)
async def test_jobs_in_a_black_hole_are_taken_over_when_their_lease_ends_and_not_before(
    fleet_at: FleetAt,
) -> None:
    with network.opened() as wire, PostgresServer(network=wire.here) as server:
        fleet = fleet_at(server.url())
        app, gate = fleet.app(), fleet.gate()
        url = f"postgresql://postgres@{wire.here.ip}:{server.port}/postgres"
        queues = [f"{host}-{lease}" for lease in (30, 60) for host in HOSTS]
        jobs: dict[str, list[JobId]] = {}
        async with app.scheduler:
            store = app.scheduler.store
            for queue in queues:
                host, _, lease = queue.partition("-")
                victim = await fleet.start(
                    url=url, network=wire.name, host_key=HOSTS[host], queues=[queue], lease=int(lease)
                )
                jobs[queue] = await begin(fleet, app, queue, victim.pid, gate.path)
            heir = await fleet.start(queues=queues, lease=30)
            wire.lose_all()
            ends = {queue: worker.lease_until for worker in await store.workers() for queue in worker.queues}

            for queue in queues[:2]:
                again, once = jobs[queue]
                taken = await fleet.entry("start", job=again, pid=heir.pid, within=60)
                [stopped] = fleet.ledger.entries("cancelled", job=again)
                failed = (await fleet.ended(store, [once]))[once]
                assert stopped.at < ends[queue] < taken.at < ends[queue] + 5 * SECOND
                assert failed.reason == "crashed"
                assert failed.finished_at is not None
                assert failed.finished_at > ends[queue]
            wire.lose_none()
            gate.open()
            kept = [job for queue in queues[2:] for job in jobs[queue]]
            assert_ran_once(fleet, await fleet.ended(store, kept))
