"""An occurrence that finds an earlier job of its schedule alive: each policy, with two workers on one store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.triggers.every import Every
from duetime.stores.base import Store
from tests.integration.kit import until
from tests.integration.occurrences import NAME, PACE, Runs, accounted, all_ended, put, records, skipped


@asynccontextmanager
async def busy(url: str, **policy: Any) -> AsyncGenerator[tuple[Runs, Store]]:
    """Two workers, and a schedule whose first job has started."""
    runs = Runs(url, url)
    async with AsyncExitStack() as stack:
        for scheduler in runs.schedulers:
            await stack.enter_async_context(scheduler.worker())
        await runs.put(**policy)
        await until(lambda: runs.started, what="the first run")
        yield runs, runs.schedulers[0].store


async def pending(store: Store) -> list[StoredJob]:
    return [record for record in await records(store) if record.state is State.PENDING]


async def end(runs: Runs) -> None:
    """Let no more occurrences come, and everything run out."""
    await runs.schedulers[0].schedules.pause(NAME)
    runs.let_go()


@pytest.mark.covers("overlapping-runs")
async def test_skip_leaves_a_record_of_each_and_goes_on_when_the_job_has_ended(store_url: str) -> None:
    async with busy(store_url, overlap="skip") as (runs, store):
        await skipped(store, "overlap", least=3)
        assert len(runs.started) == 1
        runs.let_go()
        await until(lambda: len(runs.started) >= 3, what="runs after the long one")
        await end(runs)
        found = await all_ended(store, 3)
    assert runs.peak == 1
    assert accounted(found)


@pytest.mark.covers("overlapping-runs")
async def test_queue_one_lets_the_next_wait_and_skips_the_others(store_url: str) -> None:
    async with busy(store_url, overlap="queue_one") as (runs, store):
        await skipped(store, "overlap", least=2)
        (waiting,) = await pending(store)
        await end(runs)
        await until(lambda: len(runs.started) >= 2, what="the one that waited")
        found = await all_ended(store, 2)
    assert runs.started[1] == waiting.occurrence
    assert runs.peak == 1
    assert accounted(found)


@pytest.mark.covers("overlapping-runs")
async def test_queue_all_lets_as_many_wait_as_it_may_and_they_run_in_order(store_url: str) -> None:
    async with busy(store_url, overlap="queue_all", overlap_limit=3) as (runs, store):
        await skipped(store, "overlap", least=2)
        waiting = [record.occurrence for record in await pending(store)]
        assert len(waiting) == 3
        await end(runs)
        await until(lambda: len(runs.started) >= 4, what="all that waited")
        found = await all_ended(store, 4)
    assert runs.started[1:4] == waiting
    assert runs.peak == 1
    assert accounted(found)


@pytest.mark.covers("overlapping-runs")
async def test_cancel_running_ends_the_old_job_before_the_new_one_starts(store_url: str) -> None:
    async with busy(store_url, overlap="cancel_running") as (runs, store):
        await until(lambda: runs.cancelled, what="the cancellation of the first run")

        # Those that come while it cleans up supersede one another.
        async def superseded() -> bool:
            return len([r for r in await records(store) if r.state is State.CANCELLED]) >= 2

        await until(superseded, what="two jobs that never started")
        assert len(runs.started) == 1
        await end(runs)
        await until(lambda: len(runs.started) >= 2, what="the latest run")
        found = await all_ended(store, 3)
    assert runs.peak == 1
    first = next(record for record in found if record.occurrence == runs.started[0])
    assert (first.state, first.reason) == (State.CANCELLED, "superseded by the next occurrence")


@pytest.mark.covers("overlapping-runs")
@pytest.mark.parametrize("overlap", ["queue_one", "cancel_running"])
async def test_a_policy_that_is_edited_in_holds_for_the_run_that_goes_on(
    store_url: str, overlap: Any
) -> None:
    async with busy(store_url, overlap="skip") as (runs, store):
        await runs.schedulers[0].schedules.edit(NAME, overlap=overlap)

        async def due() -> bool:
            now = await store.now()
            return any((record.occurrence or now) < now for record in await pending(store))

        await until(due, what="one that waits for its turn")
        await end(runs)
        await until(lambda: len(runs.started) >= 2, what="the one that waited")
        await all_ended(store, 2)
    assert runs.peak == 1


@pytest.mark.covers("overlapping-runs")
async def test_a_run_by_hand_waits_for_the_one_that_goes_on(store_url: str) -> None:
    async with busy(store_url, overlap="skip") as (runs, store):
        handle = await runs.schedulers[0].schedules.trigger(NAME)
        await skipped(store, "overlap", least=2)
        assert (await handle.record()).state == "pending"
        await end(runs)
        await until(lambda: 0 in runs.started, what="the run by hand")
    assert runs.peak == 1


@pytest.mark.covers("overlapping-runs")
async def test_allow_runs_them_side_by_side(store_url: str) -> None:
    async with busy(store_url, overlap="allow") as (runs, store):
        await until(lambda: runs.peak >= 3, what="three at once")
        await end(runs)
        found = await all_ended(store, 3)
    assert sum(record.state is State.SUCCEEDED for record in found) >= 3
    assert "overlap" not in {record.reason for record in found}
    assert accounted(found)


async def test_a_job_that_waits_for_its_retry_is_still_there(store_url: str) -> None:
    runs = Runs(store_url)
    (scheduler,) = runs.schedulers

    @scheduler.task(name="failing", retries=["1h"])
    async def failing() -> None:
        raise LookupError("not yet")

    async with scheduler, scheduler.worker():
        now = await scheduler.store.now()
        await put(scheduler, NAME, "failing", Every(interval=PACE, start=now + PACE))
        overlapped, *_ = await skipped(scheduler.store, "overlap")
        (tried,) = [record for record in await records(scheduler.store) if record.state is not State.SKIPPED]
    assert (tried.state, tried.failures) == (State.PENDING, 1)
    assert (tried.occurrence or 0) < (overlapped.occurrence or 0)
