"""What a hint makes the fetcher ask for."""

from __future__ import annotations

import asyncio
from typing import Literal, cast

import pytest

from duetime.model.instants import SECOND
from duetime.runtime.crowd import Crowd
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.fetcher import Fetcher
from duetime.runtime.identity import Identity
from duetime.runtime.slots import Slots
from duetime.stores.base import Hint, Store
from tests.unit.runtime.kit import NoHealth, StillTime


class Idle:
    """A dispatcher without work."""


def idle_fetcher(crowd: Crowd | None = None) -> Fetcher:
    return Fetcher(
        store=cast("Store", None),
        identity=Identity(queues=("default",), slots=1),
        handlers={},
        queues=("default",),
        slots=Slots(1, {}),
        dispatcher=cast("Dispatcher", Idle()),
        time=StillTime(),
        health=NoHealth(),
        crowd=crowd or Crowd(),
        window=SECOND,
        ahead_budget=1,
    )


@pytest.mark.parametrize(("kind", "asks"), [("limits", True), ("jobs", False), ("any", False)])
def test_a_worker_without_limits_asks_for_limited_jobs_when_it_hears_of_some(
    kind: Literal["limits", "jobs", "any"], asks: bool
) -> None:
    fetcher = idle_fetcher()
    fetcher.hear(Hint(kind))
    assert fetcher.limited.wanted is asks


async def test_one_of_many_workers_lets_others_go_first_when_it_hears_of_jobs() -> None:
    crowd = Crowd()
    crowd.workers = 1_000_000
    fetcher = idle_fetcher(crowd)
    fetcher.hear(Hint("jobs"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fetcher.wakeup.wait(None), 0.01)
