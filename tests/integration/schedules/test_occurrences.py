"""Single occurrences are foreseen, triggered, skipped and made up for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duetime import Backfill, Scheduler, State, at, cron, every, failpoints
from duetime.errors import (
    InvalidArguments,
    InvalidOption,
    InvalidTime,
    NothingToSkip,
    StoreUnavailable,
)
from duetime.model.time import SECOND
from duetime.runtime.identity import WorkerIdentity
from duetime.scheduler.task import AsyncTask
from duetime.stores.base import ClaimRequest
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON, plant, records


async def test_a_preview_of_nothing_is_refused_by_the_name_of_the_parameter(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidOption, match=r"^n must be a whole number"):
        await scheduler.schedules.preview("daily", 0)


async def test_a_schedule_is_triggered_with_its_own_or_other_arguments(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",), priority=2)
    before = await scheduler.schedules.get("often")
    own = await (await scheduler.schedules.trigger("often", by="alice")).record()
    other = await (await scheduler.schedules.trigger("often", args=["y"], kwargs={"copies": 2})).record()
    assert (own.arguments, own.priority, own.queue) == ({"kind": "x"}, 2, "slow")
    assert (own.schedule, own.occurrence, own.due_at) == ("often", None, NOON)
    assert other.arguments == {"kind": "y", "copies": 2}
    with pytest.raises(InvalidArguments):
        await scheduler.schedules.trigger("often", args=[1, 2, 3])
    after = await scheduler.schedules.get("often")
    assert (after.next_at, after.live) == (before.next_at, 2)
    changes = await scheduler.schedules.history("often")
    assert [(change.verb, change.detail) for change in changes if change.who == "alice"] == [
        ("trigger", {"job": own.id})
    ]


@pytest.mark.parametrize(("moment", "expected"), [("before", (0, 0)), ("after", (1, 1))])
async def test_a_run_that_was_triggered_and_its_entry_are_stored_both_or_neither(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], moment: str, expected: tuple[int, int]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    failpoints.arm(f"{moment}:enqueue:raise")
    with pytest.raises(StoreUnavailable):
        await scheduler.schedules.trigger("often")
    failpoints.arm(None)
    noted = [change for change in await scheduler.schedules.history("often") if change.verb == "trigger"]
    assert (len(await records(scheduler, schedule="often")), len(noted)) == expected


async def test_a_paused_schedule_can_be_triggered(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.pause("often")
    assert (await (await scheduler.schedules.trigger("often")).record()).state is State.PENDING
    assert (await scheduler.schedules.get("often")).state == "paused"


async def test_the_next_occurrence_is_skipped_and_says_who_did_it(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    assert await scheduler.schedules.skip("often", by="alice") == NOON + timedelta(hours=1)
    assert await scheduler.schedules.skip("often", by="bob") == NOON + timedelta(hours=2)
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=3)
    told = [(job.state, job.reason, job.occurrence) for job in await records(scheduler, schedule="often")]
    assert told == [
        (State.SKIPPED, "skipped by bob", NOON + timedelta(hours=2)),
        (State.SKIPPED, "skipped by alice", NOON + timedelta(hours=1)),
    ]


async def test_a_planted_occurrence_is_taken_back_and_skipped(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance(3599.5)
    await plant(scheduler)
    assert (await scheduler.schedules.get("often")).live == 1
    assert await scheduler.schedules.skip("often", by="alice") == NOON + timedelta(hours=1)
    skipped, taken_back = sorted(
        await records(scheduler, schedule="often"), key=lambda job: job.state, reverse=True
    )
    assert (skipped.state, skipped.occurrence) == (State.SKIPPED, NOON + timedelta(hours=1))
    assert (taken_back.state, taken_back.reason) == (State.CANCELLED, "skipped by alice")
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=2)


async def test_there_is_nothing_to_skip_where_nothing_is_to_come(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("once", at(NOON + timedelta(hours=1)), report, args=("x",))
    await scheduler.schedules.skip("once")
    with pytest.raises(NothingToSkip, match="is over"):
        await scheduler.schedules.skip("once")
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.pause("often")
    with pytest.raises(NothingToSkip, match="is paused"):
        await scheduler.schedules.skip("often")


async def test_a_preview_tells_the_next_times_in_the_zone_of_the_schedule(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("night", cron("30 3 * * *", tz="Europe/Riga"), report, args=("x",))
    first, second = await scheduler.schedules.preview("night", 2, after=datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert str(first.local) == "2026-03-29 04:00:00+03:00"
    assert first.note is not None
    assert "does not exist" in first.note
    assert (second.local.hour, second.note) == (3, None)
    assert len(await scheduler.schedules.preview("night")) == 10


async def test_a_preview_stops_after_the_last_job_and_says_what_will_not_run(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("thrice", every("1h", times=3), report, args=("x",))
    await scheduler.schedules.skip("thrice", by="alice")
    found = await scheduler.schedules.preview("thrice")
    # What was skipped does not count towards the three.
    assert [one.note for one in found] == ["skipped by alice", None, None, None]
    await scheduler.schedules.pause("thrice", until="150m")
    assert [one.note for one in await scheduler.schedules.preview("thrice")] == [
        "skipped by alice; paused until 2026-03-02 14:30:00 UTC",
        "paused until 2026-03-02 14:30:00 UTC",
        None,
        None,
    ]


async def test_a_backfill_makes_each_occurrence_once_and_its_dry_run_counts_the_same(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    schedules = scheduler.schedules
    await schedules.put("hourly", cron("0 * * * *"), report, args=("x",))
    clock.advance("7d")
    await schedules.pause("hourly")
    await schedules.resume("hourly")
    week = NOON, NOON + timedelta(days=7)
    dry = await schedules.backfill("hourly", *week, dry_run=True)
    assert dry == Backfill(occurrences=169, enqueued=169, already=0)
    assert (await schedules.get("hourly")).live == 0
    assert await schedules.backfill("hourly", *week, by="alice") == dry
    assert await schedules.backfill("hourly", *week) == Backfill(occurrences=169, enqueued=0, already=169)
    made = await records(scheduler, schedule="hourly", state=State.PENDING, limit=200)
    occurrences = [job.occurrence for job in made if job.occurrence is not None]
    assert sorted(occurrences) == [NOON + timedelta(hours=hour) for hour in range(169)]
    assert {job.due_at for job in made} == {NOON + timedelta(days=7)}
    assert [change.who for change in await schedules.history("hourly") if change.verb == "backfill"] == [
        "alice"
    ]


async def test_a_backfill_leaves_to_the_schedule_what_it_will_make_itself(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("hourly", cron("0 * * * *"), report, args=("x",))
    clock.advance("90m")
    found = await scheduler.schedules.backfill("hourly", NOON - timedelta(hours=1), NOON + timedelta(hours=1))
    assert found == Backfill(occurrences=2, enqueued=2, already=0)


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [
        (NOON, NOON + timedelta(hours=1), "in the future"),
        (NOON, NOON - timedelta(hours=1), "lies after end"),
        (NOON - timedelta(days=7), NOON, "more than 10,000 occurrences"),
    ],
)
async def test_a_backfill_of_the_future_or_without_bound_is_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], start: datetime, end: datetime, part: str
) -> None:
    await scheduler.schedules.put("minutely", cron("* * * * *"), report, args=("x",))
    for dry_run in (True, False):
        with pytest.raises(InvalidTime, match=part):
            await scheduler.schedules.backfill("minutely", start, end, dry_run=dry_run)
    assert await records(scheduler) == []


async def test_a_run_in_turn_waits_for_the_others_of_its_schedule(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",), overlap="queue_one")
    handle = await scheduler.schedules.trigger("often")
    [job] = await scheduler.store.get([handle.id])
    assert job.gate is not None


async def test_an_occurrence_that_a_worker_holds_ready_is_called_off_and_not_skipped_twice(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance(3599.5)
    await plant(scheduler)
    worker = WorkerIdentity(queues=["slow"], slots=1).info
    await scheduler.store.register(worker, lease=30 * SECOND)
    demand = ClaimRequest(
        worker=worker.id, claim_id="c", queues=(("slow", 1),), limit=1, tasks=("report",), ahead=SECOND
    )
    [claim] = await scheduler.store.claim(demand)
    assert await scheduler.schedules.skip("often", by="alice") == NOON + timedelta(hours=1)
    [job] = await records(scheduler, schedule="often")
    assert (job.id, job.cancel_requested) == (claim.job_id, True)
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=2)
