"""What many idle workers ask of one database: of all but heartbeats, together not much more than a few."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from benchmarks.statements import Sent, tapped
from duetime import Scheduler
from duetime.scheduler.task import AsyncTask
from tools.servers import Postgres, PostgresServer

LEASE = 12
"""So long that no heartbeat goes unanswered, and makes its worker look around, while the machine stalls for seconds."""
BEATS = 2
"""How many heartbeats of each worker are watched."""
LOOKS = 15
"""Looks at each other in a second that a fleet may make: alone, each worker makes more than one."""
SWEEPS = 3 * 30 / LEASE
"""Sweeps in a second that a fleet may make: thirty in a lease, and some jitter."""


class Fleet:
    """Workers in one loop, each with a scheduler and connections of its own, and what each of them sends."""

    def __init__(self) -> None:
        self.sent: list[list[Sent]] = []
        self.ran = asyncio.Event()
        self.tasks: list[AsyncTask[[], None]] = []

    async def hire(self, url: str, stack: AsyncExitStack) -> None:
        scheduler = Scheduler(url)

        @scheduler.task(name="run")
        async def run() -> None:
            self.ran.set()

        self.tasks.append(run)
        await stack.enter_async_context(scheduler)
        self.sent.append(tapped(scheduler.store))
        await stack.enter_async_context(scheduler.worker(lease=LEASE, retention=None))

    def counts(self) -> Counter[str]:
        return Counter(name for each in self.sent for _, _, name in each)

    def listen_anew(self) -> None:
        for each in self.sent:
            each.clear()

    async def beats(self, times: int) -> None:
        """Wait until every worker has sent so many heartbeats."""
        async with asyncio.timeout(50):
            while any(sum(name == "pulse" for _, _, name in each) < times for each in self.sent):  # noqa: ASYNC110 - sent by threads
                await asyncio.sleep(0.01)


@asynccontextmanager
async def fleet_of(workers: int, url: str) -> AsyncIterator[Fleet]:
    """Hire workers, and wait until each knows how many they are."""
    fleet = Fleet()
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            await fleet.hire(url, stack)
        fleet.listen_anew()
        await fleet.beats(1)
        yield fleet


@pytest.fixture(scope="module")
def roomy(postgres: Postgres) -> Iterator[PostgresServer]:
    """A PostgreSQL with room for the connections of a large fleet."""
    with PostgresServer(fsync=False, max_connections=500) as server:
        yield server


async def rates_of(workers: int, url: str) -> dict[str, float]:
    """Return how many statements of each name an idle fleet sends in a second."""
    async with fleet_of(workers, url) as fleet:
        fleet.listen_anew()
        began = time.monotonic()
        await fleet.beats(BEATS)
        took = time.monotonic() - began
        return {name: count / took for name, count in fleet.counts().items()}


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize("workers", [4, 16, 64])
async def test_the_workers_of_a_fleet_look_at_each_other_and_sweep_in_turn(
    workers: int, roomy: PostgresServer
) -> None:
    rates = await rates_of(workers, roomy.create_database(f"fleet{workers}"))
    assert rates.get("peers", 0) < LOOKS
    assert rates.get("forsaken", 0) < SWEEPS
    beats = rates.pop("pulse")
    assert rates.keys() <= {"peers", "forsaken", "code_schedules"}, f"beside {beats} heartbeats: {rates}"


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize("workers", [4, 16])
async def test_on_sqlite_the_heartbeats_of_a_fleet_do_not_make_everybody_look_around(
    workers: int, sqlite_url: str
) -> None:
    rates = await rates_of(workers, sqlite_url)
    # Every one of them could answer every heartbeat of every other.
    assert rates.get("next_due", 0) <= 3 * workers
    assert rates.get("due_schedules", 0) <= 3 * workers
    assert rates.get("peers", 0) < LOOKS


@pytest.mark.covers("fleet-storm")
async def test_a_job_makes_every_idle_worker_look_and_a_few_claim(roomy: PostgresServer) -> None:
    async with fleet_of(64, roomy.create_database("asked")) as fleet:
        fleet.listen_anew()
        await fleet.tasks[0].enqueue()
        await fleet.ran.wait()
        await fleet.beats(BEATS)
        names = fleet.counts()
    # A sixth of them draw so short a moment that they are among the first.
    assert 1 <= names["claim"] < 64 / 2
    assert names["next_due"] <= 3 * 64
