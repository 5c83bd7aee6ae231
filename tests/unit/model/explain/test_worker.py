"""What is told of a worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.model.explain.facts import WorkerFacts
from duetime.model.explain.worker import worker_explanation
from duetime.model.limits import UNLIMITED
from duetime.model.queues import StoredQueue
from duetime.model.time import SECOND
from duetime.model.worker import Command, WorkerStats
from tests.unit.model.explain.test_job import NOW, WORKER

BUSY = replace(WORKER, stats=WorkerStats(running=1, done=1_234, failed=1))
PAUSE = Command(
    id="c1",
    worker="w1",
    kind="pause",
    reason="reindexing.",
    created_at=NOW - 60 * SECOND,
    taken_at=NOW - 59 * SECOND,
    done_at=NOW - 59 * SECOND,
    outcome="paused; 1 job still running",
    dropped=False,
)
STOP_JOB = replace(
    PAUSE, id="c2", kind="stop_job", job="j", reason=None, outcome=None, created_at=NOW - 5 * SECOND
)


def told(worker: Any = BUSY, **facts: Any) -> list[tuple[int | None, str]]:
    """What is told, with how many seconds ago it was."""
    lines = worker_explanation(WorkerFacts(now=NOW, workers=[worker], subject=worker, **facts))
    return [(None if at is None else (NOW - at) // SECOND, text) for at, text in lines]


def test_a_worker_that_is_well_says_what_it_serves_and_has_done() -> None:
    assert told() == [
        (600, "Worker w1 (pid 7 on h) started with Duetime 0: 2 slots, 1 task, queues mail, default, fires schedules."),
        (None, "It runs 1 of at most 2 jobs, and has run 1,234 jobs, of which 1 failed."),
    ]  # fmt: skip


def test_a_worker_that_only_fires_schedules_says_so() -> None:
    assert told(replace(WORKER, queues=())) == [
        (600, "Worker w1 (pid 7 on h) started with Duetime 0: runs no jobs, fires schedules.")
    ]


def test_what_it_was_told_comes_in_order_with_its_answers() -> None:
    assert told(commands=[STOP_JOB, PAUSE])[1:3] == [
        (60, "It was told to pause (reindexing): paused; 1 job still running."),
        (5, "It was told to stop job j: it has not answered yet."),
    ]


@pytest.mark.parametrize(
    ("stats", "text"),
    [
        ({"paused_at": NOW - SECOND, "paused_reason": "why"}, "It is paused since 2030-03-17 17:46:39 UTC: why. `duetime workers resume` lets it go on."),
        ({"paused_at": NOW - SECOND}, "It is paused since 2030-03-17 17:46:39 UTC. `duetime workers resume` lets it go on."),
        ({"loop_lag": 5 * SECOND}, "Its event loop was blocked for 5 seconds; `duetime workers stacks w1` shows where."),
        ({"last_error": "fetch: OSError: no\nmore"}, "What last went wrong in it: fetch: OSError: no."),
    ],
)  # fmt: skip
def test_what_keeps_it_from_taking_jobs_is_told(stats: dict[str, Any], text: str) -> None:
    assert told(replace(BUSY, stats=replace(BUSY.stats, **stats)))[2:] == [(None, text)]


def test_a_queue_of_its_own_that_is_paused_is_told() -> None:
    paused = StoredQueue(name="mail", paused_at=NOW, paused_reason="relay down", limit=UNLIMITED)
    queues = [paused, replace(paused, name="other"), replace(paused, name="default", paused_at=None)]
    assert told(queues=queues)[2:] == [
        (None, "Its queue mail is paused since 2030-03-17 17:46:40 UTC: relay down.")
    ]


def test_one_that_is_late_with_its_pulse_is_told() -> None:
    late = replace(BUSY, beat_at=NOW - 20 * SECOND, lease_until=NOW + 10 * SECOND)
    assert told(late)[1][1].startswith("It is late with its pulse: last heard of 20 seconds ago.")


def test_one_that_is_gone_says_how_it_went() -> None:
    assert told(replace(BUSY, state="stopped", lease_until=NOW - 3 * SECOND))[1:] == [
        (3, "It stopped, having run 1,234 jobs, of which 1 failed.")
    ]
    assert told(replace(BUSY, state="dead"))[1:] == [
        (1, "It was last heard of, having run 1,234 jobs, of which 1 failed."),
        (None, "It counts as dead: its lease ran out, or its process is gone. Others take over its jobs."),
    ]
