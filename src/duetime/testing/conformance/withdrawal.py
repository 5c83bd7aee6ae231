"""What a schedule has planted is taken back when it changes: no occurrence is swallowed, and none fires twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.model.outcome import Released, Snoozed
from duetime.model.schedule.actions import park
from duetime.model.schedule.firing import fire
from duetime.model.schedule.record import ScheduleUpdate
from duetime.model.states import State
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.every import Every
from duetime.stores.base import JobFilter, Store
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
    pause,
    put,
    read,
    read_schedule,
    take,
    take_one,
)
from duetime.testing.conformance.schedules import MINUTE, declared
from duetime.testing.conformance.suite import StoreSuite


@pytest.mark.parametrize("verb", ["pause", "delete", "edit", "new trigger"])
class TestWithdrawal(StoreSuite):
    """What happens to planted jobs when their schedule is paused, deleted or changed."""

    async def apply(self, store: Store, clock: FakeClock, verb: str) -> None:
        """Do what withdraws planted jobs."""
        match verb:
            case "pause":
                assert await pause(store, "s", reason="test")
            case "delete":
                assert await delete(store, "s")
            case "edit":
                assert await declare(store, declared(clock, payload="[1]")) == ["s"]
            case _:
                assert await declare(store, declared(clock, declared="hourly")) == ["s"]

    async def test_a_planted_job_is_withdrawn_with_a_reason(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await declare(store, declared(clock))
        plan = firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)
        await store.fire([plan])
        await self.apply(store, clock, verb)
        record = await read(store, plan.jobs[0].id)
        assert (record.state, record.finished_at, record.schedule) == (State.CANCELLED, clock.now(), "s")
        assert record.reason

    async def test_a_planted_job_that_a_worker_holds_unstarted_is_called_off_unless_the_schedule_goes_on(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock))
        await store.fire([firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)])
        claim = await take_one(store, ahead=SECOND)
        await self.apply(store, clock, verb)
        if verb in {"edit", "new trigger"}:
            # Its occurrence could neither be planted again, as it may be about to start, nor be left out.
            assert (await store.attend("w1")).cancelling == frozenset()
            return
        assert (await store.attend("w1")).cancelling == {claim.job_id}
        await finish(store, claim, Released(), now=clock.now(), started=False)
        record = await read(store, claim.job_id)
        assert (record.state, record.started_at) == (State.CANCELLED, None)
        assert record.reason

    async def test_one_that_waits_for_its_drawn_time_ends_and_accounts_for_its_occurrence(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        await declare(store, declared(clock))
        waiting = job(schedule="s", occurrence=now - 5, due_at=now + MINUTE)
        held = job(schedule="s", occurrence=now - 4, due_at=now + 9)
        await store.enqueue([waiting, held])
        assert (await take_one(store, ahead=SECOND)).job_id == held.id
        place = (await read_schedule(store, "s")).made
        await self.apply(store, clock, verb)
        record = await read(store, waiting.id)
        # The schedule goes on as it was after an edit, and so does the job.
        expected = State.PENDING if verb == "edit" else State.CANCELLED
        assert (record.state, record.occurrence) == (expected, now - 5)
        called_off = {held.id} if verb in {"pause", "delete"} else set[str]()
        assert (await store.attend("w1")).cancelling == called_off
        if verb != "delete":
            after = await read_schedule(store, "s")
            assert after.fired_through >= now - 1, "it does not come again"
            assert after.made == place

    async def test_one_that_waits_for_its_next_try_or_was_snoozed_stays(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock))
        await store.enqueue([tried := occurrence_job("s", clock.now() - 5)])
        later = Snoozed(wait=MINUTE)
        await finish(store, await take_one(store), later, now=clock.now())
        await self.apply(store, clock, verb)
        assert (await read(store, tried.id)).state is State.PENDING

    async def test_what_is_due_started_ended_or_of_others_stays(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        await declare(store, declared(clock), declared(clock, "other"))
        running = await store.enqueue([occurrence_job("s", now - 2)])
        await take_one(store)
        due = await store.enqueue([occurrence_job("s", now - 1), occurrence_job("s", now)])
        ended = await store.enqueue([occurrence_job("s", now + 1, state=State.SKIPPED, reason="test")])
        strangers = [await put(store, delay=5), *await store.enqueue([occurrence_job("other", now + 5)])]
        before = await store.get([*running, *due, *ended, *strangers])
        await self.apply(store, clock, verb)
        assert await store.get([*running, *due, *ended, *strangers]) == before
        assert (await store.attend("w1")).cancelling == frozenset()

    async def test_a_held_job_whose_time_has_come_or_that_has_begun_is_left_to_its_worker(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock))
        now = clock.now()
        await store.enqueue([occurrence_job("s", now + 1), occurrence_job("s", now + 9)])
        _, begun = await take(store, ahead=SECOND)
        await store.mark_started([begun.token], now)
        clock.set(now + 1)
        await self.apply(store, clock, verb)
        assert (await store.attend("w1")).cancelling == frozenset()

    async def test_a_withdrawn_occurrence_can_be_planted_again(
        self, store: Store, clock: FakeClock, verb: str
    ) -> None:
        await hire(store, "w1")
        await declare(store, new := declared(clock))
        await store.fire([firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)])
        await self.apply(store, clock, verb)
        assert new.next_at is not None
        again = occurrence_job("s", new.next_at)
        assert await store.enqueue([again]) == [again.id]
        assert [claim.job_id for claim in await take(store, ahead=SECOND)] == [again.id]


class TestRewind(StoreSuite):
    """Where a schedule stands after what it planted was taken back."""

    async def planted(self, store: Store, clock: FakeClock) -> tuple[Every, Instant]:
        """Declare a schedule that comes up in half a second, and plant its job; return when that is."""
        at = clock.now() + SECOND // 2
        trigger = Every(interval=MINUTE, start=at)
        await declare(store, declared(clock))
        assert await self.fire(store, trigger) == [at]
        return trigger, at

    async def fire(self, store: Store, trigger: Every) -> list[int | None]:
        """Fire what is due, as a worker does; return the occurrences of the jobs that were made."""
        due = await store.due_schedules(ahead=SECOND, limit=9)
        plans = [fire(record, trigger, now=due.now, ahead=SECOND) for record in due.schedules]
        applied = await store.fire([plan for plan in plans if plan is not None])
        return [new.occurrence for plan in plans if plan and plan.name in applied for new in plan.jobs]

    async def fates(self, store: Store) -> list[State]:
        """How the jobs of the schedule stand, oldest first."""
        return [record.state for record in reversed(await store.find(JobFilter(schedule="s")))]

    async def test_an_edit_just_before_an_occurrence_lets_it_run_once_as_edited(
        self, store: Store, clock: FakeClock
    ) -> None:
        trigger, at = await self.planted(store, clock)
        assert await declare(store, declared(clock, payload="[1]")) == ["s"]
        record = await read_schedule(store, "s")
        assert (record.next_at, record.fired_through) == (at, at - 1)
        clock.set(at)
        assert await self.fire(store, trigger) == [at]
        assert await self.fire(store, trigger) == []
        await hire(store, "w1")
        assert (await take_one(store)).payload == "[1]"

    async def test_an_edit_lets_a_job_that_a_worker_holds_run_as_it_was_and_makes_no_second(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        trigger, at = await self.planted(store, clock)
        claim = await take_one(store, ahead=SECOND)
        assert await declare(store, declared(clock, payload="[1]")) == ["s"]
        clock.set(at)
        assert await self.fire(store, trigger) == []
        assert await finish(store, claim, now=clock.now()) == {claim.token}
        assert await self.fates(store) == [State.SUCCEEDED]

    @pytest.mark.parametrize("holder", ["nobody", "w1"])
    async def test_a_new_trigger_that_still_has_the_occurrence_runs_it_once(
        self, store: Store, clock: FakeClock, holder: str
    ) -> None:
        await hire(store, "w1")
        _, at = await self.planted(store, clock)
        claims = await take(store, ahead=SECOND) if holder == "w1" else []
        # There are others before it, and those are not lost either.
        first, step = clock.now() + SECOND // 10, SECOND // 10
        often = Every(interval=step, start=first)
        new = declared(clock, declared="often", next_at=first, overlap="allow")
        assert await declare(store, new) == ["s"]
        fired = [occurrence for _ in range(5) for occurrence in await self.fire(store, often)]
        assert fired == [first + n * step for n in range(5)]
        assert fired[-1] == at
        (record,) = await store.occurrences("s", since=at, until=at, limit=9)
        assert (record.id in {claim.job_id for claim in claims}) == (holder == "w1")

    async def test_a_pause_and_a_resumption_before_the_occurrence_let_it_run_once(
        self, store: Store, clock: FakeClock
    ) -> None:
        trigger, at = await self.planted(store, clock)
        await pause(store, "s")
        record = await read_schedule(store, "s")
        assert (record.next_at, record.fired_through) == (at, at - 1)
        await alter(store, "s", paused_at=None, fired_through=clock.now(), next_at=at)
        assert await self.fire(store, trigger) == [at]
        assert await self.fire(store, trigger) == []
        assert await self.fates(store) == [State.CANCELLED, State.PENDING]

    async def test_parking_a_schedule_puts_it_back_without_a_next_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        _, at = await self.planted(store, clock)
        change = park(await read_schedule(store, "s"), now=clock.now())
        assert change is not None
        assert await store.write_schedules([change]) == {"s"}
        record = await read_schedule(store, "s")
        assert (record.fired_through, record.next_at, record.made) == (at - 1, None, 0)

    async def test_a_job_that_was_taken_back_was_not_made(self, store: Store, clock: FakeClock) -> None:
        trigger, _ = await self.planted(store, clock)
        assert (await read_schedule(store, "s")).made == 1
        await declare(store, declared(clock, payload="[1]"))
        assert (await read_schedule(store, "s")).made == 0
        await self.fire(store, trigger)
        assert (await read_schedule(store, "s")).made == 1

    async def test_skipping_an_occurrence_that_is_planted_leaves_the_record_in_its_place(
        self, store: Store, clock: FakeClock
    ) -> None:
        trigger, at = await self.planted(store, clock)
        before = await read_schedule(store, "s")
        skipped = occurrence_job("s", at, state=State.SKIPPED, reason="skipped by ann")
        change = ScheduleUpdate(
            before=before, after=before, jobs=(skipped,), withdraw="skipped by ann", again=False
        )
        assert await store.write_schedules([change]) == {"s"}
        clock.set(at)
        assert await self.fire(store, trigger) == []
        assert await self.fates(store) == [State.CANCELLED, State.SKIPPED]
        record = await read_schedule(store, "s")
        assert (record.fired_through, record.next_at, record.made) == (
            at,
            at + MINUTE,
            0,
        )

    async def test_the_first_of_several_planted_jobs_is_where_it_goes_on(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        now = clock.now()
        await store.enqueue([occurrence_job("s", now + n) for n in (7, 3, 5)])
        await alter(store, "s", fired_through=now + 7, next_at=now + 9)
        await pause(store, "s")
        record = await read_schedule(store, "s")
        assert (record.fired_through, record.next_at) == (now + 2, now + 3)

    async def test_each_schedule_of_a_batch_is_put_back_by_itself(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, *[declared(clock, name) for name in "abc"])
        now = clock.now()
        await store.enqueue([occurrence_job("a", now + 1), occurrence_job("b", now + 2)])
        changes = [
            ScheduleUpdate(
                before=record, after=replace(record, paused_at=now, fired_through=now + 5), withdraw="test"
            )
            for record in await store.schedules()
        ]
        changes[1] = replace(changes[1], before=replace(changes[1].before or changes[1].after, rev=99))
        assert await store.write_schedules(changes) == {"a", "c"}
        places = {record.name: record.fired_through for record in await store.schedules()}
        assert places == {"a": now, "b": now, "c": now + 5}
        assert (await read_schedule(store, "b")).live == 1
