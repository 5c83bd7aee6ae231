from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Backfill, Job, JobRecord, Scheduler, State, at, cron, every, failpoints
from duetime.errors import (
    InvalidArguments,
    InvalidOption,
    InvalidTask,
    InvalidTime,
    InvalidTrigger,
    NothingToSkip,
    ScheduleNotFound,
    StoreUnavailable,
    UnknownTask,
)
from duetime.model.instants import SECOND
from duetime.model.triggers.base import Trigger
from duetime.runtime.firing import ScheduleFirer
from duetime.runtime.health import ServiceHealth
from duetime.runtime.identity import Identity
from duetime.scheduler.task import AsyncTask
from duetime.stores.base import Demand
from duetime.testing.clock import FakeClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
async def scheduler(store_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(store_url, clock=clock)
    async with scheduler:
        yield scheduler


@pytest.fixture
def report(scheduler: Scheduler) -> AsyncTask[[str, int], None]:
    @scheduler.task(name="report", queue="slow", tags=["money"])
    async def report(kind: str, copies: int = 1) -> None: ...

    return report


async def records(scheduler: Scheduler, **query: Any) -> list[JobRecord]:
    return [*await scheduler.jobs.list(**query)]


async def plant(scheduler: Scheduler) -> None:
    """Let the schedules fire as a worker would have them do."""
    await ScheduleFirer(scheduler.store, ServiceHealth()).round()


async def test_a_schedule_is_put_with_the_options_of_its_task(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    answer = await scheduler.schedules.put(
        "daily", cron("0 3 * * *", tz="Europe/Riga"), report, args=("sales",), by="alice"
    )
    daily = await scheduler.schedules.get("daily")
    assert (answer, daily.owner, daily.state) == ("created", "user", "active")
    assert (daily.task, daily.arguments, daily.queue) == ("report", {"kind": "sales"}, "slow")
    assert daily.tags == ("money",)
    assert daily.next_at == datetime(2026, 3, 3, 1, tzinfo=UTC)
    assert str(daily.next_at) == "2026-03-03 03:00:00+02:00"


async def test_a_schedule_names_its_task_by_the_task_its_class_or_its_name(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    class Tidy(Job, scheduler=scheduler, name="tidy"):
        def run(self) -> None: ...

    await scheduler.schedules.put("a", every("1h"), report, args=("x",))
    await scheduler.schedules.put("b", every("1h"), "report", args=("x",))
    await scheduler.schedules.put("c", every("1h"), Tidy)
    assert [found.task for found in await scheduler.schedules.list()] == ["report", "report", "tidy"]


async def test_put_again_with_nothing_new_changes_nothing(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    before = await scheduler.schedules.get("often")
    clock.advance("10m")
    assert await scheduler.schedules.put("often", every("1h"), report, args=("x",)) == "unchanged"
    assert await scheduler.schedules.get("often") == before


async def test_put_keeps_the_times_while_the_trigger_is_the_same(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("10m")
    assert await scheduler.schedules.put("often", every("1h"), report, args=("y",)) == "changed"
    often = await scheduler.schedules.get("often")
    assert (often.arguments, often.next_at) == ({"kind": "y"}, NOON + timedelta(hours=1))


async def test_another_trigger_counts_from_now(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("10m")
    await scheduler.schedules.put("often", every("2h"), report, args=("x",))
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=2, minutes=10)


async def test_put_leaves_a_pause_alone(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.pause("often", reason="audit", by="bob")
    await scheduler.schedules.put("often", every("3h"), report, args=("y",))
    often = await scheduler.schedules.get("often")
    assert (often.state, often.paused_reason, often.paused_by) == ("paused", "audit", "bob")


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (InvalidTrigger, {"trigger": "0 3 * * *"}),
        (UnknownTask, {"task": "reprot"}),
        (InvalidTask, {"task": print}),
        (InvalidArguments, {"args": ()}),
        (InvalidArguments, {"args": ("x", "many")}),
        (InvalidArguments, {"args": 5}),
        (InvalidArguments, {"args": "x"}),
        (InvalidArguments, {"kwargs": ["x"]}),
        (InvalidOption, {"tags": None}),
        (InvalidOption, {"misfire_window": 0}),
        (InvalidOption, {"misfire_window": "999ms"}),
        (InvalidOption, {"overlap": "sometimes"}),
        (InvalidOption, {"colour": "red"}),
        (InvalidOption, {"by": ""}),
        (ValueError, {"name": "no spaces, please"}),
    ],
)
async def test_nothing_is_stored_when_anything_is_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], error: type[Exception], change: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"name": "daily", "trigger": every("1h"), "task": report, "args": ("x",)}
    asked |= change
    with pytest.raises(error):
        await scheduler.schedules.put(**asked)
    assert await scheduler.schedules.list() == []


async def test_a_task_that_is_not_there_is_refused_with_the_one_that_may_be_meant(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    with pytest.raises(UnknownTask, match=f"did you mean {report.name}"):
        await scheduler.schedules.put("daily", every("1h"), "reprot")


async def test_a_preview_of_nothing_is_refused_by_the_name_of_the_parameter(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidOption, match=r"^n must be a whole number"):
        await scheduler.schedules.preview("daily", 0)


async def test_a_task_of_another_scheduler_is_refused(scheduler: Scheduler) -> None:
    @Scheduler("sqlite://").task(name="foreign")
    async def foreign() -> None: ...

    with pytest.raises(InvalidTask, match="another scheduler"):
        await scheduler.schedules.put("s", every("1h"), foreign)


async def test_an_edit_changes_what_is_given_and_nothing_else(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put(
        "daily", cron("0 3 * * *"), report, args=("x",), priority=2, overlap="queue_all", overlap_limit=3
    )
    before = await scheduler.schedules.get("daily")
    assert await scheduler.schedules.edit("daily", overlap_limit=7, tags=["new"]) == "changed"
    daily = await scheduler.schedules.get("daily")
    assert (daily.overlap, daily.overlap_limit, daily.tags) == ("queue_all", 7, ("new",))
    assert (daily.priority, daily.next_at, daily.arguments) == (2, before.next_at, {"kind": "x"})


async def test_an_edit_to_what_is_there_changes_nothing(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    assert await scheduler.schedules.edit("daily", trigger=cron("0 3 * * *"), args=["x"]) == "unchanged"


async def test_details_of_a_policy_go_with_it(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put(
        "daily", cron("0 3 * * *"), report, args=("x",), misfire="all", misfire_limit=5, retries=4
    )
    await scheduler.schedules.edit("daily", misfire="latest", retries=None)
    daily = await scheduler.schedules.get("daily")
    assert (daily.misfire, daily.misfire_window, daily.misfire_limit) == ("latest", timedelta(hours=1), 100)
    assert daily.retries is None


async def test_an_edit_of_arguments_is_checked_by_the_signature(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    with pytest.raises(InvalidArguments):
        await scheduler.schedules.edit("daily", kwargs={"colour": "red"})
    await scheduler.schedules.edit("daily", args=["y"], kwargs={"copies": 2})
    assert (await scheduler.schedules.get("daily")).arguments == {"kind": "y", "copies": 2}


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (InvalidArguments, {"args": 5}),
        (InvalidArguments, {"kwargs": 5}),
        (InvalidOption, {"tags": None}),
        (InvalidOption, {"tags": 5}),
        (InvalidOption, {"misfire_window": 0}),
    ],
)
async def test_an_edit_to_what_is_none_changes_nothing(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], error: type[Exception], change: dict[str, Any]
) -> None:
    await scheduler.schedules.put("daily", every("1h"), report, args=("x",))
    before = await scheduler.schedules.get("daily")
    with pytest.raises(error):
        await scheduler.schedules.edit("daily", **change)
    assert await scheduler.schedules.get("daily") == before


async def test_an_edit_says_what_to_change(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("daily", cron("0 3 * * *"), report, args=("x",))
    with pytest.raises(InvalidOption, match="say what to change"):
        await scheduler.schedules.edit("daily")


async def test_overdue_runs_of_an_old_trigger_leave_a_record(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("3h30m")
    await scheduler.schedules.edit("often", trigger=cron("0 3 * * *"))
    [record] = await records(scheduler, schedule="often")
    assert (record.state, record.reason, record.occurrences) == (State.SKIPPED, "edited", 3)
    assert record.occurrence == NOON + timedelta(hours=3)


async def test_one_record_tells_what_did_not_run_during_a_pause(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", cron("0 * * * *"), report, args=("x",))
    await scheduler.schedules.pause("often", reason="audit", until="2d", by="bob")
    paused = await scheduler.schedules.get("often")
    assert (paused.paused_by, paused.paused_until) == ("bob", NOON + timedelta(days=2))
    clock.advance("1d")
    await scheduler.schedules.resume("often", by="alice")
    [record] = await records(scheduler, schedule="often")
    assert (record.state, record.reason, record.occurrences) == (State.SKIPPED, "paused", 24)
    often = await scheduler.schedules.get("often")
    assert (often.state, often.next_at) == ("active", NOON + timedelta(days=1, hours=1))
    assert (often.paused_by, often.paused_reason, often.paused_until) == (None, None, None)


async def test_a_schedule_that_is_not_paused_goes_on_as_it_does(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance("90m")
    before = await scheduler.schedules.get("often")
    await scheduler.schedules.resume("often")
    assert await scheduler.schedules.get("often") == before


async def test_a_pause_that_is_over_already_is_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    with pytest.raises(InvalidTime, match="lies in the past"):
        await scheduler.schedules.pause("often", until=NOON - timedelta(minutes=1))
    assert (await scheduler.schedules.get("often")).state == "active"


async def test_a_deleted_schedule_is_gone(scheduler: Scheduler, report: AsyncTask[[str, int], None]) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    await scheduler.schedules.delete("often", by="alice")
    for verb in (scheduler.schedules.get, scheduler.schedules.delete, scheduler.schedules.pause):
        with pytest.raises(ScheduleNotFound, match="'often'"):
            await verb("often")


async def test_a_schedule_whose_last_time_has_come_has_ended(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("once", at(NOON + timedelta(hours=1)), report, args=("x",))
    await scheduler.schedules.pause("once")
    clock.advance("2h")
    await scheduler.schedules.resume("once")
    assert (await scheduler.schedules.get("once")).state == "ended"


async def test_the_history_tells_what_was_done_and_by_whom(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    schedules = scheduler.schedules
    await schedules.put("often", every("1h"), report, args=("x",), by="alice")
    await schedules.put("often", every("1h"), report, args=("x",), by="nobody")
    await schedules.edit("often", priority=2, by="bob")
    await schedules.pause("often", reason="audit", by="carol")
    clock.advance("1s")
    await schedules.resume("often", by="dave")
    await schedules.delete("often", by="erin")
    told = [(change.verb, change.who) for change in await schedules.history("often")]
    assert told == [
        ("delete", "erin"),
        ("resume", "dave"),
        ("pause", "carol"),
        ("edit", "bob"),
        ("put", "alice"),
    ]
    [edit] = [change for change in await schedules.history("often") if change.verb == "edit"]
    assert (edit.detail, edit.at) == ({"priority": [5, 2]}, NOON)
    assert len(await schedules.history("often", limit=2)) == 2


async def test_who_asks_is_the_user_of_this_process_unless_told(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    [change] = await scheduler.schedules.history("often")
    assert re.fullmatch(r".+@.+", change.who)


@pytest.mark.parametrize(
    ("trigger", "part"),
    [
        (at(NOON - timedelta(days=1)), "never comes"),
        (every("100ms"), "closer than 1 second"),
        (cron("0 0 1 1 *").between(end=NOON), "never comes"),
    ],
)
async def test_triggers_that_never_come_or_come_too_often_are_refused(
    scheduler: Scheduler, report: AsyncTask[[str, int], None], trigger: Trigger, part: str
) -> None:
    await scheduler.schedules.put("good", every("1h"), report, args=("x",))
    with pytest.raises(InvalidTrigger, match=part):
        await scheduler.schedules.put("bad", trigger, report, args=("x",))
    with pytest.raises(InvalidTrigger, match=part):
        await scheduler.schedules.edit("good", trigger=trigger)
    assert [found.next_at for found in await scheduler.schedules.list()] == [NOON + timedelta(hours=1)]


def test_what_code_declares_may_be_over_but_not_come_too_often(scheduler: Scheduler) -> None:
    scheduler.schedule(at(NOON - timedelta(days=1)))
    with pytest.raises(InvalidTrigger, match="closer than 1 second"):
        scheduler.schedule(every("100ms"))
    Scheduler("sqlite://", shortest_interval="100ms").schedule(every("100ms"))


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
        (NOON - timedelta(days=7), NOON, "10,081 occurrences"),
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


async def test_what_is_over_can_be_put_again_as_it_was(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    once = at(NOON + timedelta(hours=1))
    await scheduler.schedules.put("once", once, report, args=("x",))
    clock.advance("2h")
    await plant(scheduler)
    assert await scheduler.schedules.put("once", once, report, args=("x",)) == "unchanged"
    with pytest.raises(InvalidTrigger, match="never comes"):
        await scheduler.schedules.put("twice", once, report, args=("x",))


async def test_a_run_in_turn_waits_for_the_others_of_its_schedule(
    scheduler: Scheduler, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",), overlap="queue_one")
    handle = await scheduler.schedules.trigger("often")
    [job] = await scheduler.store.get([handle.id])
    assert job.gate is not None


def test_blocking_callers_have_the_same_verbs(clock: FakeClock, sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url, clock=clock)

    @scheduler.task(name="report")
    def report(kind: str) -> None: ...

    schedules = scheduler.sync.schedules
    try:
        assert schedules.put("often", every("1h"), report, args=["x"], by="alice") == "created"
        assert schedules.edit("often", priority=3) == "changed"
        schedules.pause("often", until=NOON + timedelta(days=1))
        schedules.resume("often")
        assert [one.at for one in schedules.preview("often", 1)] == [NOON + timedelta(hours=1)]
        assert schedules.skip("often") == NOON + timedelta(hours=1)
        assert schedules.trigger("often", args=["y"]).record().arguments == {"kind": "y"}
        assert schedules.backfill("often", NOON - timedelta(days=1), NOON).occurrences == 0
        assert schedules.get("often").next_at == NOON + timedelta(hours=2)
        schedules.delete("often")
        verbs = [change.verb for change in schedules.history("often")]
    finally:
        scheduler.sync.close()
    assert verbs == ["delete", "trigger", "skip", "resume", "pause", "edit", "put"]


async def test_an_edit_to_runs_in_turn_is_refused_where_the_task_has_a_limit(scheduler: Scheduler) -> None:
    @scheduler.task(name="limited", limit=1)
    async def limited() -> None: ...

    await scheduler.schedules.put("often", every("1h"), limited)
    with pytest.raises(InvalidOption, match="limited"):
        await scheduler.schedules.edit("often", overlap="queue_one")
    assert (await scheduler.schedules.get("often")).overlap == "skip"


async def test_an_occurrence_that_a_worker_holds_ready_is_called_off_and_not_skipped_twice(
    scheduler: Scheduler, clock: FakeClock, report: AsyncTask[[str, int], None]
) -> None:
    await scheduler.schedules.put("often", every("1h"), report, args=("x",))
    clock.advance(3599.5)
    await plant(scheduler)
    worker = Identity(queues=["slow"], slots=1).info
    await scheduler.store.register(worker, lease=30 * SECOND)
    demand = Demand(
        worker=worker.id, claim_id="c", queues=(("slow", 1),), limit=1, tasks=("report",), ahead=SECOND
    )
    [claim] = await scheduler.store.claim(demand)
    assert await scheduler.schedules.skip("often", by="alice") == NOON + timedelta(hours=1)
    [job] = await records(scheduler, schedule="often")
    assert (job.id, job.cancel_requested) == (claim.job_id, True)
    assert (await scheduler.schedules.get("often")).next_at == NOON + timedelta(hours=2)
