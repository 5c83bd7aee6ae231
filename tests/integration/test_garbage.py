"""What the garbage collector looks through in a worker."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from duetime import Scheduler


@pytest.fixture(autouse=True)
def everything_is_looked_through() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


async def test_a_worker_with_a_process_of_its_own_spares_its_jobs_looks_through_all_that_is_loaded(
    store_url: str,
) -> None:
    scheduler = Scheduler(store_url)
    async with scheduler, scheduler.worker(dedicated=True):
        assert gc.get_freeze_count() > len(gc.get_objects())


async def test_a_worker_among_others_leaves_the_garbage_of_its_process_alone(store_url: str) -> None:
    scheduler = Scheduler(store_url)
    async with scheduler, scheduler.worker():
        assert gc.get_freeze_count() == 0
