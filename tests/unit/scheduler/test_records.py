"""What users read back of a job's tries."""

from __future__ import annotations

from typing import Any

from duetime.model.states import State
from duetime.model.stored.jobs import StoredAttempt, StoredJob
from duetime.scheduler.records import attempts_of

UNSAID = (
    "result", "result_error", "error", "traceback", "reason", "cancel_requested_at", "schedule", "occurrence",
    "span_first", "retries", "timeout", "worker", "started_at", "finished_at",
)  # fmt: skip
JOB: dict[str, Any] = {
    **dict.fromkeys(UNSAID),
    **dict.fromkeys(("failures", "crashes", "blames"), 0),
    "id": "j1", "task": "greet", "payload": "{}", "queue": "default", "priority": 5, "due_at": 1,
    "created_at": 1, "on_crash": "retry", "span_count": 1,
}  # fmt: skip


def stored(state: State, *, fence: int, **changes: Any) -> StoredJob:
    return StoredJob(**JOB | {"state": state, "fence": fence} | changes)


def ended(fence: int) -> StoredAttempt:
    return StoredAttempt(
        job_id="j1",
        fence=fence,
        worker="w",
        due_at=1,
        started_at=2,
        ended_at=3,
        outcome="error",
        error="e",
        traceback="t",
    )


def outcomes(job: StoredJob, *fences: int) -> list[tuple[int, str]]:
    return [(attempt.fence, attempt.outcome) for attempt in attempts_of(job, map(ended, fences))]


def test_the_current_try_comes_last_and_has_no_end() -> None:
    running = stored(State.RUNNING, fence=2, started_at=5, worker="w")
    assert outcomes(running, 1) == [(1, "error"), (2, "running")]
    assert attempts_of(running, [])[0].ended_at is None


def test_a_job_that_waits_for_its_next_try_has_only_earlier_ones() -> None:
    assert outcomes(stored(State.PENDING, fence=1), 1) == [(1, "error")]


def test_a_job_that_is_held_unstarted_has_not_begun_its_next_try() -> None:
    assert outcomes(stored(State.RUNNING, fence=2), 1) == [(1, "error")]


def test_a_try_that_ended_after_the_job_was_read_is_not_told_twice() -> None:
    assert outcomes(stored(State.RUNNING, fence=2, started_at=5), 1, 2) == [(1, "error"), (2, "running")]


def test_a_try_that_was_to_be_repeated_and_was_cancelled_instead_is_told_once() -> None:
    cancelled = stored(State.CANCELLED, fence=1, started_at=5, finished_at=6)
    assert outcomes(cancelled, 1) == [(1, "cancelled")]


def test_errors_that_are_not_kept_any_more_are_gone_from_all_tries() -> None:
    failed = stored(State.FAILED, fence=2, started_at=5, finished_at=6, failure_ttl=1)
    assert [attempt.error for attempt in attempts_of(failed, [ended(1)])] == [None, None]
