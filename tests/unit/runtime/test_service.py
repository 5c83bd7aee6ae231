from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

import pytest

from duetime.errors import SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.runtime import service
from duetime.runtime.service import Service
from duetime.stores.base import Store
from duetime.stores.base.backoff import backoff
from tests.unit.runtime.kit import NoHealth


class Counting(Service):
    """Does a round, or raises what is due."""

    name = "counter"

    def __init__(self, health: NoHealth, *errors: BaseException | None, pause: float | None = None) -> None:
        super().__init__(cast("Store", None), health)
        self.rounds = 0
        self.errors = list(errors)
        self.pause = pause
        self.ran = asyncio.Event()

    async def round(self) -> float | None:
        self.rounds += 1
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        self.ran.set()
        return self.pause

    async def runs_again(self) -> None:
        self.ran.clear()
        self.wakeup.set()
        await asyncio.wait_for(self.ran.wait(), 5)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "backoff", partial(backoff, first=0.0001))


async def test_a_service_sleeps_until_it_is_hinted() -> None:
    counting = Counting(NoHealth())
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    await asyncio.sleep(0.01)
    assert counting.rounds == 1
    await counting.runs_again()
    assert counting.rounds == 2
    await counting.stop()


async def test_a_hint_during_a_round_is_not_lost() -> None:
    counting = Counting(NoHealth())
    real = counting.round
    hinted = asyncio.Event()

    async def round_with_hint() -> float | None:
        if not hinted.is_set():
            hinted.set()
            counting.wakeup.set()
        return await real()

    counting.round = round_with_hint  # type: ignore[method-assign]
    counting.start()

    async def twice() -> None:
        while counting.rounds < 2:  # noqa: ASYNC110 - two rounds follow each other without a pause
            await asyncio.sleep(0)

    await asyncio.wait_for(twice(), 5)
    await counting.stop()


@pytest.mark.covers("one-error-ends-all")
async def test_a_round_that_raises_is_told_with_its_traceback_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = NoHealth()
    counting = Counting(health, ZeroDivisionError("oops"), ZeroDivisionError("oops"))
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    await counting.runs_again()
    await counting.stop()
    assert health.events == ["counter: ZeroDivisionError"] * 2 + ["counter: recovered"]
    assert caplog.text.count("Traceback") == 2


@pytest.mark.covers("one-error-ends-all")
@pytest.mark.parametrize("kind", [StoreUnavailable, StoreUnusable, SchemaMismatch])
async def test_a_database_that_is_away_is_told_once_and_also_that_it_is_back(
    kind: type[StoreError], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    health = NoHealth()
    counting = Counting(health, *[kind("no route")] * 5)
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    await counting.stop()
    assert caplog.text.count("no route") == 1
    assert "Traceback" not in caplog.text
    assert "counter goes on after 5 failures" in caplog.text
    assert health.events == [f"counter: {kind.__name__}"] * 5 + ["counter: recovered"]


async def test_another_trouble_of_the_database_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    counting = Counting(NoHealth(), StoreUnavailable("no route"), StoreUnusable("no right"))
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    await counting.stop()
    assert [said.rpartition(": ")[2] for said in caplog.messages] == ["no route", "no right"]


async def test_starting_and_stopping_twice_is_harmless() -> None:
    counting = Counting(NoHealth())
    await counting.stop()
    counting.start()
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    assert counting.rounds == 1
    await counting.stop()
    await counting.stop()


async def test_a_stopped_service_does_not_wait_out_its_sleep() -> None:
    counting = Counting(NoHealth(), pause=3600)
    counting.start()
    await asyncio.wait_for(counting.ran.wait(), 5)
    await asyncio.wait_for(counting.stop(), 5)
    assert counting.rounds == 1


async def test_every_pause_after_a_failure_is_kept_not_only_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = iter((0.0001, 3600.0))
    monkeypatch.setattr("duetime.stores.base.backoff.random.uniform", lambda *_: next(pauses))
    counting = Counting(NoHealth(), *[StoreUnavailable("no route")] * 3)
    counting.start()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(counting.ran.wait(), 0.05)
    assert counting.rounds == 2
    await asyncio.wait_for(counting.stop(), 5)
