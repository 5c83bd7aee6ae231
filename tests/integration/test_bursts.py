"""Workers that end by themselves: once nothing is due any more, or after so many jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from duetime import Scheduler, every
from duetime.model.states import State
from duetime.scheduler.task import AsyncTask
from duetime.testing import FakeClock

PATIENCE = 30
MOMENT = datetime(2030, 1, 1, tzinfo=UTC)


class Links:
    """A scheduler whose jobs enqueue the next one, and tell how many there are at once."""

    def __init__(self, url: str, clock: FakeClock | None = None) -> None:
        self.scheduler = Scheduler(url, clock=clock)
        self.ran: list[int] = []

        @self.scheduler.task(name="link", queue="chain")
        async def link(left: int) -> None:
            self.ran.append(left)
            if left:
                await self.link.enqueue(left - 1)

        self.link: AsyncTask[[int], None] = link

    async def until_it_ends(self, *, burst: bool = False, max_jobs: int | None = None) -> None:
        """Run a worker that ends by itself."""
        async with (
            asyncio.timeout(PATIENCE),
            self.scheduler.worker(burst=burst, max_jobs=max_jobs, concurrency=2) as worker,
        ):
            await worker.asked_to_stop()

    async def states(self) -> list[State]:
        return [job.state for job in await self.scheduler.jobs.list()]


async def test_a_burst_runs_what_is_due_and_what_that_makes_due_and_leaves_the_rest(store_url: str) -> None:
    links = Links(store_url)
    async with links.scheduler:
        await links.scheduler.enqueue_many([links.link.call(2) for _ in range(5)])
        later = await links.link.options(delay="1h").enqueue(0)
        await links.until_it_ends(burst=True)
        assert sorted(links.ran) == [0] * 5 + [1] * 5 + [2] * 5
        assert (await later.record()).state is State.PENDING


async def test_a_burst_that_finds_nothing_ends(store_url: str) -> None:
    links = Links(store_url)
    async with links.scheduler:
        await links.until_it_ends(burst=True)
        assert await links.states() == []


async def test_a_burst_tries_again_at_once_what_may_be_and_leaves_later_tries(store_url: str) -> None:
    links, tries = Links(store_url), list[int]()

    @links.scheduler.task(name="fail", retries=[0, 3600])
    async def fail() -> None:
        tries.append(len(tries))
        raise RuntimeError

    async with links.scheduler:
        job = await fail.enqueue()
        await links.until_it_ends(burst=True)
        assert tries == [0, 1]
        assert (await job.record()).state is State.PENDING


async def test_a_burst_fires_schedules_that_are_due(store_url: str) -> None:
    links = Links(store_url, clock := FakeClock(MOMENT))
    async with links.scheduler:
        await links.scheduler.schedules.put("hourly", every("1h"), links.link, args=(0,))
        await links.until_it_ends(burst=True)
        assert links.ran == []
        clock.advance(3600)
        await links.until_it_ends(burst=True)
        assert links.ran == [0]


@pytest.mark.parametrize("burst", [False, True])
async def test_a_worker_ends_after_as_many_jobs_as_it_may_run(store_url: str, *, burst: bool) -> None:
    links = Links(store_url)
    async with links.scheduler:
        await links.scheduler.enqueue_many([links.link.call(0) for _ in range(9)])
        await links.until_it_ends(burst=burst, max_jobs=3)
        assert len(links.ran) == 3
        assert sorted(await links.states()) == [State.PENDING] * 6 + [State.SUCCEEDED] * 3
        await links.until_it_ends(burst=True, max_jobs=100)
        assert len(links.ran) == 9
