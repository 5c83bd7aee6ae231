"""Hints that say nothing are answered at once by a few workers, and by many together and less often."""

from __future__ import annotations

import asyncio

import pytest

from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.upkeep.notices import _FIRST_LOOK_DELAY, VagueHints


class Eyes:
    """Notes what was looked for."""

    def __init__(self, workers: int) -> None:
        crowd = FleetPacing()
        crowd.workers = workers
        self.seen: list[str] = []
        self.looked = asyncio.Event()
        self.hints = VagueHints(crowd, look_for_jobs=self.look_for_jobs, look_around=self.look_around)

    def look_for_jobs(self) -> None:
        self.seen.append("jobs")

    def look_around(self) -> None:
        self.seen.append("around")
        self.looked.set()


async def test_one_of_a_few_looks_for_jobs_at_once_and_around_once_for_many_hints() -> None:
    eyes = Eyes(workers=2)
    for _ in range(3):
        eyes.hints.take_hint()
    assert eyes.seen == ["jobs"] * 3
    await eyes.looked.wait()
    assert eyes.seen == ["jobs"] * 3 + ["around"]


async def test_one_of_many_looks_for_everything_once_for_many_hints() -> None:
    eyes = Eyes(workers=100)
    for _ in range(3):
        eyes.hints.take_hint()
    assert eyes.seen == []
    await eyes.looked.wait()
    assert eyes.seen == ["jobs", "around"]


@pytest.mark.parametrize(("workers", "pause"), [(1, 0.05), (9, 0.05), (16, 0.4), (1_000, 1.0)])
async def test_the_pause_between_two_looks_grows_with_the_fleet(workers: int, pause: float) -> None:
    eyes = Eyes(workers)
    eyes.hints.take_hint()
    await eyes.looked.wait()
    eyes.hints.take_hint()
    assert eyes.hints._looking is not None
    looked = eyes.hints._looked
    assert eyes.hints._looking.when() - looked == pytest.approx(max(pause, _FIRST_LOOK_DELAY), abs=0.02)
