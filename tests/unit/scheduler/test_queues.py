from __future__ import annotations

from datetime import timedelta

import pytest

from duetime import Limit, Rate, Registry, Scheduler, State
from duetime.errors import InvalidName, NotConfirmed
from duetime.scheduler import queues
from duetime.scheduler.task import AsyncTask


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("sqlite://")


@pytest.fixture
def greet(scheduler: Scheduler) -> AsyncTask[[], None]:
    @scheduler.task(name="greet", queue="mail")
    async def greet() -> None: ...

    return greet


async def test_queues_are_listed_by_name_with_what_is_in_them(
    scheduler: Scheduler, greet: AsyncTask[[], None]
) -> None:
    async with scheduler:
        await greet.enqueue()
        await greet.options(delay="1h").enqueue()
        await scheduler.queues.pause("bulk", reason="too slow")
        await scheduler.queues.limit("mail", 5, rate="100/1m")
        async with scheduler.worker(queues=["default"]):
            bulk, default, mail = await scheduler.queues.list()
        assert [queue.name for queue in await scheduler.queues.list()] == ["bulk", "mail"]

    assert (bulk.name, bulk.paused, bulk.paused_reason, bulk.queued) == ("bulk", True, "too slow", 0)
    assert bulk.paused_at is not None
    assert (default.name, default.paused, default.paused_at) == ("default", False, None)
    assert (mail.name, mail.queued, mail.scheduled, mail.active) == ("mail", 1, 1, 0)
    assert mail.at_least == frozenset()
    assert (mail.limit, mail.rate) == (Limit(5), Rate(100, timedelta(minutes=1)))
    assert (bulk.limit, bulk.rate) == (default.limit, default.rate) == (None, None)


async def test_numbers_that_were_counted_in_part_are_named(
    scheduler: Scheduler, greet: AsyncTask[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_MAX_COUNTED", 2)
    async with scheduler:
        await scheduler.enqueue_many([greet.call() for _ in range(3)])
        (mail,) = await scheduler.queues.list()
    assert mail.queued == 2
    assert Registry.QUEUED in mail.at_least


async def test_a_purge_cancels_everything_step_by_step(
    scheduler: Scheduler, greet: AsyncTask[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_PURGE_STEP", 2)
    async with scheduler:
        handles = await scheduler.enqueue_many([greet.call() for _ in range(5)])
        assert await scheduler.queues.purge("mail", confirm="mail", reason="a mistake") == 5
        for handle in handles:
            record = await handle.record()
            assert (record.state, record.reason) == (State.CANCELLED, "a mistake")
        (mail,) = await scheduler.queues.list()
    assert (mail.queued, mail.cancelled) == (0, 5)


async def test_a_purge_without_the_right_confirmation_does_nothing(
    scheduler: Scheduler, greet: AsyncTask[[], None]
) -> None:
    async with scheduler:
        job = await greet.enqueue()
        with pytest.raises(NotConfirmed, match="needs confirm='mail', not 'default'; nothing was purged"):
            await scheduler.queues.purge("mail", confirm="default")
        with pytest.raises(InvalidName):
            await scheduler.queues.purge("no queue", confirm="no queue")
        assert (await job.record()).state is State.PENDING


def test_blocking_callers_can_do_the_same(scheduler: Scheduler, greet: AsyncTask[[], None]) -> None:
    greet.sync.enqueue()
    assert [queue.name for queue in scheduler.sync.queues.list()] == ["mail"]
    assert scheduler.sync.queues.purge("mail", confirm="mail") == 1
    assert scheduler.sync.workers.list() == []
    scheduler.sync.close()
