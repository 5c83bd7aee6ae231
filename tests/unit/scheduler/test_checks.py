"""What `duetime doctor` says about schedules."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.stored.jobs import LiveWorkers
from duetime.model.time import HOUR, SECOND
from duetime.scheduler.explanations import check_plans
from tests.unit.model.explain.explain_kit import ALIVE, NOW, SCHEDULE

DUE = replace(SCHEDULE, next_at=NOW + SECOND)


def test_without_active_schedules_nobody_has_to_fire() -> None:
    still = [
        replace(DUE, next_at=None),
        replace(DUE, paused_at=NOW),
        replace(DUE, parked_at=NOW),
    ]
    assert check_plans(still, LiveWorkers(), now=NOW).ok
    assert not check_plans([*still, DUE], LiveWorkers(), now=NOW).ok


def test_workers_that_leave_schedules_alone_do_not_count() -> None:
    check = check_plans([DUE], LiveWorkers((replace(ALIVE, fires=False),)), now=NOW)
    assert (check.ok, check.detail) == (False, "1 active, and no worker fires them")
    assert check.fix is not None
    assert "duetime scheduler" in check.fix


def test_tasks_that_no_living_worker_knows_are_named() -> None:
    unknown = [replace(DUE, name=f"s{n}", task=f"gone{n}") for n in range(5)]
    check = check_plans([DUE, *unknown], LiveWorkers((ALIVE,)), now=NOW)
    assert not check.ok
    assert (
        check.detail == "6 active, 5 with tasks that no living worker knows: gone0, gone1, gone2 and 2 more"
    )


def test_where_nobody_runs_jobs_no_task_is_called_unknown() -> None:
    check = check_plans([DUE], LiveWorkers((replace(ALIVE, queues=(), slots=0, tasks=()),)), now=NOW)
    assert (check.ok, check.detail) == (False, "1 active, and no worker runs their jobs")
    assert check.fix == "start duetime worker MODULE:SCHEDULER"


def test_schedules_that_are_overdue_are_named_the_latest_first() -> None:
    late = replace(DUE, name="late", next_at=NOW - HOUR)
    later = replace(DUE, name="later", next_at=NOW - 2 * HOUR)
    check = check_plans([DUE, late, later], LiveWorkers((ALIVE,)), now=NOW)
    assert (check.ok, check.detail) == (False, "3 active, 2 overdue for up to 2 hours: later, late")
    assert check.fix is not None
    assert check.fix.endswith("duetime explain later")


def test_what_has_just_fallen_due_is_not_overdue() -> None:
    check = check_plans([replace(DUE, next_at=NOW - SECOND)], LiveWorkers((ALIVE,)), now=NOW)
    assert (check.ok, check.detail) == (True, "1 active, none overdue")
