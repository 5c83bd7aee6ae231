"""What a hint makes the fetcher ask for."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from duetime.model.time import SECOND
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.running.slots import Slots
from duetime.stores.base import Hint
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, LastOfMany, OneJob, idle_fetcher


@pytest.mark.parametrize(("kind", "asks"), [("limits", True), ("jobs", False), ("any", False)])
def test_a_worker_without_limits_asks_for_limited_jobs_when_it_hears_of_some(
    kind: Literal["limits", "jobs", "any"], asks: bool
) -> None:
    fetcher = idle_fetcher()
    fetcher.take_hint(Hint(kind))
    assert fetcher.limited.wanted is asks


async def test_one_of_many_workers_lets_others_go_first_when_it_hears_of_jobs() -> None:
    fetcher = idle_fetcher(LastOfMany())
    fetcher.take_hint(Hint("jobs"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fetcher.wakeup.wait(None), 0.01)


async def test_a_hint_is_answered_soon_in_a_fleet_of_any_size() -> None:
    fetcher = idle_fetcher(LastOfMany())
    fetcher.take_hint(Hint("jobs"))
    await asyncio.wait_for(fetcher.wakeup.wait(None), 10)


async def test_what_was_claimed_starts_before_the_store_is_asked_what_comes_next() -> None:
    story: list[str] = []
    fetcher = idle_fetcher(store=OneJob(story), dispatcher=Busy(story), handlers={"task": HANDLER})
    await fetcher.round()
    assert story == ["claim", "job runs", "next due"]


@pytest.mark.parametrize(("hears", "sleeps"), [(True, True), (False, False)])
async def test_while_heartbeats_look_a_worker_that_hears_sleeps_until_it_is_told(
    hears: bool, sleeps: bool
) -> None:
    store = OneJob([])
    store.hears_others = hears
    assert (await idle_fetcher(store=store, watched=True)._look_ahead() is None) is sleeps


@pytest.mark.parametrize("wait", [-SECOND, 0, SECOND])
async def test_what_a_heartbeat_has_seen_is_looked_for_when_it_is_nearly_due(wait: int) -> None:
    fetcher = idle_fetcher(watched=True)
    fetcher.expect(wait)
    await asyncio.wait_for(fetcher.wakeup.wait(None), 10)


async def test_what_a_heartbeat_has_seen_is_not_looked_for_before_its_time_or_without_a_slot() -> None:
    fetcher = idle_fetcher(watched=True)
    fetcher.expect(3600 * SECOND)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fetcher.wakeup.wait(None), 0.01)
    full = idle_fetcher(watched=True, slots=Slots(0, {}))
    full.expect(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(full.wakeup.wait(None), 0.01)


@pytest.mark.parametrize(
    ("crowd", "story"), [(FleetPacing(), ["claim", "next due"]), (LastOfMany(), ["next due"])]
)
async def test_one_of_many_that_lets_others_go_first_looks_before_it_claims(
    crowd: FleetPacing, story: list[str]
) -> None:
    told: list[str] = []
    fetcher = idle_fetcher(crowd, store=OneJob(told), dispatcher=Busy([]), handlers={"task": HANDLER})
    await fetcher.round()
    told.clear()
    fetcher.take_hint(Hint("jobs"))
    await fetcher.round()
    assert told == story


async def test_while_it_is_paused_it_sleeps_although_limited_jobs_may_wait() -> None:
    fetcher = idle_fetcher()
    fetcher.pause()
    fetcher.take_hint(Hint("limits"))
    assert fetcher.limited.wanted
    assert await fetcher.round() is None
