"""Who did what, as the verbs of a client note it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from duetime import Scheduler, State, cron
from duetime.errors import InvalidCursor, InvalidOption, JobEnded, WorkerGone
from duetime.scheduler.audit import actor_name
from duetime.testing import FakeClock, drain
from duetime.testing.conformance.kit import hire, take_one

Act: TypeAlias = Callable[[Scheduler, str], Awaitable[object]]


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=FakeClock()) as opened:
        opened.task(name="greet")(greet)
        yield opened


def greet(name: str = "you") -> None: ...


async def put(scheduler: Scheduler, **options: Any) -> str:
    return (await scheduler.task(name="other")(greet).options(**options).enqueue()).id


ON_JOBS: dict[str, tuple[Act, dict[str, Any]]] = {
    "cancel": (lambda s, i: s.jobs.cancel(i, reason="off", by="ann"), {"reason": "off"}),
    "delete": (lambda s, i: s.jobs.delete(i, by="ann"), {}),
    "snooze": (lambda s, i: s.jobs.snooze(i, "1h", by="ann"), {"delay": timedelta(hours=1)}),
    "edit": (
        lambda s, i: s.jobs.edit(i, kwargs={}, queue="slow", by="ann"),
        {"queue": "slow", "payload": "changed"},
    ),
}


@pytest.mark.parametrize("verb", ON_JOBS)
async def test_a_change_of_a_job_tells_who_asked_for_it(scheduler: Scheduler, verb: str) -> None:
    job_id = await put(scheduler, delay="1h")
    act, detail = ON_JOBS[verb]
    await act(scheduler, job_id)
    (record,) = await scheduler.audit.list(job=job_id)
    assert (record.who, record.verb, record.kind, record.name) == ("ann", verb, "job", job_id)
    assert record.detail == detail


async def test_deleting_many_notes_each_that_went(scheduler: Scheduler) -> None:
    task = scheduler.task(name="many")(greet)
    ids = [(await task.options(tags=["t"]).enqueue()).id for _ in range(3)]
    await scheduler.jobs.delete_many(tag="t", dry_run=True, by="ann")
    assert await scheduler.audit.list() == []
    await scheduler.jobs.delete_many(tag="t", by="ann")
    assert {one.name for one in await scheduler.audit.list()} == set(ids)


async def test_a_rerun_is_noted_with_the_new_job(scheduler: Scheduler) -> None:
    job_id = await put(scheduler, delay="1h")
    await scheduler.jobs.cancel(job_id)
    new = await scheduler.jobs.rerun(job_id, by="bob")
    rerun, cancelled = await scheduler.audit.list(job=job_id)
    assert (rerun.who, rerun.verb, rerun.detail) == ("bob", "rerun", {"job": new.id})
    assert cancelled.who == actor_name(None)


async def test_a_release_is_noted_of_the_job_even_if_its_worker_is_asked(scheduler: Scheduler) -> None:
    job_id = await put(scheduler)
    await hire(scheduler.store, "w1")
    await take_one(scheduler.store, tasks=("other",), unstarted=True)
    await scheduler.jobs.release(job_id, force=True, by="ann")
    (record,) = await scheduler.audit.list(job=job_id)
    assert (record.who, record.verb, record.detail) == ("ann", "release", {"force": True})


async def test_what_changes_nothing_is_not_noted(scheduler: Scheduler) -> None:
    job_id = await put(scheduler)
    await drain(scheduler)
    assert (await scheduler.jobs.get(job_id)).state is State.SUCCEEDED
    await scheduler.jobs.cancel(job_id)
    with pytest.raises(JobEnded):
        await scheduler.jobs.snooze(job_id, "1h")
    await scheduler.queues.resume("mail")
    assert await scheduler.audit.list() == []


async def test_changes_of_a_queue_are_noted(scheduler: Scheduler) -> None:
    await scheduler.queues.pause("mail", reason="down", by="ann")
    await scheduler.queues.limit("mail", 3, rate="10/1m", by="bob")
    await scheduler.queues.resume("mail", by="ann")
    found = [(one.who, one.verb, one.detail) for one in await scheduler.audit.list(queue="mail")]
    assert sorted(found) == [
        ("ann", "pause", {"reason": "down"}),
        ("ann", "resume", {}),
        ("bob", "limit", {"limit": 3, "rate": "10/1 minute"}),
    ]


async def test_what_a_worker_is_told_is_noted_and_what_only_looks_is_not(scheduler: Scheduler) -> None:
    await hire(scheduler.store, "w1")
    await scheduler.workers.pause("w1", reason="reindexing", wait=0, by="ann")
    with pytest.raises(TimeoutError):
        await scheduler.workers.stacks("w1", wait="1ms")
    await scheduler.store.retire("w1")
    with pytest.raises(WorkerGone):
        await scheduler.workers.resume("w1", wait=0)
    (record,) = await scheduler.audit.list(worker="w1")
    assert (record.who, record.verb, record.kind, record.name) == ("ann", "pause", "worker", "w1")
    assert record.detail == {"reason": "reindexing"}


async def test_changes_of_schedules_are_among_the_others(scheduler: Scheduler) -> None:
    await scheduler.schedules.put("nightly", cron("0 3 * * *"), "greet", by="ann")
    await scheduler.queues.pause("nightly", by="bob")
    assert [(one.kind, one.who) for one in await scheduler.audit.list(schedule="nightly")] == [
        ("schedule", "ann")
    ]
    assert [(one.kind, one.who) for one in await scheduler.audit.list(queue="nightly")] == [("queue", "bob")]
    assert {one.kind for one in await scheduler.audit.list()} == {"schedule", "queue"}


async def test_entries_are_read_page_by_page(scheduler: Scheduler) -> None:
    for number in range(5):
        await scheduler.queues.pause(f"q{number}")
    first = await scheduler.audit.list(limit=3)
    rest = await scheduler.audit.list(limit=3, cursor=first.cursor)
    assert sorted(one.name for one in [*first, *rest]) == [f"q{number}" for number in range(5)]
    assert (len(first), len(rest), rest.cursor) == (3, 2, None)


async def test_odd_questions_are_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidOption, match="name one thing, not a queue and a job"):
        await scheduler.audit.list(queue="mail", job="x")
    with pytest.raises(InvalidCursor, match="not a cursor"):
        await scheduler.audit.list(cursor="jobs:x")
    with pytest.raises(InvalidOption, match="limit"):
        await scheduler.audit.list(limit=0)
    with pytest.raises(InvalidOption, match="by must say who asks"):
        await scheduler.queues.pause("mail", by="")


def test_a_blocking_caller_reads_entries(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    try:
        scheduler.sync.queues.pause("mail", by="ann")
        assert [one.who for one in scheduler.sync.audit.list(queue="mail")] == ["ann"]
    finally:
        scheduler.sync.close()
