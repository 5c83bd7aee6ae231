"""What a job calls when it has ended is enqueued in the transaction that ends it, once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import Claim, JobTerms
from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Skipped,
    Succeeded,
)
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND
from duetime.stores.base import Hint, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    declare,
    finish,
    firing,
    hire,
    occurrence_job,
    pause,
    put,
    read,
    read_schedule,
    rescue,
    schedule,
    settlement,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening


def callback(task: str) -> dict[str, Any]:
    """What is stored of a task that is to be called."""
    return {
        "task": task,
        "parameter": "ended",
        "queue": "alerts",
        "priority": 1,
        "on_crash": "retry",
        "terms": None,
    }


ALL = JobTerms(
    callbacks=json.dumps(
        {"success": callback("cheer"), "failure": callback("alert"), "cancel": callback("forget")}
    )
)


async def begun(store: Store, **changes: Any) -> Claim:
    """A job with callbacks that `w1` has just begun."""
    await hire(store, "w1")
    await put(store, **{"terms": ALL, **changes})
    return await take_one(store)


async def called(store: Store, job_id: str) -> list[StoredJob]:
    """The jobs that were enqueued because another had ended."""
    return [job for job in await store.find(JobFilter(limit=100)) if job.parent == job_id]


def told(job: StoredJob) -> dict[str, Any]:
    """What a callback is given."""
    found: dict[str, Any] = json.loads(job.payload)["ended"]
    return found


class TestCallbacks(StoreSuite):
    """`settle`, `cancel` and `release` of jobs with callbacks."""

    @pytest.mark.parametrize(
        ("outcome", "task"),
        [
            (Succeeded("[1]"), "cheer"),
            (Failed(error="boom", traceback="line 1"), "alert"),
            (Cancelled("enough"), "forget"),
            (Interrupted(reason="stop"), "forget"),
            (Crashed(worker="w0", started=True, blamed=False), "alert"),
        ],
        ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
    )
    @pytest.mark.covers("callback-lost")
    async def test_a_job_that_has_ended_calls_what_it_says(
        self, store: Store, clock: FakeClock, outcome: Outcome, task: str
    ) -> None:
        claim = await begun(store, on_crash="fail")
        await finish(store, claim, outcome, now=clock.advance(1))
        record = await read(store, claim.job_id)
        [job] = await called(store, claim.job_id)
        assert (job.task, job.queue, job.priority, job.state) == (task, "alerts", 1, State.PENDING)
        assert (job.due_at, job.created_at, job.callbacks) == (clock.now(), clock.now(), None)
        ended = told(job)
        assert (ended["id"], ended["state"], ended["reason"]) == (record.id, record.state, record.reason)
        assert (ended["error"], ended["traceback"]) == (record.error, record.traceback)
        assert ended["result"] == (json.loads(record.result) if record.result else None)

    async def test_headers_go_along_to_what_is_called(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store, terms=replace(ALL, headers='{"trace":"a"}'))
        await finish(store, claim, now=clock.now())
        waiting = await put(store, terms=replace(ALL, headers='{"trace":"b"}'), delay=60)
        await store.cancel([waiting], reason="off")
        found = [(await called(store, job_id))[0].headers for job_id in (claim.job_id, waiting)]
        assert found == ['{"trace":"a"}', '{"trace":"b"}']

    @pytest.mark.parametrize(
        "outcome", [Released(), Skipped("expired"), Interrupted(reason="stop"), Failed(error="boom")]
    )
    async def test_a_job_that_goes_back_or_is_skipped_calls_nothing(
        self, store: Store, clock: FakeClock, outcome: Outcome
    ) -> None:
        claim = await begun(store)
        await finish(store, claim, outcome, now=clock.now(), policy=fixed(1, 5))
        assert await called(store, claim.job_id) == []

    async def test_a_job_without_the_callback_for_its_end_calls_nothing(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await begun(store, terms=JobTerms(callbacks=json.dumps({"failure": callback("alert")})))
        await finish(store, claim, now=clock.now())
        assert await called(store, claim.job_id) == []
        assert (await read(store, claim.job_id)).state is State.SUCCEEDED

    @pytest.mark.covers("callback-lost")
    async def test_a_settlement_that_is_sent_again_calls_once(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store)
        change = settlement(claim, Succeeded("1"), now=clock.now())
        for _ in range(3):
            assert await store.settle([change]) == {claim.token}
        assert len(await called(store, claim.job_id)) == 1

    async def test_a_run_that_lost_its_claim_calls_nothing(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store)
        await hire(store, "w2")
        await store.bury(["w1"])
        (orphan,) = await rescue(store, "w2")
        assert await finish(store, claim, Succeeded("1"), now=clock.now()) == frozenset()
        assert await called(store, claim.job_id) == []
        await finish(store, orphan.claim, Failed(error="boom"), now=clock.now())
        assert [job.task for job in await called(store, claim.job_id)] == ["alert"]

    async def test_jobs_with_and_without_callbacks_are_settled_together(
        self, store: Store, clock: FakeClock
    ) -> None:
        calling = await begun(store)
        await put(store)
        plain = await take_one(store)
        changes = [settlement(claim, Succeeded("1"), now=clock.now()) for claim in (plain, calling)]
        assert await store.settle(changes) == {plain.token, calling.token}
        assert len(await called(store, calling.job_id)) == 1
        assert await called(store, plain.job_id) == []

    async def test_a_pending_job_that_is_cancelled_calls_at_once(self, store: Store) -> None:
        job_id = await put(store, terms=ALL, delay=60)
        silent = await put(store, delay=60)
        for _ in range(2):
            await store.cancel([job_id, silent], reason="off")
        [job] = await called(store, job_id)
        assert (job.task, told(job)["reason"], told(job)["state"]) == ("forget", "off", "cancelled")
        assert await called(store, silent) == []

    async def test_a_job_that_is_cancelled_where_it_would_go_back_calls_once(
        self, store: Store, clock: FakeClock
    ) -> None:
        claim = await begun(store)
        await store.cancel([claim.job_id], reason="off")
        assert await called(store, claim.job_id) == []
        change = settlement(claim, Released(), now=clock.now())
        for _ in range(2):
            await store.settle([change])
        [job] = await called(store, claim.job_id)
        assert (job.task, told(job)["reason"], told(job)["state"]) == ("forget", "off", "cancelled")

    async def test_a_job_that_is_cancelled_by_its_release_calls_once(self, store: Store) -> None:
        claim = await begun(store)
        await store.cancel([claim.job_id], reason="off")
        await store.release([claim.job_id], force=True)
        assert [job.task for job in await called(store, claim.job_id)] == ["forget"]

    async def test_a_callback_is_heard_of(self, store: Store, clock: FakeClock) -> None:
        claim = await begun(store)
        async with listening(store) as heard:
            await finish(store, claim, now=clock.now())
            await heard(Hint("jobs"))
        waiting = await put(store, terms=ALL, delay=3_600_000_000)
        async with listening(store) as heard:
            await store.cancel([waiting], reason="off")
            await heard(Hint("jobs"))

    async def test_what_is_not_kept_is_told_all_the_same(self, store: Store, clock: FakeClock) -> None:
        terms = replace(ALL, result_ttl=0, failure_ttl=0)
        claim = await begun(store, terms=terms)
        await finish(store, claim, Failed(error="boom", traceback="line 1"), now=clock.now())
        (alert,) = await called(store, claim.job_id)
        told = json.loads(alert.payload)["ended"]
        assert (told["error"], told["traceback"]) == ("boom", "line 1")
        record = await read(store, claim.job_id)
        assert (record.error, record.traceback) == (None, None)
        claim = await begun(store, terms=terms)
        await finish(store, claim, Succeeded('"secret"'), now=clock.now())
        (cheer,) = await called(store, claim.job_id)
        assert json.loads(cheer.payload)["ended"]["result"] == "secret"
        assert (await read(store, claim.job_id)).result is None

    async def test_a_withdrawn_occurrence_calls_nothing_though_a_worker_has_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        new = schedule("s", next_at=now + SECOND, fired_through=now, terms=ALL.to_text())
        await declare(store, new)
        planted = occurrence_job("s", now + SECOND, terms=ALL)
        plan = firing(await read_schedule(store, "s"), next_at=None, jobs=(planted,))
        assert await store.fire([plan]) == {"s"}
        claim = await take_one(store, ahead=2 * SECOND)
        await pause(store, "s")
        await finish(store, claim, Cancelled("asked"), now=clock.now(), started=False)
        assert (await read(store, claim.job_id)).state is State.CANCELLED
        assert await called(store, claim.job_id) == []
