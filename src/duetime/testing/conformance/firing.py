"""An occurrence is fired once, by whoever comes first, and never again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from duetime.model.ids import new_job_id
from duetime.model.schedule.record import Firing
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import DueSchedules, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    declare,
    delete,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    pause,
    prune,
    read,
    read_schedule,
    redeclared,
    schedule,
    take_one,
)
from duetime.testing.conformance.suite import MakeStore, StoreSuite

MINUTE = 60 * SECOND


async def planned(store: Store, clock: FakeClock, name: str = "s") -> Firing:
    """Declare a schedule that is due now, and plan its firing."""
    await declare(store, schedule(name, next_at=clock.now(), fired_through=clock.now() - 1))
    return firing(await read_schedule(store, name), next_at=clock.now() + MINUTE)


def with_new_ids(plan: Firing) -> Firing:
    """The same firing as another process plans it."""
    return replace(plan, jobs=tuple(new._replace(id=new_job_id()) for new in plan.jobs))


async def jobs_of(store: Store, name: str = "s") -> list[str]:
    """The jobs of a schedule."""
    return [record.id for record in await store.find(JobFilter(schedule=name))]


class TestFire(StoreSuite):
    """`fire`."""

    async def test_a_firing_moves_the_schedule_and_stores_the_job(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        assert await store.fire([plan]) == {"s"}
        record = await read_schedule(store, "s")
        assert (record.fired_through, record.next_at, record.live) == (clock.now(), clock.now() + MINUTE, 1)
        made = await read(store, plan.jobs[0].id)
        assert (made.schedule, made.occurrence, made.due_at) == ("s", clock.now(), clock.now())

    async def test_the_same_firing_is_applied_once(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        assert await store.fire([plan]) == {"s"}
        assert await other.fire([plan]) == frozenset()
        assert await other.fire([with_new_ids(plan)]) == frozenset()
        assert await jobs_of(store) == [plan.jobs[0].id]

    @pytest.mark.covers("occurrence-twice")
    async def test_of_many_processes_that_fire_at_once_one_succeeds(
        self, store: Store, other: Store, make_store: MakeStore, clock: FakeClock
    ) -> None:
        stores = [store, other, await make_store(clock)]
        plans = [await planned(store, clock, f"s{number}") for number in range(5)]
        applied = await asyncio.gather(
            *(stores[number % 3].fire([with_new_ids(plan) for plan in plans]) for number in range(9))
        )
        assert sorted(name for names in applied for name in names) == [plan.name for plan in plans]
        for plan in plans:
            assert len(await jobs_of(store, plan.name)) == 1

    @pytest.mark.covers("occurrence-twice")
    async def test_what_has_fired_does_not_fire_again_after_its_history_was_pruned(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        plan = await planned(store, clock)
        await store.fire([plan])
        await finish(store, await take_one(store), now=clock.now())
        assert await prune(store, before=clock.now() + 1) == 1
        assert await store.fire([with_new_ids(plan)]) == frozenset()
        assert await jobs_of(store) == []

    @pytest.mark.parametrize("change", ["fired", "edited", "paused", "deleted", "deleted and declared anew"])
    async def test_a_firing_planned_before_a_change_is_refused(
        self, store: Store, clock: FakeClock, change: str
    ) -> None:
        plan = await planned(store, clock)
        new = schedule("s", next_at=clock.now(), fired_through=clock.now() - 1)
        match change:
            case "fired":
                await store.fire([replace(plan, fired_through=clock.now() + 1, jobs=())])
            case "edited":
                await declare(store, redeclared(replace(new, payload="[1]")))
            case "paused":
                await pause(store, "s")
            case _:
                await delete(store, "s")
        if change == "deleted and declared anew":
            clock.advance(1)
            await declare(store, replace(new, fired_through=clock.now()))
        before = await store.schedules()
        assert await store.fire([plan]) == frozenset()
        assert await store.schedules() == before
        assert await jobs_of(store) == []

    async def test_a_paused_schedule_does_not_fire_though_the_plan_is_up_to_date(
        self, store: Store, clock: FakeClock
    ) -> None:
        await planned(store, clock)
        await pause(store, "s")
        plan = firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)
        assert await store.fire([plan]) == frozenset()
        assert await jobs_of(store) == []

    async def test_a_batch_applies_what_holds_and_leaves_the_rest(
        self, store: Store, clock: FakeClock
    ) -> None:
        good, paused, stale = [await planned(store, clock, name) for name in ("good", "paused", "stale")]
        await pause(store, "paused")
        batch = [paused, good, replace(stale, expected=stale.expected - 1)]
        assert await store.fire(batch) == {"good"}
        assert await jobs_of(store, "good") == [good.jobs[0].id]
        assert await jobs_of(store, "paused") == await jobs_of(store, "stale") == []
        assert await store.fire([]) == frozenset()

    async def test_an_occurrence_that_has_its_job_already_gets_no_second(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        there = occurrence_job("s", clock.now())
        await store.enqueue([there])
        assert await store.fire([plan]) == {"s"}
        assert await jobs_of(store) == [there.id]

    async def test_skipped_occurrences_are_recorded_beside_the_one_that_runs(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        missed = job(
            schedule="s",
            occurrence=clock.now() - 1,
            state=State.SKIPPED,
            reason="misfire",
            span_first=clock.now() - 9,
            span_count=9,
        )
        await store.fire([replace(plan, jobs=(missed, *plan.jobs))])
        record = await read(store, missed.id)
        assert (record.state, record.reason, record.span_count) == (State.SKIPPED, "misfire", 9)
        assert (await read_schedule(store, "s")).live == 1

    async def test_a_schedule_that_has_ended_is_due_no_more(self, store: Store, clock: FakeClock) -> None:
        plan = await planned(store, clock)
        assert await store.fire([replace(plan, next_at=None)]) == {"s"}
        clock.advance("365d")
        assert await store.due_schedules(ahead=SECOND, limit=9) == DueSchedules(clock.now(), [], None)

    async def test_a_firing_can_move_a_schedule_without_making_jobs(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        assert await store.fire([replace(plan, jobs=())]) == {"s"}
        assert (await read_schedule(store, "s")).next_at == clock.now() + MINUTE

    async def test_one_firing_after_another_goes_on_without_an_edit(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await planned(store, clock)
        for _ in range(3):
            assert await store.fire([plan]) == {"s"}
            clock.advance("1m")
            plan = firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)
        assert len(await jobs_of(store)) == 3
