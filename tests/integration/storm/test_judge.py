"""Each broken promise is found, and nothing is found where all are kept."""

from __future__ import annotations

from dataclasses import replace

from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant
from tests.integration.ledger import Entry
from tests.integration.storm.judge import AWAKENING, FROZEN, KILLED, POISONOUS, THAWED, Facts, violations

JOB = "job"
ONE, OTHER = 1, 2
"""Processes."""


def entry(
    kind: str, at: float, *, pid: int = ONE, task: str = "work", job: str = JOB, due_at: Instant = 0
) -> Entry:
    return Entry(kind, job, task, pid, int(at * SECOND), due_at, 1)


def hurt(kind: str, at: float, *, pid: int = ONE) -> Entry:
    return entry(kind, at, pid=0, job=str(pid), task="-")


def record(state: State = State.SUCCEEDED, *, task: str = "work", result: int | None = None) -> StoredJob:
    return StoredJob(
        id=JOB,
        task=task,
        payload="{}",
        queue="default",
        priority=5,
        state=state,
        due_at=0,
        created_at=0,
        started_at=0,
        finished_at=10 * SECOND,
        worker=None,
        fence=1,
        failures=0,
        crashes=0,
        blames=0,
        on_crash="retry",
        retries=0,
        timeout=None,
        result=None if result is None else str(result),
        result_error=None,
        error=None,
        traceback=None,
        reason=None,
        cancel_requested_at=None,
        schedule=None,
        occurrence=None,
        span_first=None,
        span_count=1,
    )


def found(*entries: Entry, job: StoredJob | None = None, occurrences: tuple[int, ...] = (1, 2)) -> list[str]:
    ticks = [replace(record(), schedule="tick", occurrence=second * SECOND) for second in occurrences]
    return violations(
        Facts(
            entries=entries,
            accepted=[JOB],
            records={} if job is None else {JOB: job},
            schedules={"tick": ticks},
            first=SECOND,
            last=2 * SECOND,
        )
    )


def test_a_run_that_ends_and_says_so_breaks_nothing() -> None:
    assert found(entry("start", 1), entry("end", 2), job=record(result=ONE)) == []


def test_a_job_that_is_gone_or_never_ends_is_lost() -> None:
    assert "is lost" in found()[0]
    assert "still pending" in found(job=record(State.PENDING))[0]


def test_two_runs_at_once_are_found() -> None:
    twice = (entry("start", 1), entry("start", 2, pid=OTHER), entry("end", 3), entry("end", 4, pid=OTHER))
    assert "at once for 1.000 s" in found(*twice, job=record(result=OTHER))[0]


def test_a_run_after_the_death_of_the_first_is_right() -> None:
    dies = (entry("start", 1), hurt(KILLED, 2), entry("start", 3, pid=OTHER), entry("end", 4, pid=OTHER))
    assert found(*dies, job=record(result=OTHER)) == []


def test_a_frozen_process_is_excused_for_a_moment_after_it_wakes() -> None:
    taken_over = (entry("start", 1), hurt(FROZEN, 2), entry("start", 8, pid=OTHER), hurt(THAWED, 9))
    ended = entry("end", 20, pid=OTHER)
    soon = entry("cancelled", 9 + AWAKENING / SECOND / 2)
    assert found(*taken_over, soon, ended, job=record(result=OTHER)) == []
    late = entry("cancelled", 10 + AWAKENING / SECOND)
    assert "at once" in found(*taken_over, late, ended, job=record(result=OTHER))[0]


def test_a_second_start_of_an_at_most_once_task_is_found() -> None:
    again = (
        entry("start", 1, task="work_once"),
        hurt(KILLED, 2),
        entry("start", 3, pid=OTHER, task="work_once"),
        entry("end", 4, pid=OTHER, task="work_once"),
    )
    assert "began 2 times" in found(*again, job=record(task="work_once", result=OTHER))[0]


def test_a_failure_that_is_recorded_while_the_job_runs_is_found() -> None:
    runs_on = (entry("start", 1, task="work_once"), entry("end", 12, task="work_once"))
    assert "while it ran" in found(*runs_on, job=record(State.FAILED, task="work_once"))[0]
    died = (entry("start", 1, task="work_once"), hurt(KILLED, 3))
    assert found(*died, job=record(State.FAILED, task="work_once")) == []


def test_a_job_that_should_have_been_run_again_is_found() -> None:
    died = (entry("start", 1), hurt(KILLED, 3))
    assert "should have been run again" in found(*died, job=record(State.FAILED))[0]
    poison = replace(record(State.FAILED), crashes=POISONOUS)
    assert "should have been run again" in found(*died, job=poison)[0]
    again = (entry("start", 4, pid=OTHER), hurt(KILLED, 5, pid=OTHER))
    assert found(*died, *again, job=poison) == []


def test_a_success_that_never_happened_is_found() -> None:
    assert "never ran" in found(job=record(result=ONE))[0]
    other = (entry("start", 1), entry("end", 2))
    assert "no completed run" in found(*other, job=record(result=OTHER))[0]


def test_an_early_start_is_found() -> None:
    early = (entry("start", 1, due_at=2 * SECOND), entry("end", 3))
    assert "1000.0 ms early" in found(*early, job=record(result=ONE))[0]


def test_a_missing_and_a_doubled_occurrence_are_found() -> None:
    run = (entry("start", 1), entry("end", 2))
    assert "has 0 records" in found(*run, job=record(result=ONE), occurrences=(1,))[0]
    assert "has 2 records" in found(*run, job=record(result=ONE), occurrences=(1, 2, 2))[0]
