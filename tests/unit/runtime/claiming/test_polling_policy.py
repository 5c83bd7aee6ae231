"""How long a worker waits that nobody tells anything, or that others are faster than."""

from __future__ import annotations

import pytest

from duetime.model.job import Claim
from duetime.model.time import Instant
from duetime.runtime.pacing import FleetPacing
from duetime.stores.base import ClaimRequest, Hint, NextDue
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, LastOfMany, OneJob, idle_fetcher


@pytest.mark.parametrize(
    ("workers", "hears", "seconds"),
    [(1, True, 10), (100, True, 20), (1_000, True, 60), (1, False, 0.25), (100, False, 1), (1_000, False, 2)],
)
async def test_the_workers_of_a_fleet_that_have_nothing_to_do_look_for_jobs_in_turn(
    workers: int, hears: bool, seconds: float
) -> None:
    store, crowd = OneJob([]), FleetPacing()
    store.hears_others, crowd.workers = hears, workers
    fetcher = idle_fetcher(crowd, store=store)
    pause = await fetcher._look_ahead()
    assert pause is not None
    assert 0.8 * seconds <= pause <= 1.2 * seconds


class Snatched:
    """A store whose jobs are always taken by others between the look and the claim."""

    hears_others = True
    due_at: Instant | None = 0

    async def claim(self, _demand: ClaimRequest) -> list[Claim]:
        return []

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        return NextDue(now=0, due_at=self.due_at)


async def test_who_has_lost_many_races_and_hears_of_another_job_claims_it_as_soon_as_it_sees_it() -> None:
    store = Snatched()
    fetcher = idle_fetcher(LastOfMany(), store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    pauses = [await fetcher.round() for _ in range(10)]
    assert pauses[-1] == 0.5, "claims that keep coming back empty are spaced out"
    store.due_at = None
    await fetcher.round()
    fetcher.take_hint(Hint("jobs"))
    store.due_at = 0
    assert await fetcher.round() == 0
