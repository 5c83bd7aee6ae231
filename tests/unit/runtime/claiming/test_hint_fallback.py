"""Where hints of other processes do not arrive, somebody looks for what they would have told."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from duetime.runtime.claiming.hints import HintFallback
from duetime.runtime.fleet_pacing import FleetPacing
from tests.unit.runtime.kit import NoHealth


class Ears:
    """A store of which only this is asked."""

    def __init__(self, *, hears: bool) -> None:
        self.hears_others = hears


class Looks:
    """Counts looks."""

    def __init__(self, *, hears: bool, workers: int = 1, watched: bool = True) -> None:
        self.ears, crowd, self.count = Ears(hears=hears), FleetPacing(), 0
        crowd.workers = workers
        self.unheard = HintFallback(
            cast("Any", self.ears), NoHealth(), crowd=crowd, look=self.look, watched=watched
        )

    def look(self) -> None:
        self.count += 1


async def test_a_worker_that_hears_others_looks_for_nothing_and_sleeps() -> None:
    looks = Looks(hears=True)
    assert await looks.unheard.round() is None
    assert looks.count == 0


async def test_where_no_heartbeat_asks_whether_others_are_heard_the_worker_wakes_up_to_ask() -> None:
    looks = Looks(hears=True, watched=False)
    for _ in range(3):
        assert (await looks.unheard.round() or 0) >= 8
    assert looks.count == 0


@pytest.mark.parametrize("hears", [True, False])
async def test_a_heartbeat_wakes_up_who_does_not_hear_others_any_more(*, hears: bool) -> None:
    looks = Looks(hears=hears)
    waiting = asyncio.create_task(looks.unheard.wakeup.wait(None))
    looks.unheard.check()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waiting.done() is not hears
    waiting.cancel()


async def test_the_answer_to_a_look_does_not_bring_on_the_next_one() -> None:
    looks = Looks(hears=False)
    await looks.unheard.round()
    await looks.unheard.round()
    assert looks.count == 1
    waiting = asyncio.create_task(looks.unheard.wakeup.wait(None))
    looks.unheard.check()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_a_worker_that_hears_nobody_looks_again_and_again() -> None:
    looks = Looks(hears=False)
    for _ in range(3):
        await looks.unheard.round()
    assert looks.count == 2


async def test_a_worker_that_is_about_to_hear_others_does_not_look() -> None:
    looks = Looks(hears=False)
    await looks.unheard.round()
    looks.ears.hears_others = True
    await looks.unheard.round()
    assert looks.count == 0


@pytest.mark.parametrize(("workers", "seconds"), [(1, 1), (200, 2), (1_000, 3)])
async def test_each_of_many_looks_less_often(workers: int, seconds: float) -> None:
    pause = await Looks(hears=False, workers=workers).unheard.round()
    assert pause is not None
    assert 0.8 * seconds <= pause <= 1.2 * seconds
