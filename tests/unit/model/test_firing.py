from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.model import firing as firings
from duetime.model.firing import fire
from duetime.model.instants import SECOND
from duetime.model.job import NewJob
from duetime.model.schedule import Firing, StoredSchedule
from duetime.model.states import State
from duetime.model.triggers import Every

HOUR = 3600 * SECOND
START = 1_700_000_000_000_000
HOURLY = Every(interval=HOUR, start=START)


def record(**changes: Any) -> StoredSchedule:
    values: dict[str, Any] = {
        "name": "hourly",
        "task": "greet",
        "payload": '{"user": 1}',
        "trigger": "{}",
        "declared": "",
        "queue": "mail",
        "priority": 2,
        "on_crash": "fail",
        "retries": 3,
        "timeout": 9 * SECOND,
        "overlap": "skip",
        "misfire_window": HOUR,
        "owner": "code",
        "paused_at": None,
        "paused_reason": None,
        "fired_through": START - HOUR,
        "next_at": START,
        "rev": 7,
        "created_at": 0,
        "updated_at": 0,
        "live": 0,
    }
    return StoredSchedule(**values | changes)


def decide(*, now: int, ahead: int = SECOND, **changes: Any) -> Firing:
    firing = fire(record(**changes), HOURLY, now=now, ahead=ahead)
    assert firing is not None
    return firing


def told(job: NewJob) -> tuple[State, str | None, int | None, int | None, int]:
    return job.state, job.reason, job.span_first, job.occurrence, job.span_count


def test_nothing_is_made_before_the_window_of_planting() -> None:
    assert fire(record(), HOURLY, now=START - SECOND - 1, ahead=SECOND) is None


def test_a_schedule_that_has_ended_makes_nothing() -> None:
    assert fire(record(next_at=None), HOURLY, now=START, ahead=SECOND) is None


@pytest.mark.parametrize("now", [START - SECOND, START - 1, START])
def test_an_occurrence_makes_one_job_due_at_its_instant(now: int) -> None:
    firing = decide(now=now)
    (job,) = firing.jobs
    assert (job.due_at, job.occurrence, job.schedule, job.state) == (START, START, "hourly", State.PENDING)
    assert (firing.fired_through, firing.next_at) == (START, START + HOUR)
    assert (firing.name, firing.rev, firing.expected) == ("hourly", 7, START - HOUR)


def test_a_job_carries_what_its_schedule_says() -> None:
    (job,) = decide(now=START).jobs
    assert (job.task, job.payload, job.queue, job.priority) == ("greet", '{"user": 1}', "mail", 2)
    assert (job.on_crash, job.retries, job.timeout) == ("fail", 3, 9 * SECOND)


def test_the_last_occurrence_leaves_no_next_time() -> None:
    once = Every(interval=HOUR, start=START, times=1)
    firing = fire(record(), once, now=START, ahead=0)
    assert firing is not None
    assert firing.next_at is None


def test_a_live_job_forbids_planting_until_the_instant_decides() -> None:
    assert fire(record(live=1), HOURLY, now=START - 1, ahead=SECOND) is None
    (job,) = decide(now=START, live=1).jobs
    assert told(job) == (State.SKIPPED, "overlap", START, START, 1)


@pytest.mark.parametrize("now", [START - 1, START])
def test_where_overlap_is_allowed_a_live_job_forbids_nothing(now: int) -> None:
    (job,) = decide(now=now, live=3, overlap="allow").jobs
    assert job.state is State.PENDING


def test_after_a_gap_the_latest_runs_and_the_earlier_ones_share_one_record() -> None:
    firing = decide(now=START + 5 * HOUR + SECOND)
    missed, latest = firing.jobs
    assert told(missed) == (State.SKIPPED, "misfire", START, START + 4 * HOUR, 5)
    assert (latest.state, latest.due_at) == (State.PENDING, START + 5 * HOUR)
    assert (firing.fired_through, firing.next_at) == (START + 5 * HOUR, START + 6 * HOUR)


def test_after_a_gap_with_a_live_job_misfire_and_overlap_are_told_apart() -> None:
    missed, latest = decide(now=START + 2 * HOUR, live=1).jobs
    assert told(missed) == (State.SKIPPED, "misfire", START, START + HOUR, 2)
    assert told(latest) == (State.SKIPPED, "overlap", START + 2 * HOUR, START + 2 * HOUR, 1)


@pytest.mark.parametrize(("late", "state"), [(0, State.PENDING), (1, State.SKIPPED)])
def test_an_occurrence_runs_late_only_within_the_misfire_window(late: int, state: State) -> None:
    (job,) = decide(now=START + 60 * SECOND + late, misfire_window=60 * SECOND).jobs
    assert job.state is state


def test_when_even_the_latest_is_too_old_all_share_one_record() -> None:
    (job,) = decide(now=START + 3 * HOUR + 61 * SECOND, misfire_window=60 * SECOND).jobs
    assert told(job) == (State.SKIPPED, "misfire", START, START + 3 * HOUR, 4)


def test_a_gap_too_long_for_one_firing_is_taken_up_piece_by_piece_and_only_the_last_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(firings, "MAX_MISSED", 3)
    now, changes, made = START + 7 * HOUR, {"misfire_window": 100 * HOUR}, list[NewJob]()
    firing = decide(now=now, **changes)
    while True:
        made += firing.jobs
        next_step = fire(
            record(fired_through=firing.fired_through, next_at=firing.next_at, **changes),
            HOURLY,
            now=now,
            ahead=0,
        )
        if next_step is None:
            break
        firing = next_step
    assert [(job.state, job.span_count) for job in made] == [
        (State.SKIPPED, 3),
        (State.SKIPPED, 3),
        (State.SKIPPED, 1),
        (State.PENDING, 1),
    ]


def test_what_was_accounted_for_before_an_edit_does_not_fire_again() -> None:
    firing = decide(now=START, next_at=START, fired_through=START + 1)
    assert firing.jobs == ()
    assert (firing.expected, firing.fired_through, firing.next_at) == (START + 1, START + 1, START + HOUR)


@given(
    now=st.integers(START - HOUR, START + 40 * HOUR),
    ahead=st.integers(0, 2 * HOUR),
    window=st.integers(0, 10 * HOUR),
    live=st.integers(0, 2),
    overlap=st.sampled_from(["skip", "allow"]),
)
def test_every_occurrence_is_accounted_for_once_and_at_most_one_runs(
    now: int, ahead: int, window: int, live: int, overlap: str
) -> None:
    firing = fire(record(misfire_window=window, live=live, overlap=overlap), HOURLY, now=now, ahead=ahead)
    if firing is None:
        assert now < START
        return
    assert sum(job.state is State.PENDING for job in firing.jobs) <= 1
    assert sum(job.span_count for job in firing.jobs) == (firing.fired_through - START) // HOUR + 1
    assert len({job.occurrence for job in firing.jobs}) == len(firing.jobs)
    assert firing.fired_through <= max(now, now + ahead)
    assert firing.next_at == firing.fired_through + HOUR
