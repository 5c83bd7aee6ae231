"""When a slot that comes free makes the fetcher ask for jobs."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.job import Claim
from duetime.model.time import SECOND
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.running.slots import Slots
from duetime.stores.base import ClaimRequest
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, Later, idle_fetcher, is_woken
from tests.unit.runtime.kit import claim


async def woken_by_a_free_slot(fetcher: Fetcher) -> bool:
    """Whether a slot that comes free after a round makes for another one."""
    fetcher.wakeup.clear()
    await fetcher.round()
    fetcher.slot_freed()
    return await is_woken(fetcher)


@pytest.mark.parametrize("due_in", [None, 1, 3_600])
async def test_a_slot_that_comes_free_asks_nothing_of_the_store_when_no_job_has_lacked_one(
    due_in: int | None,
) -> None:
    store = Later([], due_in=due_in)
    assert not await woken_by_a_free_slot(
        idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    )


@pytest.mark.covers("batch-waits-for-slowest")
async def test_a_slot_that_comes_free_is_offered_when_a_job_is_due() -> None:
    store = Later([], due_in=0)
    assert await woken_by_a_free_slot(
        idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    )


async def test_a_slot_that_comes_free_is_offered_when_all_were_taken_at_the_last_look() -> None:
    slots = Slots(1, {})
    slots.take(claim())
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_to_a_job_that_a_heartbeat_has_seen_when_all_were_taken() -> (
    None
):
    slots = Slots(1, {})
    store = Later([], due_in=None)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    await fetcher.round()
    fetcher.wakeup.clear()
    # A held claim starts without a round.
    slots.take(claim())
    fetcher.expect(SECOND)
    slots.give_back(claim())
    fetcher.slot_freed()
    await asyncio.wait_for(fetcher.wakeup.wait(None), 5)


class Filling(Later):
    """A store that takes a while to answer who claims ahead; meanwhile a held claim takes the last slot."""

    def __init__(self, slots: Slots) -> None:
        super().__init__([], due_in=1)
        self._due_at = SECOND // 2
        self._slots = slots

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        if demand.ahead:
            assert self._slots.take(claim())
        return []


async def test_a_slot_that_comes_free_is_offered_when_the_last_was_taken_while_the_fetcher_looked_ahead() -> (
    None
):
    slots = Slots(1, {})
    fetcher = idle_fetcher(store=Filling(slots), dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_where_queues_have_slots_of_their_own() -> None:
    store = Later([], due_in=3_600)
    slots = Slots(2, {"default": 1})
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


async def woken_by_a_slot_freed_meanwhile(slots: Slots) -> bool:
    """Whether a slot that comes free while the store is asked makes for another round."""
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    store.meanwhile = fetcher.slot_freed
    fetcher.wakeup.clear()
    await fetcher.round()
    return await is_woken(fetcher)


async def test_a_slot_that_comes_free_while_the_store_is_asked_is_judged_by_the_answer() -> None:
    assert not await woken_by_a_slot_freed_meanwhile(Slots(2, {}))
    assert await woken_by_a_slot_freed_meanwhile(Slots(2, {"default": 1}))


async def test_a_slot_that_comes_free_is_offered_to_jobs_under_limits_that_have_lacked_one() -> None:
    store = Later([], due_in=3_600, limited=True)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    with fetcher.limited.turn(at_latest=3_600):
        fetcher.limited.starved = True
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_to_a_claim_that_waits_for_one() -> None:
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    await fetcher.round()
    fetcher.hold.add_due([claim()])
    fetcher.wakeup.clear()
    fetcher.slot_freed()
    await asyncio.wait_for(fetcher.wakeup.wait(None), 5)
