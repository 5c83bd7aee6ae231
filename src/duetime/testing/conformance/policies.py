"""What a firing does beside making jobs, and what decides it: pauses, failures in a row, jobs that must give way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import JobTerms
from duetime.model.outcome import Cancelled, Failed, Outcome, Succeeded
from duetime.model.schedule.record import Firing
from duetime.model.states import State
from duetime.model.stored.audit import ITSELF
from duetime.model.time import SECOND, Instant
from duetime.stores.base import DueSchedules, Hint, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.callbacks import callback
from duetime.testing.conformance.kit import (
    alter,
    declare,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    read,
    read_schedule,
    take,
    take_one,
)
from duetime.testing.conformance.schedules import MINUTE, declared
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening


async def due_now(store: Store, clock: FakeClock, **changes: Any) -> Firing:
    """Declare a schedule that is due, and plan its firing."""
    await declare(store, declared(clock, next_at=clock.now(), **changes))
    return firing(await read_schedule(store, "s"), next_at=clock.now() + MINUTE)


class TestPausesOfSchedules(StoreSuite):
    """`fire` with `pause` and `resumes`, and `due_schedules` with those that go on."""

    async def test_a_firing_can_pause_its_schedule(self, store: Store, clock: FakeClock) -> None:
        plan = await due_now(store, clock)
        now = clock.advance(1)
        assert await store.fire([replace(plan, pause="3 failures in a row")]) == {"s"}
        record = await read_schedule(store, "s")
        assert (record.paused_at, record.paused_reason, record.paused_by, record.updated_at) == (
            now,
            "3 failures in a row",
            ITSELF,
            now,
        )
        assert record.rev > plan.rev
        assert record.live == 1
        noted = (await store.entries("s", limit=1))[0]
        assert (noted.verb, noted.who, noted.detail) == ("pause", ITSELF, {"reason": "3 failures in a row"})
        due = await store.due_schedules(ahead=365 * 24 * 60 * MINUTE, limit=9)
        assert due == DueSchedules(now, [], None)

    async def test_an_ordinary_firing_is_no_change(self, store: Store, clock: FakeClock) -> None:
        plan = await due_now(store, clock)
        before = await read_schedule(store, "s")
        clock.advance(1)
        await store.fire([plan])
        after = await read_schedule(store, "s")
        assert (after.rev, after.updated_at, after.streak_from) == (
            before.rev,
            before.updated_at,
            before.streak_from,
        )
        assert len(await store.entries("s", limit=9)) == 1

    async def test_a_schedule_comes_when_the_time_is_over_that_it_was_paused_for(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        await declare(store, *[declared(clock, name) for name in ("soon", "later", "open")])
        for name, until in (("soon", now + 10), ("later", now + 20), ("open", None)):
            await alter(store, name, paused_at=now, paused_until=until)
        assert await store.due_schedules(ahead=SECOND, limit=9) == DueSchedules(now, [], None, now + 10)
        clock.set(now + 10)
        due = await store.due_schedules(ahead=SECOND, limit=9)
        assert [record.name for record in due.schedules] == ["soon"]
        # The one that goes on hides neither when the next one does nor what is due.
        assert due.resumes_at == now + 20

    async def test_it_goes_on_with_a_firing_that_says_so(self, store: Store, clock: FakeClock) -> None:
        plan = await due_now(store, clock)
        until = clock.now() + 5
        await alter(store, "s", paused_at=clock.now(), paused_until=until, paused_by="a", paused_reason="b")
        plan = replace(plan, rev=(await read_schedule(store, "s")).rev)
        for early in (plan, replace(plan, resumes=True)):
            assert await store.fire([early]) == frozenset()
        clock.set(until)
        (record,) = (await store.due_schedules(ahead=0, limit=9)).schedules
        assert await store.fire([replace(plan, resumes=True)]) == {"s"}
        after = await read_schedule(store, "s")
        assert (after.paused_at, after.paused_until, after.paused_by, after.paused_reason) == (None,) * 4
        assert (after.streak_from, after.updated_at) == (until, until)
        assert after.rev > record.rev
        noted = (await store.entries("s", limit=1))[0]
        assert (noted.verb, noted.who) == ("resume", ITSELF)

    async def test_one_whose_pause_is_over_can_be_moved_on_before_it_resumes(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await due_now(store, clock)
        await alter(store, "s", paused_at=clock.now(), paused_until=clock.now(), paused_reason="repairs")
        before = await read_schedule(store, "s")
        assert await store.fire([replace(plan, rev=before.rev, jobs=())]) == {"s"}
        assert await read_schedule(store, "s") == replace(
            before, fired_through=plan.fired_through, next_at=plan.next_at
        )

    async def test_one_that_was_paused_again_meanwhile_stays_paused(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await due_now(store, clock)
        await alter(store, "s", paused_at=clock.now(), paused_until=clock.now())
        stale = replace(plan, rev=(await read_schedule(store, "s")).rev, resumes=True)
        await alter(store, "s", paused_until=clock.now() + MINUTE)
        assert await store.fire([stale]) == frozenset()
        assert (await read_schedule(store, "s")).paused_at == clock.now()

    async def test_parked_ones_never_come_and_never_fire(self, store: Store, clock: FakeClock) -> None:
        plan = await due_now(store, clock)
        await alter(store, "s", parked_at=clock.now())
        plan = replace(plan, rev=(await read_schedule(store, "s")).rev)
        assert await store.due_schedules(ahead=0, limit=9) == DueSchedules(clock.now(), [], None)
        assert await store.fire([plan, replace(plan, resumes=True)]) == frozenset()
        await alter(store, "s", paused_at=clock.now(), paused_until=clock.now())
        assert await store.due_schedules(ahead=0, limit=9) == DueSchedules(clock.now(), [], None)

    async def test_what_is_beyond_the_limit_is_told_as_the_next_to_come(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        await declare(store, *[declared(clock, f"due{n}", next_at=now - n) for n in range(3)])
        await declare(store, *[declared(clock, f"until{n}") for n in range(3)])
        for number in range(3):
            await alter(store, f"until{number}", paused_at=now, paused_until=now - number)
        for limit, names, next_at, resumes_at in (
            (2, ["until2", "until1"], now - 2, now),
            (4, ["until2", "until1", "until0", "due2"], now - 1, None),
            (6, ["until2", "until1", "until0", "due2", "due1", "due0"], None, None),
        ):
            due = await store.due_schedules(ahead=0, limit=limit)
            assert [record.name for record in due.schedules] == names
            assert (due.next_at, due.resumes_at) == (next_at, resumes_at)


class TestStreaks(StoreSuite):
    """How many failures in a row are counted."""

    async def end(self, store: Store, clock: FakeClock, occurrence: Instant, outcome: Outcome) -> None:
        """Let the job of an occurrence run to its end."""
        await store.enqueue([occurrence_job("s", occurrence)])
        await finish(store, await take_one(store), outcome, now=clock.now())

    @pytest.mark.parametrize(
        ("story", "streak"),
        [
            ("", 0),
            ("f", 1),
            ("fff", 3),
            ("ffs", 0),
            ("fsff", 2),
            ("fcf", 2),
            ("fkf", 2),
            ("sfck", 1),
            ("ffsfsf", 1),
        ],
    )
    async def test_failures_since_the_last_success_are_counted(
        self, store: Store, clock: FakeClock, story: str, streak: int
    ) -> None:
        """`f` fails, `s` succeeds, `c` is cancelled, `k` is skipped."""
        await hire(store, "w1")
        await declare(store, declared(clock, pause_after=100), declared(clock, "other", pause_after=1))
        ends: dict[str, Outcome] = {"f": Failed(error="boom"), "s": Succeeded(), "c": Cancelled("stopped")}
        for number, letter in enumerate(story):
            occurrence = clock.now() - 100 + number
            if letter == "k":
                await store.enqueue([occurrence_job("s", occurrence, state=State.SKIPPED, reason="overlap")])
            else:
                await self.end(store, clock, occurrence, ends[letter])
        assert (await read_schedule(store, "s")).streak == streak
        assert (await read_schedule(store, "other")).streak == 0
        assert (await store.get_schedules(["s"]))[0].streak == streak

    async def test_what_was_before_the_start_of_the_count_does_not_count(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock, pause_after=100))
        now = clock.now()
        for number in range(5):
            await self.end(store, clock, now - number, Failed(error="boom"))
        await alter(store, "s", streak_from=now - 1)
        assert (await read_schedule(store, "s")).streak == 2

    async def test_runs_by_hand_jobs_that_wait_and_schedules_that_are_never_paused_do_not_count(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await declare(store, declared(clock, pause_after=100))
        await self.end(store, clock, clock.now() - 1, Failed(error="boom"))
        await store.enqueue([job(schedule="s")])
        await finish(store, await take_one(store), Failed(error="boom"), now=clock.now())
        await store.enqueue([occurrence_job("s", clock.now())])
        assert (await read_schedule(store, "s")).streak == 1
        await alter(store, "s", pause_after=None)
        assert (await read_schedule(store, "s")).streak == 0


class TestGivingWay(StoreSuite):
    """`fire` with `cancels`."""

    async def test_jobs_that_have_not_ended_give_way_to_the_new_one(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        plan = await due_now(store, clock)
        now = clock.now()
        await declare(store, declared(clock, "other"))
        await store.enqueue([occurrence_job("s", now - 9)])
        running = await take_one(store)
        terms = JobTerms(callbacks=json.dumps({"cancel": callback("tell")}))
        waiting = occurrence_job("s", now - 8, terms=terms)
        by_hand, made_up, ended, stranger = (
            job(schedule="s"),
            occurrence_job("s", now - 5, span_first=now - 5),
            occurrence_job("s", now - 7, state=State.SKIPPED, reason="test"),
            occurrence_job("other", now - 6),
        )
        await store.enqueue([waiting, by_hand, made_up, ended, stranger])
        async with listening(store) as heard:
            assert await store.fire([replace(plan, cancels=True)]) == {"s"}
            await heard(Hint("worker", "w1"))
        assert (await store.attend("w1")).cancelling == {running.job_id}
        record = await read(store, waiting.id)
        assert (record.state, record.reason) == (State.CANCELLED, "superseded by the next occurrence")
        for job_id in (by_hand.id, made_up.id):
            assert (await read(store, job_id)).state is State.PENDING, "not made by the schedule itself"
        assert (await read(store, ended.id)).state is State.SKIPPED
        assert (await read(store, stranger.id)).state is State.PENDING
        assert (await read(store, plan.jobs[0].id)).state is State.PENDING
        called = await store.find(JobFilter(task="tell"))
        assert [record.parent for record in called] == [waiting.id]

    async def test_a_firing_that_is_refused_ends_nothing(self, store: Store, clock: FakeClock) -> None:
        plan = await due_now(store, clock)
        await store.enqueue([waiting := occurrence_job("s", clock.now() - 9)])
        assert await store.fire([replace(plan, cancels=True, rev=99)]) == frozenset()
        assert (await read(store, waiting.id)).state is State.PENDING

    async def test_only_those_of_the_schedules_that_ask_for_it_end(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        plans = list[Firing]()
        for name in "ab":
            await declare(store, declared(clock, name, next_at=clock.now()))
            await store.enqueue([occurrence_job(name, clock.now() - 9)])
            plans.append(firing(await read_schedule(store, name), next_at=None, cancels=name == "a"))
        assert await store.fire(plans) == {"a", "b"}
        assert sorted(str(claim.schedule) for claim in await take(store)) == ["a", "b", "b"]

    async def test_jobs_are_counted_as_made_and_skipped_ones_are_not(
        self, store: Store, clock: FakeClock
    ) -> None:
        plan = await due_now(store, clock)
        skipped = occurrence_job("s", clock.now() - 1, state=State.SKIPPED, reason="misfire", span_count=7)
        await store.fire([replace(plan, jobs=(skipped, *plan.jobs))])
        assert (await read_schedule(store, "s")).made == 1
        await store.fire([firing(await read_schedule(store, "s"), next_at=None, jobs=())])
        assert (await read_schedule(store, "s")).made == 1
