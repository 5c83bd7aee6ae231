"""A worker announces its tasks when it starts, and writes only what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from duetime import Scheduler
from duetime.model.stored.announced import ANNOUNCED_FOR, StoredTask, TaskAnnouncement
from duetime.runtime.upkeep.announcing import TaskAnnouncer, announcement
from tests.unit.runtime.kit import context_of


def greet(name: str) -> None:
    """Say hello."""


class Announcements:
    """A store of announcements alone, in memory."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.known: dict[str, StoredTask] = {}
        self.written: list[str] = []

    async def announced(self, names: Sequence[str]) -> list[StoredTask]:
        return [self.known[name] for name in names if name in self.known]

    async def announce(self, tasks: Sequence[TaskAnnouncement]) -> None:
        for task in tasks:
            values = {name: getattr(task, name) for name in TaskAnnouncement.__dataclass_fields__}
            self.known[task.name] = StoredTask(**values, announced_at=self.now)
            self.written.append(task.name)


@pytest.fixture
def scheduler() -> Scheduler:
    scheduler = Scheduler("sqlite:///unused.db")
    scheduler.task(name="greet", queue="mail")(greet)
    return scheduler


def announcer(scheduler: Scheduler, store: Announcements) -> TaskAnnouncer:
    context = context_of(cast("Any", store), handlers=scheduler.tasks)
    context.time.now = lambda: store.now  # type: ignore[method-assign]
    return TaskAnnouncer(context)


async def test_only_what_is_new_or_has_changed_is_written(scheduler: Scheduler) -> None:
    store = Announcements(now=0)
    assert await announcer(scheduler, store).round() == ANNOUNCED_FOR / 1_000_000
    await announcer(scheduler, store).round()
    assert store.written == ["greet"]
    later = Scheduler("sqlite:///unused.db")
    later.task(name="greet", queue="slow")(greet)
    later.task(name="other")(greet)
    await announcer(later, store).round()
    assert store.written == ["greet", "greet", "other"]


async def test_what_was_announced_long_ago_is_announced_again(scheduler: Scheduler) -> None:
    store = Announcements(now=0)
    await announcer(scheduler, store).round()
    store.now = ANNOUNCED_FOR - 1
    await announcer(scheduler, store).round()
    assert store.written == ["greet"]
    store.now = ANNOUNCED_FOR
    await announcer(scheduler, store).round()
    assert store.written == ["greet", "greet"]


def test_an_announcement_tells_what_the_function_says_of_itself(scheduler: Scheduler) -> None:
    told = announcement(scheduler.tasks["greet"])
    assert (told.name, told.queue) == ("greet", "mail")
    assert '"doc": "Say hello."' in told.options


async def test_what_was_announced_before_the_service_began_is_not_announced_at_once(
    scheduler: Scheduler,
) -> None:
    store = Announcements(now=0)
    service = announcer(scheduler, store)
    await service.announce()
    store.now = ANNOUNCED_FOR
    await service.round()
    assert store.written == ["greet"]
    await service.round()
    assert store.written == ["greet", "greet"]
