"""What a worker looks for when a hint says nothing, and while the hints of other processes do not arrive."""

from __future__ import annotations

import pytest

from duetime.runtime.pacing import FleetPacing
from duetime.runtime.upkeep.hint_listener import ChangeWatch
from tests.unit.runtime.kit import context_of


class Hearing:
    """A store of which only this is asked."""

    def __init__(self, *, hears: bool) -> None:
        self.hears_others = hears


class Looks:
    """Notes what was looked for."""

    def __init__(self, *, hears: bool = True, workers: int = 1) -> None:
        self.store, fleet, self.seen = Hearing(hears=hears), FleetPacing(), list[str]()
        fleet.workers = workers
        self.watch = ChangeWatch(
            context_of(self.store, fleet=fleet),
            look_for_jobs=lambda: self.seen.append("jobs"),
            look_for_workers=lambda: self.seen.append("workers"),
            look_for_changes=lambda: self.seen.append("changes"),
        )

    async def hint(self) -> None:
        """Give several hints, and let the watch answer them."""
        for _ in range(3):
            self.watch.take_hint()
        await self.watch.wakeup.wait(None)
        self.watch.wakeup.clear()


async def test_one_of_a_few_looks_for_jobs_at_once_and_around_once_for_many_hints() -> None:
    looks = Looks(workers=2)
    await looks.hint()
    assert looks.seen == ["jobs"] * 3
    await looks.watch.round()
    assert looks.seen[3:] == ["workers", "changes"]


async def test_one_of_many_looks_for_everything_once_for_many_hints() -> None:
    looks = Looks(workers=100)
    await looks.hint()
    assert looks.seen == []
    await looks.watch.round()
    assert looks.seen == ["jobs", "workers", "changes"]


@pytest.mark.parametrize(("workers", "pause"), [(1, 0.05), (9, 0.05), (16, 0.4), (1_000, 1.0)])
async def test_the_pause_between_two_looks_grows_with_the_fleet(
    workers: int, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(workers=workers)
    await looks.hint()
    await looks.watch.round()
    waits: list[float] = []
    monkeypatch.setattr(looks.watch.wakeup, "set_after", waits.append)
    looks.watch.take_hint()
    looks.watch.take_hint()
    assert waits == [pytest.approx(pause, abs=0.02)]


async def test_a_worker_that_hears_others_looks_for_nothing_and_wakes_up_now_and_then_to_ask_whether_it_does() -> (
    None
):
    looks = Looks(hears=True)
    for _ in range(3):
        assert (await looks.watch.round() or 0) >= 8
    assert looks.seen == []


async def test_a_worker_that_hears_nobody_looks_again_and_again() -> None:
    looks = Looks(hears=False)
    for _ in range(3):
        await looks.watch.round()
    assert looks.seen == ["changes"] * 2


async def test_a_worker_that_is_about_to_hear_others_does_not_look() -> None:
    looks = Looks(hears=False)
    await looks.watch.round()
    looks.store.hears_others = True
    await looks.watch.round()
    assert looks.seen == []


@pytest.mark.parametrize(("workers", "seconds"), [(1, 1), (200, 2), (1_000, 3)])
async def test_each_of_many_looks_less_often(workers: int, seconds: float) -> None:
    pause = await Looks(hears=False, workers=workers).watch.round()
    assert pause is not None
    assert 0.8 * seconds <= pause <= 1.2 * seconds
