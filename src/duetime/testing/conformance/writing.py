"""Schedules are written by compare-and-set: what somebody else has changed meanwhile is never overwritten."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from duetime.model.schedule.actions import CodeSchedule
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.stores.base import Hint, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    alter,
    declare,
    delete,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    read_schedule,
    take_one,
)
from duetime.testing.conformance.schedules import MINUTE, declared
from duetime.testing.conformance.suite import MakeStore, StoreSuite
from duetime.testing.conformance.wakeups import listening


def edit(before: StoredSchedule, who: str = "ann", **changes: object) -> ScheduleUpdate:
    """An edit of a schedule as it was read, with its entry."""
    after = replace(before, **changes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return ScheduleUpdate(
        before=before, after=after, entry=AuditEntry(verb="edit", target=before.name, who=who)
    )


class TestWriteSchedules(StoreSuite):
    """`write_schedules` under concurrency."""

    async def test_of_many_edits_of_what_was_read_one_is_written(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock)]
        await declare(store, *[declared(clock, f"s{n}") for n in range(5)])
        read = await store.schedules()
        told = await asyncio.gather(
            *(
                stores[n % 3].write_schedules(
                    [replace(edit(s, f"p{n}", priority=n), jobs=(job(payload=f"[{n}]"),)) for s in read]
                )
                for n in range(9)
            )
        )
        assert sorted(name for names in told for name in names) == [record.name for record in read]
        for number, names in enumerate(told):
            for name in names:
                assert (await read_schedule(store, name)).priority == number
                assert [e.who for e in await store.entries(name, limit=9)] == [f"p{number}", "test"]
        # A job for each that was written, and none for those that came too late.
        assert len(await store.find(JobFilter())) == len(read)

    async def test_of_many_that_add_a_schedule_one_does(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        def addition(number: int, name: str) -> ScheduleUpdate:
            entry = AuditEntry(verb="add", target=name, who=f"p{number}")
            new = declared(clock, name, payload=f"[{number}]")
            return ScheduleUpdate(before=None, after=new, entry=entry, jobs=(job(),))

        names = [f"s{number}" for number in range(10)]
        told = await asyncio.gather(
            *((store, other)[n % 2].write_schedules([addition(n, name) for name in names]) for n in range(6))
        )
        assert sorted(name for added in told for name in added) == names
        for number, added in enumerate(told):
            for name in added:
                assert (await read_schedule(store, name)).payload == f"[{number}]"
                assert [e.who for e in await store.entries(name, limit=9)] == [f"p{number}"]
        assert len(await store.find(JobFilter())) == len(names)

    async def test_changes_that_belong_together_are_all_written_or_none(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await declare(store, *[declared(clock, f"s{n}") for n in range(3)])
        read = await store.schedules()
        together = [replace(edit(s, priority=9), jobs=(job(),)) for s in read]
        new = declared(clock, "new")
        together.append(
            ScheduleUpdate(before=None, after=new, entry=AuditEntry(verb="put", target="new", who="ann"))
        )
        assert await other.write_schedules([edit(read[1], priority=1)]) == {"s1"}
        assert await store.write_schedules(together, whole=True) == frozenset()
        assert [s.priority for s in await store.schedules()] == [5, 1, 5]
        assert (await store.find(JobFilter()), await store.entries("new", limit=9)) == ([], [])
        together[1] = edit(await read_schedule(store, "s1"), priority=9)
        names = {"new", "s0", "s1", "s2"}
        for _ in range(2):
            # Told again after a lost answer, it is as it was.
            assert await store.write_schedules(together, whole=True) == names
        assert [s.rev for s in await store.schedules()] == [1, 2, 3, 2]

    async def test_an_edit_and_a_firing_at_once_lose_neither(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await declare(store, *[declared(clock, f"s{n}") for n in range(20)])
        read = await store.schedules()
        plans = [firing(record, next_at=clock.now() + MINUTE) for record in read]
        fired, edited = await asyncio.gather(
            store.fire(plans), other.write_schedules([edit(record, queue="other") for record in read])
        )
        assert not fired & edited
        assert fired | edited == {record.name for record in read}
        for record in await store.schedules():
            assert record.queue == ("other" if record.name in edited else "default")
            assert record.live == (record.name in fired)

    async def test_an_edit_counts_from_the_next_reading_on(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        read = await read_schedule(store, "s")
        assert await store.write_schedules([edit(read, queue="one")]) == {"s"}
        assert await store.write_schedules([edit(read, queue="two")]) == frozenset()
        assert await store.write_schedules([edit(await read_schedule(store, "s"), queue="two")]) == {"s"}
        assert (await read_schedule(store, "s")).queue == "two"

    async def test_those_who_fire_hear_of_a_change_and_workers_of_new_jobs(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        change = edit(await read_schedule(store, "s"), queue="other")
        async with listening(store) as heard:
            await store.write_schedules([replace(change, jobs=(job(),))])
            await heard(Hint("schedules"))
            await heard(Hint("jobs"))

    async def test_schedules_are_read_by_name(self, store: Store, clock: FakeClock) -> None:
        await declare(store, *[declared(clock, name) for name in ("c", "a", "b")])
        assert [record.name for record in await store.get_schedules(["b", "a", "nothing"])] == ["a", "b"]
        assert await store.get_schedules(["c"]) == [await read_schedule(store, "c")]
        assert await store.get_schedules([]) == []
        assert await store.get_schedules(["odd\x00\ud800"]) == []

    async def test_what_code_declares_is_told_in_brief(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock, "b"), declared(clock, "a"), declared(clock, "c", owner="user"))
        await store.write_schedules([edit(await read_schedule(store, "b"), parked_at=clock.now())])
        task = (await read_schedule(store, "a")).task
        assert await store.code_schedules() == [
            CodeSchedule("a", task, parked=False),
            CodeSchedule("b", task, parked=True),
        ]


class TestLostAnswers(StoreSuite):
    """What happens when somebody who got no answer asks again."""

    async def test_a_change_that_had_been_written_counts_as_written_and_is_not_written_twice(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        change = replace(edit(await read_schedule(store, "s"), queue="other"), jobs=(job(),))
        assert await store.write_schedules([change]) == {"s"}
        after = await read_schedule(store, "s")
        await alter(store, "s", priority=1)
        assert await other.write_schedules([change]) == {"s"}
        assert await read_schedule(store, "s") == replace(after, priority=1, rev=after.rev + 1)
        assert len(await store.entries("s", limit=9)) == 2
        assert len(await store.find(JobFilter())) == 1

    async def test_an_addition_that_had_been_made_counts_as_made(
        self, store: Store, clock: FakeClock
    ) -> None:
        entry = AuditEntry(verb="add", target="s", who="ann")
        addition = ScheduleUpdate(before=None, after=declared(clock), entry=entry)
        assert await store.write_schedules([addition]) == {"s"}
        assert await store.write_schedules([addition]) == {"s"}
        late = replace(addition, entry=replace(entry, id="another"))
        assert await store.write_schedules([late]) == frozenset()
        assert [noted.id for noted in await store.entries("s", limit=9)] == [entry.id]

    async def test_a_deletion_that_had_been_made_counts_as_made(self, store: Store, clock: FakeClock) -> None:
        await declare(store, declared(clock))
        entry = AuditEntry(verb="delete", target="s", who="ann")
        assert await store.delete_schedule("s", entry)
        assert await store.delete_schedule("s", entry)
        assert not await delete(store, "s")
        assert [noted.verb for noted in await store.entries("s", limit=9)] == ["delete", "declare"]

    async def test_a_repeated_deletion_spares_a_schedule_that_was_added_since(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        entry = AuditEntry(verb="delete", target="s", who="ann")
        assert await store.delete_schedule("s", entry)
        await declare(store, declared(clock))
        assert await store.delete_schedule("s", entry)
        assert len(await store.schedules()) == 1

    async def test_a_deletion_of_what_is_not_there_leaves_no_entry(self, store: Store) -> None:
        assert not await delete(store, "odd\x00name")
        assert await store.entries("odd\x00name", limit=9) == []

    async def test_a_firing_that_had_been_applied_is_refused(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock, next_at=clock.now()))
        await store.enqueue([occurrence_job("s", clock.now() - 1)])
        plan = firing(
            await read_schedule(store, "s"), next_at=clock.now() + MINUTE, pause="failures", cancels=True
        )
        assert await store.fire([plan]) == {"s"}
        before = (await store.schedules(), await store.find(JobFilter()), await store.entries("s", limit=9))
        assert await store.fire([plan]) == frozenset()
        assert (
            await store.schedules(),
            await store.find(JobFilter()),
            await store.entries("s", limit=9),
        ) == before
        await finish(store, await take_one(store), now=clock.now())
        assert (await read_schedule(store, "s")).live == 0
        assert {record.state for record in await store.find(JobFilter())} == {
            State.CANCELLED,
            State.SUCCEEDED,
        }
