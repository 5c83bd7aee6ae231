from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from duetime import ScheduleRecord, cron
from duetime.cli.schedules import schedule_lines, schedule_row, schedule_values, upcoming_row, upcoming_values
from duetime.model.schedule.record import StoredSchedule
from duetime.model.schedule.runs import ScheduleRuns, StoredRun
from duetime.model.states import State
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.time import LONGEST_DURATION, from_datetime
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.specs import trigger_to_text
from tests.unit.model.explain.test_job import WORKER

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
NOBODY = LiveWorkers()
SOMEBODY = LiveWorkers((replace(WORKER, tasks=("shop.tidy",), fires=True),))
STRANGERS = LiveWorkers((replace(WORKER, tasks=("other",), fires=False),))
FIRES_ONLY = LiveWorkers((replace(WORKER, tasks=(), queues=(), slots=0, fires=True),))


NO_RUNS = ScheduleRuns(last=None, succeeded=0, failed=0, at_least=frozenset())
FAILED = StoredRun(
    id="0198c5a07d3e7c429a576a1f6d4f2b10",
    schedule="nightly",
    state=State.FAILED,
    occurrence=from_datetime(NOW - timedelta(minutes=9)),
    created_at=from_datetime(NOW - timedelta(minutes=9)),
    started_at=from_datetime(NOW - timedelta(minutes=9)),
    finished_at=from_datetime(NOW - timedelta(minutes=5)),
    error="ValueError: there is no such customer as 4711\nand more",
    reason=None,
    failure_ttl=None,
)


def record(runs: ScheduleRuns = NO_RUNS, **fields: Any) -> ScheduleRecord:
    trigger = cron("0 3 * * *", tz="Europe/Riga")
    now = from_datetime(NOW)
    row = StoredSchedule(
        name="nightly",
        task="shop.tidy",
        payload='{"days":7}',
        trigger=trigger_to_text(trigger),
        declared="",
        fired_through=now,
        next_at=trigger.after(now),
        created_at=now,
        updated_at=now,
    )
    return ScheduleRecord.from_stored(replace(row, **fields), runs)


def lines(schedule: ScheduleRecord, fleet: LiveWorkers = SOMEBODY) -> dict[str, str]:
    written = schedule_lines(schedule, fleet, [], [], now=NOW + timedelta(hours=1))
    return {line[:16].strip(): line[17:] for line in written}


def test_a_row_has_the_next_time_in_the_zone_of_the_schedule_and_as_seen_from_now() -> None:
    assert schedule_row(record(), SOMEBODY, NOW) == (
        "nightly",
        "active",
        "2030-02-01 03:00:00+02:00 (in 13h)",
        "",
        "0",
        "0",
        "shop.tidy",
        "at 03:00 every day, Europe/Riga",
    )


def test_a_row_says_why_it_stands_still_and_that_nobody_knows_its_task() -> None:
    paused = record(paused_at=1, paused_reason="x" * 100)
    assert schedule_row(paused, STRANGERS, NOW)[1] == f"paused: {'x' * 39}…, unknown task"
    assert schedule_row(record(next_at=None), NOBODY, NOW)[1:3] == ("ended", "")
    assert schedule_row(record(next_at=None, parked_at=1), NOBODY, NOW)[1:3] == ("parked", "")


def test_a_row_says_how_the_last_run_ended_and_how_many_went_well_or_failed() -> None:
    runs = ScheduleRuns(last=FAILED, succeeded=1_000, failed=3, at_least=frozenset({State.SUCCEEDED}))
    last = "failed 5m ago: ValueError: there is no such customer a…"
    assert schedule_row(record(runs), SOMEBODY, NOW)[3:6] == (last, "1000+", "3")
    assert lines(record(runs))["on record"] == "1000+ succeeded, 3 failed"
    stopped = replace(FAILED, state=State.CANCELLED, error=None, reason="stopped")
    runs = ScheduleRuns(last=stopped, succeeded=0, failed=0, at_least=frozenset())
    assert lines(record(runs))["last run"] == "cancelled 1h ago: stopped"
    assert "last run" not in lines(record())


def test_the_last_run_is_an_object_in_json() -> None:
    runs = ScheduleRuns(last=FAILED, succeeded=1_000, failed=3, at_least=frozenset({State.SUCCEEDED}))
    values = schedule_values(record(runs), SOMEBODY)
    assert values["last_run"] == {
        "id": FAILED.id,
        "state": "failed",
        "occurrence": "2030-01-31T11:51:00Z",
        "started_at": "2030-01-31T11:51:00Z",
        "finished_at": "2030-01-31T11:55:00Z",
        "error": FAILED.error,
        "reason": None,
    }
    assert (values["succeeded"], values["failed"], values["at_least"]) == (1_000, 3, ["succeeded"])
    assert schedule_values(record(), SOMEBODY)["last_run"] is None


def test_a_pause_leaves_no_next_time_but_its_end() -> None:
    assert schedule_row(record(paused_at=1), SOMEBODY, NOW)[2] == ""
    until = from_datetime(NOW + timedelta(hours=3))
    paused = record(paused_at=1, paused_until=until)
    assert schedule_row(paused, SOMEBODY, NOW)[2] == "until 2030-01-31 17:00:00+02:00 (in 3h)"
    assert "next" not in lines(paused)


def test_a_pause_is_told_with_who_why_and_until_when() -> None:
    at = from_datetime(NOW)
    until = from_datetime(NOW + timedelta(hours=3))
    paused = record(paused_at=at, paused_by="ann", paused_reason="moving", paused_until=until)
    assert lines(paused)["state"] == ("paused 1h ago by ann: moving; until 2030-01-31 17:00:00+02:00 (in 2h)")


def test_a_parked_schedule_says_why_and_a_pause_beside_it() -> None:
    at = from_datetime(NOW)
    parked = record(next_at=None, parked_at=at, paused_at=at)
    assert lines(parked)["state"] == ("parked 1h ago: no code declares it any more; paused 1h ago by someone")


def test_a_task_is_unknown_only_if_somebody_is_there_to_know_it() -> None:
    assert lines(record(), SOMEBODY)["task"] == "shop.tidy"
    assert lines(record(), NOBODY)["task"] == "shop.tidy"
    assert lines(record(), STRANGERS)["task"] == "shop.tidy, which no living worker knows"
    assert "no living worker fires schedules" in lines(record(), STRANGERS)[""]
    assert lines(record(), FIRES_ONLY)["task"] == "shop.tidy"
    assert lines(record(), FIRES_ONLY)[""] == "no living worker runs jobs; start `duetime worker`"
    assert [schedule_values(record(), fleet)["task_known"] for fleet in (SOMEBODY, NOBODY, STRANGERS)] == [
        True,
        None,
        False,
    ]


def test_a_window_without_an_end_is_said_to_be_none() -> None:
    endless = record(misfire="all", misfire_window=LONGEST_DURATION, misfire_limit=5)
    assert lines(endless)["misfire"] == "all, however late, at most 5 of them"
    assert lines(record())["misfire"] == "latest, at most 1 hour late"


def test_jobs_made_by_hand_are_not_counted_as_its_own() -> None:
    assert lines(record(made=0, live=9))["made"] == "0 jobs by itself; 9 pending or running"


def test_what_is_put_off_by_a_jitter_is_shown_with_when_it_falls_due() -> None:
    local = NOW.astimezone(ZoneInfo("Europe/Riga"))
    late = Upcoming(at=NOW, local=local, due_at=NOW + timedelta(seconds=95), note="paused")
    assert upcoming_row(late, NOW)[2] == "due 14:01:35; paused"
    assert upcoming_values(late)["due_at"] == "2030-01-31T12:01:35+00:00"
    assert upcoming_row(replace(late, due_at=NOW, note=None), NOW)[2] == ""


def test_lengths_of_time_are_seconds_in_json() -> None:
    values = schedule_values(record(timeout=1_500_000), SOMEBODY)
    assert (values["timeout"], values["misfire_window"]) == (1.5, 3600.0)
    assert values["trigger"] == {"type": "cron", "expression": "0 3 * * *", "tz": "Europe/Riga"}
    assert values["next_at"] == "2030-02-01T03:00:00+02:00"
