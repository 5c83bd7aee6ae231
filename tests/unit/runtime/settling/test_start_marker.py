from __future__ import annotations

import asyncio
import sys
from typing import cast

from duetime.runtime.running.run import Run
from duetime.runtime.settling.settler import StartMarker
from duetime.stores.base import Store
from tests.unit.runtime.kit import NoHealth, SettlingStore, claim


def run_of(job_id: str, started_at: int, *, ends: asyncio.Event) -> Run:
    run = Run(claim(job_id), started_at=started_at)
    run.task = asyncio.create_task(_wait(ends))
    return run


async def _wait(ends: asyncio.Event) -> None:
    await ends.wait()


async def test_a_run_that_lasts_is_marked_and_a_short_one_never() -> None:
    store, ends, at_once = SettlingStore(), asyncio.Event(), asyncio.Event()
    marker = StartMarker(cast("Store", store), NoHealth())
    at_once.set()
    marker.add(run_of("short", 5, ends=at_once))
    marker.add(run_of("long", 7, ends=ends))
    marker.add(run_of("longer", 6, ends=ends))
    await marker.round()
    assert store.marked == [], "a run is given a little time to end first"
    await asyncio.sleep(0)
    assert await marker.round() is None
    assert store.marked == [(["long", "longer"], 6)]
    await marker.round()
    assert len(store.marked) == 1, "once is enough"
    ends.set()


async def test_a_run_that_has_ended_is_not_kept() -> None:
    ends = asyncio.Event()
    marker = StartMarker(cast("Store", SettlingStore()), NoHealth())
    run = run_of("short", 5, ends=ends)
    known = sys.getrefcount(run)
    marker.add(run)
    marker.forget(run)
    assert sys.getrefcount(run) == known
    ends.set()


async def test_more_runs_do_not_cut_the_patience_short() -> None:
    ends = asyncio.Event()
    marker = StartMarker(cast("Store", SettlingStore()), NoHealth())
    marker.add(run_of("first", 5, ends=ends))
    assert await marker.round()
    marker.wakeup.clear()
    marker.add(run_of("second", 5, ends=ends))
    assert not marker.wakeup._event.is_set()
    ends.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await marker.round()
    assert await marker.round() is None
    marker.add(run_of("third", 5, ends=ends))
    assert marker.wakeup._event.is_set(), "it sleeps when nothing runs, and is woken"
