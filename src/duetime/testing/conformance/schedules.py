"""Schedules are kept as declared, written only when they change, and take back what they planted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import SECOND
from duetime.stores.base import DueSchedules, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.enqueue import ODD_TEXT
from duetime.testing.conformance.kit import (
    alter,
    declare,
    delete,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    pause,
    read,
    read_schedule,
    redeclared,
    schedule,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite

MINUTE = 60 * SECOND


def declared(clock: FakeClock, name: str = "s", **changes: Any) -> StoredSchedule:
    """A schedule that comes up in half a second."""
    times: dict[str, Any] = {"next_at": clock.now() + SECOND // 2, "fired_through": clock.now()}
    return schedule(name, **times | changes)


class TestPutSchedules(StoreSuite):
    """`write_schedules`, as declarations use it."""

    async def test_a_new_schedule_is_kept_as_declared(self, store: Store, clock: FakeClock) -> None:
        new = declared(
            clock,
            payload='{"x":1}',
            queue="mail",
            priority=3,
            on_crash="fail",
            retries=2,
            timeout=SECOND,
            overlap="allow",
            misfire_window=5,
            owner="user",
        )
        assert await declare(store, new) == ["s"]
        record = await read_schedule(store, "s")
        assert record == replace(new, rev=record.rev, created_at=clock.now(), updated_at=clock.now())
        assert record.rev > 0

    async def test_everything_that_is_written_of_a_schedule_is_read_back(
        self, store: Store, clock: FakeClock
    ) -> None:
        numbers = iter(range(1, 100))
        text = {"queue", "terms", "paused_reason", "paused_by"}
        numeric = {
            "priority",
            "retries",
            "timeout",
            "overlap_limit",
            "misfire_window",
            "misfire_limit",
            "pause_after",
        }
        numeric |= {"paused_at", "paused_until", "parked_at", "made", "streak_from"}
        values: dict[str, Any] = {name: f"the {name}" for name in text} | {
            name: next(numbers) for name in numeric
        }
        new = declared(clock, overlap="queue_all", misfire="all", owner="user", on_crash="fail", **values)
        await declare(store, new)
        record = await read_schedule(store, "s")
        stamps: dict[str, Any] = {"created_at": clock.now(), "updated_at": clock.now()}
        assert record == replace(new, rev=record.rev, **stamps)
        now = clock.advance(1)
        back = replace(declared(clock), rev=record.rev, fired_through=record.fired_through)
        assert await store.write_schedules([ScheduleUpdate(before=record, after=back)]) == {"s"}
        after = await read_schedule(store, "s")
        assert after == replace(back, rev=record.rev + 1, created_at=record.created_at, updated_at=now)

    async def test_an_unchanged_schedule_is_not_written(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        before = await read_schedule(store, "s")
        clock.advance(100)
        assert await declare(other, declared(clock, trigger="anchored elsewhere")) == []
        assert await read_schedule(store, "s") == before

    @pytest.mark.parametrize(
        "edit",
        [
            {"task": "other"},
            {"payload": "[1]"},
            {"queue": "other"},
            {"priority": 0},
            {"on_crash": "fail"},
            {"retries": 0},
            {"timeout": 1},
            {"overlap": "allow"},
            {"overlap": "queue_all", "overlap_limit": 3},
            {"misfire": "all", "misfire_limit": 3},
            {"misfire_window": 1},
            {"pause_after": 3},
            {"terms": '{"tags": ["a"]}'},
        ],
        ids=str,
    )
    async def test_an_edit_is_written_and_leaves_the_next_time_alone(
        self, store: Store, clock: FakeClock, edit: dict[str, Any]
    ) -> None:
        new = declared(clock)
        await declare(store, new)
        before = await read_schedule(store, "s")
        clock.advance(1)
        moved = redeclared(
            replace(new, next_at=clock.now() + 7, fired_through=clock.now() + 6, trigger="elsewhere", **edit)
        )
        assert await declare(store, moved) == ["s"]
        after = await read_schedule(store, "s")
        assert after == replace(
            before,
            rev=after.rev,
            updated_at=clock.now(),
            declared=moved.declared,
            streak_from=clock.now(),
            **edit,
        )
        assert after.rev > before.rev
        # And back again, also from a value to none.
        assert await declare(store, new) == ["s"]
        assert await declare(store, new) == []

    async def test_a_new_trigger_brings_its_own_times(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        before = await read_schedule(store, "s")
        now = clock.advance(1)
        edited = declared(clock, declared="hourly", trigger="{}", next_at=now + 9, fired_through=now)
        assert await declare(store, edited) == ["s"]
        after = await read_schedule(store, "s")
        assert (after.trigger, after.next_at, after.fired_through) == ("{}", now + 9, now)
        assert after.rev > before.rev

    async def test_a_new_trigger_is_not_silenced_by_what_the_old_one_had_planted(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        await store.fire([firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)])
        await declare(store, declared(clock, declared="sooner", next_at=clock.now() + 1))
        record = await read_schedule(store, "s")
        assert record.next_at == clock.now() + 1
        assert record.fired_through <= clock.now()

    async def test_a_paused_schedule_stays_paused_when_it_is_edited(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        await pause(store, "s", reason="repairs")
        await declare(store, declared(clock, payload="[1]", declared="hourly"))
        record = await read_schedule(store, "s")
        assert (record.paused_at, record.paused_reason) == (clock.now(), "repairs")

    async def test_only_the_changed_names_are_told(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock, "a"), declared(clock, "b"))
        batch = [declared(clock, "a"), declared(clock, "b", priority=1), declared(clock, "c")]
        assert sorted(await declare(store, *batch)) == ["b", "c"]
        assert (
            await declare(
                store,
            )
            == []
        )

    async def test_many_schedules_and_odd_text_survive(self, store: Store, clock: FakeClock) -> None:
        batch = [
            declared(clock, f"s{number:03}", payload=ODD_TEXT, trigger=ODD_TEXT) for number in range(200)
        ]
        assert len(await declare(store, *batch)) == 200
        records = await store.schedules()
        assert [record.name for record in records] == [new.name for new in batch]
        assert {(record.payload, record.trigger) for record in records} == {(ODD_TEXT, ODD_TEXT)}

    async def test_of_processes_that_declare_the_same_one_makes_the_change(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        batch = [declared(clock, f"s{number}") for number in range(20)]
        told = await asyncio.gather(*(declare((store, other)[n % 2], *batch) for n in range(6)))
        assert sorted(name for names in told for name in names) == sorted(new.name for new in batch)


class TestDueSchedules(StoreSuite):
    """`due_schedules`."""

    async def test_they_come_earliest_first_up_to_the_window(self, store: Store, clock: FakeClock) -> None:
        now = clock.now()
        times = {"late": now - 5, "edge": now + 10, "soon": now + 3, "after": now + 11, "never": None}
        await declare(store, *[declared(clock, name, next_at=at) for name, at in times.items()])
        due = await store.due_schedules(ahead=10, limit=500)
        assert (due.now, due.next_at) == (now, now + 11)
        assert [record.name for record in due.schedules] == ["late", "soon", "edge"]
        assert due.schedules[0] == await read_schedule(store, "late")

    async def test_no_more_come_than_the_limit(self, store: Store, clock: FakeClock) -> None:
        await declare(store, *[declared(clock, f"s{n}", next_at=clock.now() - n) for n in range(5)])
        due = await store.due_schedules(ahead=0, limit=2)
        assert [record.name for record in due.schedules] == ["s4", "s3"]
        assert due.next_at == clock.now() - 2

    async def test_paused_ones_do_not_come_and_are_not_waited_for(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock, "a", next_at=clock.now()), declared(clock, "b"))
        for name in ("a", "b"):
            await pause(store, name)
        assert await store.due_schedules(ahead=0, limit=500) == DueSchedules(clock.now(), [], None)

    async def test_live_jobs_are_counted_and_ended_ones_are_not(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        now = clock.now()
        await declare(store, declared(clock, next_at=now), declared(clock, "other", next_at=now))
        await store.enqueue([occurrence_job("s", now - 3), occurrence_job("s", now - 2, priority=9)])
        await store.enqueue([occurrence_job("s", now - 1, state=State.SKIPPED, reason="misfire"), job()])
        claim = await take_one(store, limit=1)
        due = {record.name: record.live for record in (await store.due_schedules(ahead=0, limit=9)).schedules}
        assert due == {"s": 2, "other": 0}
        await finish(store, claim, now=now)
        assert (await read_schedule(store, "s")).live == 1


class TestPauseAndDelete(StoreSuite):
    """`write_schedules`, as those use it who pause and resume, and `delete_schedule`."""

    async def test_what_does_not_exist_is_not_written(self, store: Store, clock: FakeClock) -> None:
        ghost = replace(declared(clock), rev=1)
        assert await store.write_schedules([ScheduleUpdate(before=ghost, after=ghost)]) == frozenset()
        assert not await delete(store, "nothing")
        assert await store.schedules() == []

    async def test_what_was_changed_or_fired_since_it_was_read_is_not_written(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        read = await read_schedule(store, "s")
        await store.fire([firing(read, next_at=clock.now() + MINUTE)])
        stale = ScheduleUpdate(
            before=read, after=replace(read, payload="[1]"), jobs=(job(),), withdraw="test"
        )
        assert await other.write_schedules([stale]) == frozenset()
        now = await read_schedule(store, "s")
        await alter(store, "s", queue="other")
        assert await other.write_schedules([replace(stale, before=now)]) == frozenset()
        record = await read_schedule(store, "s")
        assert (record.payload, record.queue, record.live) == ("{}", "other", 1)
        assert len(await store.find(JobFilter())) == 1

    async def test_what_goes_with_a_change_is_stored_with_it(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        before = await read_schedule(store, "s")
        skipped = occurrence_job("s", clock.now(), state=State.SKIPPED, reason="paused", span_count=3)
        entry = AuditEntry(verb="resume", target="s", who="ann", detail={"reason": "é\x00", "of": [1, None]})
        change = ScheduleUpdate(before=before, after=before, jobs=(skipped,), entry=entry)
        assert await store.write_schedules([change]) == {"s"}
        assert (await read(store, skipped.id)).span_count == 3
        noted, first = await store.entries("s", limit=9)
        assert (noted.verb, noted.who, noted.at, noted.detail["of"]) == (
            "resume",
            "ann",
            clock.now(),
            [1, None],
        )
        assert (first.verb, first.who) == ("declare", "test")
        assert await store.entries("s", limit=9, before=noted.id) == [first]
        assert await store.entries("other", limit=9) == []

    async def test_a_pause_shows_when_and_why(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        clock.advance(1)
        assert await pause(store, "s", reason="it's broken")
        record = await read_schedule(store, "s")
        assert (record.paused_at, record.paused_reason) == (clock.now(), "it's broken")

    async def test_a_resumed_schedule_goes_on_from_where_it_is_told(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        await pause(store, "s", reason="repairs")
        now = clock.advance("1h")
        assert await alter(store, "s", paused_at=None, paused_reason=None, next_at=now + 5, fired_through=now)
        record = await read_schedule(store, "s")
        assert (record.paused_at, record.paused_reason) == (None, None)
        assert (record.next_at, record.fired_through) == (now + 5, now)
        assert len((await store.due_schedules(ahead=5, limit=1)).schedules) == 1

    async def test_a_deleted_schedule_is_gone_and_its_history_stays(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        await store.enqueue([past := occurrence_job("s", clock.now(), state=State.SKIPPED)])
        assert await delete(store, "s")
        assert await store.schedules() == []
        assert (await read(store, past.id)).schedule == "s"
        assert not await delete(store, "s")

    async def test_a_deleted_schedule_can_be_declared_anew(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        await delete(store, "s")
        assert await declare(store, declared(clock)) == ["s"]
