from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime import Scheduler
from duetime.scheduler.task import AsyncTask
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
async def scheduler(store_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(store_url, clock=clock)
    async with scheduler:
        yield scheduler


@pytest.fixture
def report(scheduler: Scheduler) -> AsyncTask[[str, int], None]:
    @scheduler.task(name="report", queue="slow", tags=["money"])
    async def report(kind: str, copies: int = 1) -> None: ...

    return report
