from __future__ import annotations

import asyncio

import pytest

from duetime.runtime.service import Wakeup


async def test_a_hint_wakes_the_sleeper() -> None:
    wakeup = Wakeup()
    sleeper = asyncio.create_task(wakeup.wait(None))
    await asyncio.sleep(0)
    assert not sleeper.done()
    wakeup.set()
    await asyncio.wait_for(sleeper, 5)


async def test_the_time_wakes_the_sleeper() -> None:
    await asyncio.wait_for(Wakeup().wait(0.001), 5)


async def test_a_hint_before_the_wait_counts_until_it_is_cleared() -> None:
    wakeup = Wakeup()
    wakeup.set()
    await asyncio.wait_for(wakeup.wait(3600), 5)
    wakeup.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wakeup.wait(None), 0.01)


async def test_a_sleeper_that_is_hinted_leaves_no_timer_to_wake_the_next_one() -> None:
    wakeup = Wakeup()
    wakeup.set()
    await wakeup.wait(0.005)
    wakeup.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wakeup.wait(None), 0.02)


async def test_many_hints_for_later_wake_the_sleeper_once() -> None:
    wakeup = Wakeup()
    for _ in range(3):
        wakeup.set_after(0.001)
    await wakeup.wait(None)
    wakeup.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wakeup.wait(None), 0.02)


async def test_a_hint_for_sooner_goes_before_one_for_later() -> None:
    wakeup = Wakeup()
    for seconds in (3600, 0.001, 7200):
        wakeup.set_after(seconds)
    await asyncio.wait_for(wakeup.wait(None), 10)


async def test_a_hint_for_later_is_forgotten_with_the_others() -> None:
    wakeup = Wakeup()
    wakeup.set_after(0.001)
    wakeup.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wakeup.wait(None), 0.02)
