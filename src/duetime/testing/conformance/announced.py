"""What workers announce of their tasks is stored once for each task, and forgotten when no one says it any more."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.stored.announced import StoredTask, TaskAnnouncement
from duetime.model.time import DAY, Instant
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import prune
from duetime.testing.conformance.suite import StoreSuite

MAIL = TaskAnnouncement(name="mail.send", queue="mail", options='{"doc":"☃"}', schema='{"type":"object"}')
OTHER = TaskAnnouncement(name="a", queue="default", options="{}", schema="{}")


def stored(task: TaskAnnouncement, at: Instant) -> StoredTask:
    """A task as it is read back."""
    values = {name: getattr(task, name) for name in TaskAnnouncement.__dataclass_fields__}
    return StoredTask(**values, announced_at=at)


class TestAnnounced(StoreSuite):
    """`announce` and `announced`."""

    async def test_tasks_are_read_back_by_name(self, store: Store, other: Store, clock: FakeClock) -> None:
        now = clock.now()
        await store.announce([MAIL, OTHER])
        assert await other.announced() == [stored(OTHER, now), stored(MAIL, now)]
        assert await other.announced(["mail.send", "none"]) == [stored(MAIL, now)]
        assert await other.announced(["a", "mail.send"]) == [stored(OTHER, now), stored(MAIL, now)]

    async def test_the_latest_word_stands(self, store: Store, other: Store, clock: FakeClock) -> None:
        await store.announce([MAIL, OTHER])
        clock.advance(1)
        changed = replace(MAIL, queue="slow", options="[]", schema="{}")
        await other.announce([changed])
        assert await store.announced(["mail.send"]) == [stored(changed, clock.now())]
        assert [task.name for task in await store.announced()] == ["a", "mail.send"]

    async def test_where_there_is_nothing_nothing_is_found(self, store: Store) -> None:
        await store.announce([])
        assert (await store.announced(), await store.announced([]), await store.announced(["a"])) == (
            [],
            [],
            [],
        )

    async def test_what_no_one_says_any_more_is_forgotten(self, store: Store, clock: FakeClock) -> None:
        await store.announce([MAIL, OTHER])
        clock.advance("3d")
        await store.announce([OTHER])
        await prune(store, before=clock.now() - DAY)
        assert [task.name for task in await store.announced()] == ["a"]
