"""The `.sync` verbs, for callers without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from duetime import Scheduler, State
from duetime.errors import BlockingCallInLoop, InvalidArguments, StoreUnusable
from duetime.stores.base import Hint
from duetime.stores.sql.sqlite.database import Database


def double(number: int) -> int:
    return number * 2


@pytest.fixture
def scheduler(sqlite_url: str) -> Iterator[Scheduler]:
    scheduler = Scheduler(sqlite_url)
    yield scheduler
    scheduler.sync.close()


def test_a_blocking_caller_enqueues_reads_and_cancels(scheduler: Scheduler) -> None:
    handle = scheduler.task(double).options(delay=60).sync.enqueue(4)
    assert handle.record().arguments == {"number": 4}
    assert scheduler.sync.jobs.cancel(handle.id) == "cancelled"
    assert scheduler.sync.jobs.cancel_many([handle.id, "x"]) == {handle.id: "finished", "x": "unknown"}
    assert [job.state for job in scheduler.sync.jobs.list()] == [State.CANCELLED]


def test_a_blocking_caller_is_told_of_the_job_that_has_the_key(scheduler: Scheduler) -> None:
    task = scheduler.task(double).options(key="k").sync
    first, second = task.enqueue(4), task.enqueue(4)
    assert (first.existing, second.existing, second.id) == (False, True, first.id)


def test_a_blocking_caller_puts_jobs_off_changes_them_and_runs_them_again(scheduler: Scheduler) -> None:
    handle = scheduler.task(double).options(delay=60).sync.enqueue(4)
    due = handle.record().due_at
    scheduler.sync.jobs.snooze(handle.id, 30)
    assert (handle.record().due_at - due).total_seconds() == 30
    scheduler.sync.jobs.edit(handle.id, delay="1d", priority=0)
    assert (handle.record().priority, handle.record().due_at > due) == (0, True)
    assert scheduler.sync.jobs.release(handle.id) == "waiting"
    scheduler.sync.jobs.cancel(handle.id)
    assert scheduler.sync.jobs.rerun(handle.id, delay=60).record().parent == handle.id


def test_a_blocking_caller_pages_through_jobs_and_their_tries(scheduler: Scheduler) -> None:
    task = scheduler.task(double).sync
    handles = [task.enqueue(number) for number in range(3)]
    page = scheduler.sync.jobs.list(limit=2)
    assert [job.id for job in scheduler.sync.jobs.list(cursor=page.cursor)] == [handles[0].id]
    assert scheduler.sync.jobs.attempts(handles[0].id) == []


def test_a_blocking_caller_deletes(scheduler: Scheduler) -> None:
    task = scheduler.task(double)
    handles = [task.options(tags=["a"]).sync.enqueue(number) for number in range(3)]
    scheduler.sync.jobs.delete(handles[0].id)
    assert scheduler.sync.jobs.delete_many(tag="a", arguments={"number": 1}) == (1, 0)
    assert [job.id for job in scheduler.sync.jobs.list()] == [handles[2].id]


def test_a_blocking_caller_prunes(scheduler: Scheduler) -> None:
    scheduler.sync.jobs.cancel(scheduler.task(double).sync.enqueue(4).id)
    assert scheduler.sync.prune(older_than="1d") == 0
    assert scheduler.sync.prune(older_than=0, dry_run=True) == 1
    assert scheduler.sync.prune(older_than=0) == 1


def test_a_blocking_call_inside_a_loop_is_refused(scheduler: Scheduler) -> None:
    task = scheduler.task(double)

    async def careless() -> None:
        task.sync.enqueue(4)

    with pytest.raises(BlockingCallInLoop, match="await"):
        asyncio.run(careless())


async def test_a_thread_shares_the_loop_in_which_the_scheduler_is_open(scheduler: Scheduler) -> None:
    task = scheduler.task(double)
    async with scheduler, scheduler.worker(concurrency=2):
        handle = await asyncio.to_thread(task.sync.enqueue, 21)
        assert await asyncio.to_thread(handle.result, timeout=20) == 42


def test_an_error_at_opening_reaches_the_caller_and_the_next_call_tries_again(sqlite_url: str) -> None:
    scheduler = Scheduler(f"{sqlite_url}.missing/file.db")
    task = scheduler.task(double)
    for _ in range(2):
        with pytest.raises(StoreUnusable):
            task.sync.enqueue(1)


async def test_a_test_that_waits_for_new_jobs_is_told_of_those_of_blocking_callers(
    scheduler: Scheduler,
) -> None:
    told: list[str] = []

    async def after(ids: Sequence[str]) -> None:
        told.extend(ids)

    scheduler.after_enqueue = after
    async with scheduler:
        handle = await asyncio.to_thread(scheduler.task(double).sync.enqueue, 21)
    assert told == [handle.id]


def test_calls_that_are_none_are_refused_before_anything_is_opened(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidArguments, match="list of calls"):
        scheduler.sync.enqueue_many(scheduler.task(double).call(1))  # type: ignore[arg-type]
    assert not scheduler.is_open


def test_other_processes_are_told_of_what_a_blocking_caller_stores_for_now(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Hint] = []
    monkeypatch.setattr(Database, "tell", lambda _, hint: told.append(hint))
    task = scheduler.task(double)
    task.options(delay="1h").sync.enqueue(1)
    assert told == []
    task.sync.enqueue(2)
    assert told == [Hint("jobs")]
