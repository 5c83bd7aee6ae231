"""Changes of schedules come to the store once, and in time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from duetime.errors import StoreUnavailable
from duetime.failpoints import arm
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import SECOND, Instant
from duetime.scheduler.schedule_changes import (
    ScheduleDecision,
    change_schedule,
    change_schedules,
    existing_schedule,
)
from duetime.stores.base import JobFilter, Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import declare, delete, firing, read_schedule, schedule

pytestmark = pytest.mark.covers("changed-while-firing")


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    arm(None)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = open_store(store_url)
    await store.open()
    now = await store.now()
    await declare(
        store, *[schedule(name, next_at=now + 3_600 * SECOND, fired_through=now) for name in ("a", "b")]
    )
    yield store
    await store.close()


def set_queue(queue: str) -> ScheduleDecision:
    """Decide for a queue with its entry."""

    def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate:
        read = existing_schedule(before, "a")
        entry = AuditEntry(verb="edit", target=read.name, who="ann", detail={"queue": [read.queue, queue]})
        return ScheduleUpdate(before=read, after=replace(read, queue=queue), entry=entry)

    return decide


async def test_a_change_whose_answer_was_lost_is_made_and_noted_once(store: Store) -> None:
    before = await read_schedule(store, "a")
    arm("after:write_schedules:raise")
    written = await change_schedule(store, "a", set_queue("other"))
    assert written is not None
    after = await read_schedule(store, "a")
    assert (after.queue, after.rev) == ("other", before.rev + 1)
    assert [entry.verb for entry in await store.entries("a", limit=9)] == ["edit", "declare"]


async def test_an_addition_whose_answer_was_lost_is_told_as_made(store: Store) -> None:
    def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate | None:
        new = schedule("new", next_at=None, fired_through=now)
        entry = AuditEntry(verb="add", target="new", who="ann")
        return ScheduleUpdate(before=None, after=new, entry=entry) if before is None else None

    arm("after:write_schedules:raise")
    assert (await change_schedule(store, "new", decide)) is not None
    assert len(await store.entries("new", limit=9)) == 1


async def test_a_change_that_never_reached_the_store_is_written_the_second_time(store: Store) -> None:
    arm("before:write_schedules:raise")
    assert (await change_schedule(store, "a", set_queue("other"))) is not None
    assert (await read_schedule(store, "a")).queue == "other"


async def test_what_has_no_entry_is_decided_again_after_a_lost_answer(store: Store) -> None:
    decided: list[str] = []

    def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate | None:
        read = existing_schedule(before, "a")
        decided.append(read.queue)
        return (
            None if read.queue == "other" else ScheduleUpdate(before=read, after=replace(read, queue="other"))
        )

    arm("after:write_schedules:raise")
    assert (await change_schedule(store, "a", decide)) is None
    assert decided == ["default", "other"]


async def test_somebody_who_was_faster_is_not_overwritten(store: Store) -> None:
    seen: list[str] = []

    async def interfere() -> None:
        await change_schedule(store, "a", set_queue("faster"))

    class Slow:
        """Reads for the first time before somebody else writes."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def get_schedules(self, names: list[str]) -> list[StoredSchedule]:
            found = await store.get_schedules(names)
            if not seen:
                await interfere()
            seen.extend(record.queue for record in found)
            return found

    slow: Store = Slow()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    await change_schedule(slow, "a", set_queue("slower"))
    assert seen == ["default", "faster"]
    details = [entry.detail for entry in await store.entries("a", limit=2)]
    assert details == [{"queue": ["faster", "slower"]}, {"queue": ["default", "faster"]}]


@pytest.mark.parametrize(("whole", "expected"), [(False, ["a", "b", "b"]), (True, ["a", "b", "a", "b"])])
async def test_those_that_hold_are_written_together_and_the_others_again_or_all_of_them(
    store: Store,
    whole: bool,
    expected: list[str],
) -> None:
    rounds: list[str] = []

    def decide(name: str) -> ScheduleDecision:
        def decision(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate:
            read = existing_schedule(before, name)
            rounds.append(name)
            stale = replace(read, rev=read.rev - 1) if rounds.count(name) == 1 and name == "b" else read
            return ScheduleUpdate(before=stale, after=replace(read, queue="other"))

        return decision

    decisions = {name: decide(name) for name in ("a", "b")}
    assert set(await change_schedules(store, decisions, whole=whole)) == {"a", "b"}
    assert rounds == expected


async def test_a_schedule_that_never_holds_still_is_given_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.scheduler.schedule_changes._RETRY_PAUSE", 0)

    def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate:
        read = existing_schedule(before, "a")
        return ScheduleUpdate(before=replace(read, rev=99), after=read)

    with pytest.raises(StoreUnavailable, match="changed by others"):
        await change_schedule(store, "a", decide)


async def test_a_deleted_schedule_is_gone_for_a_change(store: Store) -> None:
    await delete(store, "a")
    with pytest.raises(LookupError):
        await change_schedule(store, "a", set_queue("other"))


@pytest.mark.parametrize("lost", [False, True])
async def test_an_edit_just_before_an_occurrence_gives_it_one_run_as_edited(
    store: Store, *, lost: bool
) -> None:
    def edit(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate:
        read = existing_schedule(before, "a")
        entry = AuditEntry(verb="edit", target="a", who="ann")
        return ScheduleUpdate(
            before=read, after=replace(read, payload="[1]"), entry=entry, withdraw="edited", held=False
        )

    planned = firing(await read_schedule(store, "a"), next_at=None)
    assert await store.fire([planned]) == {"a"}
    arm("after:write_schedules:raise" if lost else None)
    assert await change_schedule(store, "a", edit) is not None
    # Planned before the edit, and too late.
    assert await store.fire([replace(planned, jobs=())]) == frozenset()
    edited = await read_schedule(store, "a")
    again = firing(edited, next_at=None)
    assert await store.fire([replace(again, jobs=tuple(j._replace(payload="[1]") for j in again.jobs))]) == {
        "a"
    }
    live = [record for record in await store.find(JobFilter(schedule="a")) if not record.state.terminal]
    assert [record.payload for record in live] == ["[1]"]
    assert [record.occurrence for record in live] == [planned.fired_through]
    assert (await read_schedule(store, "a")).made == 1
