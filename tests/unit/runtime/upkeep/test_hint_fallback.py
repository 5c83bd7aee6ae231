"""Where hints of other processes do not arrive, somebody looks for what they would have told."""

from __future__ import annotations

from typing import Any, cast

import pytest

from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.upkeep.notices import HintFallback
from tests.unit.runtime.kit import NoHealth


class Hearing:
    """A store of which only this is asked."""

    def __init__(self, *, hears: bool) -> None:
        self.hears_others = hears


class Looks:
    """Counts looks."""

    def __init__(self, *, hears: bool, workers: int = 1) -> None:
        self.ears, crowd, self.count = Hearing(hears=hears), FleetPacing(), 0
        crowd.workers = workers
        self.unheard = HintFallback(cast("Any", self.ears), NoHealth(), fleet=crowd, look=self.look)

    def look(self) -> None:
        self.count += 1


async def test_a_worker_that_hears_others_looks_for_nothing_and_wakes_up_now_and_then_to_ask_whether_it_does() -> (
    None
):
    looks = Looks(hears=True)
    for _ in range(3):
        assert (await looks.unheard.round() or 0) >= 8
    assert looks.count == 0


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
