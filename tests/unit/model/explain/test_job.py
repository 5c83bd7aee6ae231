from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.model.explain.facts import JobFacts, LimitFacts
from duetime.model.explain.job import job_explanation
from duetime.model.states import State
from duetime.model.stored.jobs import StoredAttempt, StoredJob, StoredWorker
from duetime.model.time import SECOND, Instant
from duetime.model.worker import WorkerStats

NOW: Instant = 1_900_000_000 * SECOND

JOB = StoredJob(
    id="j",
    task="mail.send",
    payload="{}",
    queue="mail",
    priority=5,
    state=State.PENDING,
    due_at=NOW - SECOND,
    created_at=NOW - 60 * SECOND,
    started_at=None,
    finished_at=None,
    worker=None,
    fence=0,
    failures=0,
    crashes=0,
    blames=0,
    on_crash="retry",
    retries=None,
    timeout=None,
    result=None,
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
WORKER = StoredWorker(
    id="w1",
    state="alive",
    host="h",
    host_key=None,
    pid=7,
    pid_started=None,
    version="0",
    queues=("mail", "default"),
    slots=2,
    started_at=NOW - 600 * SECOND,
    beat_at=NOW - SECOND,
    lease_until=NOW + 29 * SECOND,
    stats=WorkerStats(),
    tasks=("mail.send",),
    declares=(),
    fires=True,
)
LOST = StoredAttempt(
    job_id="j",
    fence=1,
    worker="w0",
    due_at=NOW - 50 * SECOND,
    started_at=NOW - 50 * SECOND,
    ended_at=NOW - 20 * SECOND,
    outcome="error",
    error="ValueError: no\nmore",
    traceback=None,
)


def told(*, job: dict[str, Any] | None = None, workers: Any = (WORKER,), **facts: Any) -> list[str]:
    """The sentences about what is so now."""
    given = JobFacts(now=NOW, job=replace(JOB, **job or {}), workers=workers, **facts)
    return [text for at, text in job_explanation(given) if at is None]


def story(*, job: dict[str, Any], **facts: Any) -> list[str]:
    """The sentences about what happened."""
    given = JobFacts(now=NOW, job=replace(JOB, **job), workers=(WORKER,), **facts)
    return [text for at, text in job_explanation(given) if at is not None]


def test_a_job_that_nothing_hinders_is_said_to_be_free() -> None:
    (text,) = told()
    assert text.startswith("Nothing is in its way: it has been due since 2030-03-17 17:46:39 UTC")


def test_a_job_that_is_not_due_says_until_when() -> None:
    assert told(job={"due_at": NOW + 90 * SECOND}) == [
        "It is not due until 2030-03-17 17:48:10 UTC, in 1 minute 30 seconds."
    ]


@pytest.mark.parametrize("outcome", ["error", "timeout", "lost"])
def test_a_job_that_waits_for_a_retry_says_so(outcome: str) -> None:
    (text,) = told(job={"due_at": NOW + 5 * SECOND}, attempts=[replace(LOST, outcome=outcome)])
    assert text == "It waits for a retry at 2030-03-17 17:46:45 UTC, in 5 seconds."


def test_a_job_that_has_expired_will_be_skipped() -> None:
    (text,) = told(job={"expires_at": NOW})
    assert "expired at 2030-03-17 17:46:40 UTC" in text


def test_a_paused_queue_is_named_with_its_reason() -> None:
    (text,) = told(queue_paused_at=NOW - SECOND, queue_paused_reason="migration")
    assert text == "Queue mail is paused since 2030-03-17 17:46:39 UTC: migration."


@pytest.mark.parametrize("workers", [[], [replace(WORKER, state="dead")], [replace(WORKER, state="stopped")]])
def test_no_living_worker_is_told_with_the_command_that_starts_one(workers: list[StoredWorker]) -> None:
    (text,) = told(workers=workers)
    assert text.startswith("No worker is alive; start one with: duetime worker")


def test_a_queue_that_nobody_serves_is_told_with_those_that_are() -> None:
    (text,) = told(workers=[replace(WORKER, queues=("a",)), replace(WORKER, queues=("b", "a"))])
    assert text == "No worker serves queue mail; those that are alive serve a, b."
    (text,) = told(workers=[replace(WORKER, queues=())])
    assert text == (
        "No worker runs jobs: worker w1 (pid 7 on h) only fires schedules; start one with: duetime worker MODULE:SCHEDULER"
    )


def test_a_task_that_nobody_knows_is_told_with_the_workers_of_the_queue() -> None:
    (text,) = told(workers=[replace(WORKER, tasks=("other",))])
    assert text == "No worker knows task mail.send; queue mail is served by worker w1 (pid 7 on h)."


def test_paused_workers_are_told() -> None:
    (text,) = told(workers=[replace(WORKER, stats=WorkerStats(paused_at=NOW))])
    assert text == "Every worker that could run it is paused: worker w1 (pid 7 on h)."


def test_full_workers_are_told() -> None:
    full = replace(WORKER, stats=WorkerStats(running=2))
    (text,) = told(workers=[full])
    assert text.startswith("Every slot is taken")
    (free,) = told(workers=[full, replace(WORKER, id="w2")])
    assert free.startswith("Nothing is in its way")


def test_a_limit_that_is_reached_is_told_with_its_numbers() -> None:
    limit = LimitFacts(what="task mail.send", running=3, most=3, rate=None, again_at=None)
    assert told(limits=[limit]) == ["A limit is reached: 3 of 3 of task mail.send are running."]
    (free,) = told(limits=[replace(limit, running=2)])
    assert free.startswith("Nothing is in its way")


def test_a_rate_that_is_used_up_says_when_the_next_may_start() -> None:
    limit = LimitFacts(
        what="queue mail", running=0, most=None, rate="10 per 1 minute", again_at=NOW + 4 * SECOND
    )
    assert told(limits=[limit]) == [
        "A rate is used up: queue mail may start 10 per 1 minute; the next may start in 4 seconds."
    ]


def test_everything_that_hinders_is_told_not_only_the_first() -> None:
    texts = told(job={"due_at": NOW + SECOND}, queue_paused_at=NOW, workers=[])
    assert [text.partition(" ")[0] for text in texts] == ["It", "Queue", "No"]


RUNNING = {"state": State.RUNNING, "worker": "w1", "started_at": NOW - 3 * SECOND}


def test_a_running_job_says_for_how_long_and_how_far_it_is() -> None:
    (text,) = told(job=RUNNING | {"progress": 0.4, "progress_note": "parsing"})
    assert text == "It has been running for 3 seconds, 40% done (parsing)."


def test_a_job_claimed_ahead_says_when_it_starts() -> None:
    (text,) = told(job=RUNNING | {"started_at": None, "due_at": NOW + SECOND})
    assert text == "It is claimed ahead by worker w1 (pid 7 on h) and starts at 2030-03-17 17:46:41 UTC."


def test_a_worker_that_is_late_with_its_pulse_is_told() -> None:
    late = replace(WORKER, beat_at=NOW - 20 * SECOND, lease_until=NOW + 10 * SECOND)
    text = told(job=RUNNING, workers=[late])[0]
    assert "late with its pulse: last heard of 20 seconds ago" in text
    assert "taken over after 2030-03-17 17:46:50 UTC" in text


def test_a_worker_that_is_dead_or_forgotten_is_told() -> None:
    assert "which is dead" in told(job=RUNNING, workers=[replace(WORKER, state="dead")])[0]
    assert "is not known any more" in told(job=RUNNING, workers=[])[0]


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"result": "1"}, "It succeeded after 3 seconds."),
        ({"result_error": "the result is not JSON.\nnot at all"}, "It succeeded after 3 seconds, but the result is not JSON."),
        ({"result_error": "its result is not kept", "result_ttl": 0}, "It succeeded after 3 seconds."),
    ],
)  # fmt: skip
def test_a_result_that_was_lost_is_told(changes: dict[str, Any], end: str) -> None:
    assert story(job=RUNNING | {"state": State.SUCCEEDED, "finished_at": NOW} | changes)[-1] == end


def test_the_story_names_origin_tries_start_and_end() -> None:
    texts = story(
        job={
            "state": State.SUCCEEDED,
            "worker": "w1",
            "due_at": NOW - 5 * SECOND,
            "started_at": NOW - 4 * SECOND,
            "finished_at": NOW - SECOND,
        },
        attempts=[LOST],
    )
    assert texts == [
        "Enqueued: task mail.send in queue mail, priority 5, due 10 seconds later.",
        "Try 1 on worker w0 failed after 30 seconds: ValueError: no.",
        "Try 2 started on worker w1 (pid 7 on h), 1 second after its due time.",
        "It succeeded after 3 seconds.",
    ]


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (
            {"state": State.FAILED, "reason": "error", "error": "ValueError: no"},
            "It failed: it raised an error and no retry was left (ValueError: no).",
        ),
        (
            {"state": State.FAILED, "reason": "crashed"},
            "It failed: its worker died, and it is not to be tried again.",
        ),
        ({"state": State.CANCELLED, "reason": "not wanted"}, "It was cancelled: not wanted."),
        ({"state": State.SKIPPED, "reason": "expired"}, "It was skipped: it was too late to matter."),
        (
            {"state": State.SKIPPED, "reason": "misfire", "span_count": 3},
            "It was skipped: no one was there to run it in time. This record stands for 3 occurrences.",
        ),
    ],
)
def test_the_end_of_a_job_is_told_with_its_reason(job: dict[str, Any], text: str) -> None:
    assert story(job=job | {"finished_at": NOW})[-1] == text


def test_a_job_that_has_ended_waits_for_nothing() -> None:
    assert told(job={"state": State.CANCELLED, "finished_at": NOW, "reason": "x"}, workers=[]) == []


def test_a_job_of_a_schedule_and_one_of_another_job_name_their_origin() -> None:
    assert story(job={"schedule": "nightly", "occurrence": NOW})[0].startswith(
        "Made by schedule nightly for its occurrence at 2030-03-17 17:46:40 UTC"
    )
    assert story(job={"parent": "p"})[0].startswith("Enqueued on behalf of job p")


def test_a_requested_cancellation_is_part_of_the_story() -> None:
    texts = story(job=RUNNING | {"cancel_requested_at": NOW})
    assert texts[-1].startswith("Its cancellation was requested")


def test_a_job_that_waits_for_its_turn_names_the_schedule() -> None:
    turns = LimitFacts(what="schedule nightly", running=1, most=1, rate=None, again_at=None)
    waiting = {"schedule": "nightly", "occurrence": NOW - SECOND}
    assert told(job=waiting, limits=[turns]) == ["It waits for the run before it of schedule nightly."]
    (free,) = told(job=waiting, limits=[replace(turns, running=0)])
    assert free.startswith("Nothing is in its way")


def test_a_job_that_was_taken_back_remembers_its_occurrence() -> None:
    withdrawn = {"schedule": "nightly", "occurrence": None, "span_first": NOW, "state": State.CANCELLED}
    assert story(job=withdrawn)[0].startswith(
        "Made by schedule nightly for its occurrence at 2030-03-17 17:46:40 UTC"
    )


def test_a_job_that_somebody_made_a_schedule_run_at_once() -> None:
    (text, *_) = story(job={"schedule": "nightly"})
    assert text.startswith("Made by schedule nightly outside of its times: task mail.send")
