"""What a client puts when its time is up."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.peers.systems.base import Client, Job
from benchmarks.peers.systems.inside import enqueue


class Shelf(Client):
    """Keeps what is put, and puts the clock forward with each job."""

    def __init__(self, *, pauses: bool) -> None:
        self.numbers: list[int] = []
        self.now = 0.0
        self._pauses = pauses

    async def put(self, job: Job) -> None:
        self.numbers.append(job.number)
        self.now += 1
        if self._pauses:
            await asyncio.sleep(0)

    async def put_at(self, job: Job) -> None:
        await self.put(job)


@pytest.mark.parametrize("mode", ["single", "awaited", "at_once"])
@pytest.mark.parametrize("pauses", [True, False], ids=["asynchronous", "blocking"])
async def test_what_is_put_until_the_time_is_up_are_the_first_numbers(
    mode: str, pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(pauses=pauses)
    monkeypatch.setattr("benchmarks.peers.systems.inside.time.perf_counter", lambda: shelf.now)
    answer = await enqueue(shelf, mode=mode, count=1_000, seconds=50.0, origin=7)
    assert 50 < answer["count"] < 100
    assert sorted(shelf.numbers) == list(range(7, 7 + answer["count"]))
