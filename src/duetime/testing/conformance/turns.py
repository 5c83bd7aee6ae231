"""Jobs of a schedule that wait for each other start one at a time, over all workers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.explain.facts import LimitFacts
from duetime.model.job import NewJob
from duetime.model.limits import UNLIMITED, Gate, schedule_gate
from duetime.model.outcome import Failed
from duetime.model.retry import fixed
from duetime.model.time import SECOND
from duetime.stores.base import Hint, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    declare,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    read_schedule,
    rescue,
    schedule,
    take,
)
from duetime.testing.conformance.limits import ask, gated, pass_all
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening


def turn(clock: FakeClock, *, name: str = "s", ago: int = 0, **changes: Any) -> NewJob:
    """A job of a schedule that waits for the others of it."""
    occurrence = clock.now() - ago * SECOND
    new = job(schedule=name, occurrence=occurrence, due_at=occurrence, **changes)
    return new._replace(terms=replace(new.terms, gate=schedule_gate(name)))


class TestTurns(StoreSuite):
    """`claim_limited` at the gates of schedules."""

    @pytest.mark.parametrize("limits", [{}, {TASK: Gate(most=9)}, {TASK: UNLIMITED}])
    async def test_one_at_a_time_starts_whatever_the_task_allows(
        self, store: Store, clock: FakeClock, limits: dict[str, Gate]
    ) -> None:
        await hire(store, "w1", "w2")
        jobs = [turn(clock, ago=ago) for ago in (3, 2, 1)]
        await store.enqueue(jobs)
        for expected in jobs:
            (claim,) = await pass_all(store, "w1", limits=limits)
            assert claim.job_id == expected.id, "the earliest comes first"
            assert await pass_all(store, "w2", limits=limits) == []
            await finish(store, claim, now=clock.now())
        assert await pass_all(store, limits=limits) == []

    async def test_schedules_of_one_task_do_not_wait_for_each_other(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([turn(clock, name=name, ago=ago) for name in ("a", "b") for ago in (1, 2)])
        assert sorted(claim.schedule or "" for claim in await pass_all(store, limits={})) == ["a", "b"]

    async def test_many_claimers_at_once_start_one(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([turn(clock, ago=ago) for ago in range(5)])
        claimed = await asyncio.gather(
            *(ask((store, other)[n % 2], f"w{n % 2 + 1}", limits={}) for n in range(6))
        )
        assert sum(len(found.claims) for found in claimed) == 1

    async def test_it_waits_for_a_job_that_was_made_before_the_schedule_took_turns(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([occurrence_job("s", clock.now() - 9), occurrence_job("other", clock.now() - 9)])
        claims = await take(store)
        await store.enqueue([second := turn(clock)])
        waiting = await ask(store, limits={})
        assert waiting.claims == []
        assert waiting.again_at is not None, "nobody tells when such a job has ended"
        for claim in claims:
            await finish(store, claim, now=clock.now())
        assert [claim.job_id for claim in await pass_all(store, limits={})] == [second.id]

    async def test_it_waits_for_a_job_of_the_task_that_the_schedule_had_before(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([turn(clock, ago=2)])
        (claim,) = await pass_all(store, limits={})
        await store.enqueue([second := turn(clock, task="another")])
        tasks = (TASK, "another")
        assert (await ask(store, limits={}, tasks=tasks)).claims == []
        await finish(store, claim, now=clock.now())
        found = await ask(store, limits={}, tasks=tasks)
        assert [claim.job_id for claim in found.claims] == [second.id]

    async def test_jobs_of_a_schedule_do_not_count_at_the_gate_of_their_task(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await store.enqueue([occurrence_job("s", clock.now() - 9)])
        await take(store)
        await store.enqueue([gated(schedule="s")])
        assert len((await ask(store, rule=Gate(most=1))).claims) == 1

    async def test_one_that_failed_waits_for_its_retry_and_lets_the_next_pass(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first, second = turn(clock, ago=2), turn(clock, ago=1)
        await store.enqueue([first, second])
        (claim,) = await pass_all(store, limits={})
        await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=fixed(1, "10s"))
        assert [c.job_id for c in await pass_all(store, limits={})] == [second.id]
        clock.advance("1m")
        assert await pass_all(store, limits={}) == [], "the retry waits for its turn"

    async def test_the_place_of_a_dead_worker_is_free_when_its_job_was_taken_over_and_has_ended(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        first, second = turn(clock, ago=2), turn(clock, ago=1)
        await store.enqueue([first, second])
        await pass_all(store, "w1", limits={})
        await store.bury(["w1"])
        (orphan,) = await rescue(store, "w2")
        assert await pass_all(store, "w2", limits={}) == []
        await finish(store, orphan.claim, now=clock.now())
        assert [claim.job_id for claim in await pass_all(store, "w2", limits={})] == [second.id]

    async def test_the_outlook_of_one_that_waits_names_the_schedule(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first, second = turn(clock, ago=2), turn(clock, ago=1)
        await store.enqueue([first, second])
        await pass_all(store, limits={})
        outlook = await store.outlook(second.queue, gate=second.terms.gate)
        assert outlook.limits == (LimitFacts(what="schedule s", running=1, most=1, rate=None, again_at=None),)

    async def test_workers_hear_that_limits_are_in_use_when_a_schedule_makes_such_a_job(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, schedule("s", next_at=clock.now(), fired_through=clock.now() - 1))
        plan = firing(await read_schedule(store, "s"), next_at=None)
        async with listening(store) as heard:
            await store.fire([replace(plan, jobs=(turn(clock),))])
            await heard(Hint("limits"))
