from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.model.job import JobTerms, NewJob
from duetime.model.limits import schedule_gate
from duetime.model.schedule import occurrences as passing
from duetime.model.schedule.firing import correct, fire
from duetime.model.schedule.record import Firing
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.every import Every
from tests.unit.model.schedule.firing_kit import HOUR, HOURLY, START, Counted, record, told


def decide(*, now: int, ahead: int = SECOND, trigger: Trigger = HOURLY, **changes: Any) -> Firing:
    firing = fire(record(**changes), trigger, now=now, ahead=ahead)
    assert firing is not None
    return firing


def test_nothing_is_made_before_the_window_of_planting() -> None:
    assert fire(record(), HOURLY, now=START - SECOND - 1, ahead=SECOND) is None


def test_a_schedule_that_has_ended_makes_nothing() -> None:
    once = At(instants=(START,))
    assert fire(record(fired_through=START, next_at=None), once, now=START + HOUR, ahead=SECOND) is None


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
    assert decide(now=START, trigger=At(instants=(START,))).next_at is None


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
    monkeypatch.setattr(passing, "MOST_WALKED", 3)
    trigger = Counted(rule=HOURLY, can_count=False)
    schedule, made = record(misfire_window=100 * HOUR), list[NewJob]()
    while (firing := fire(schedule, trigger, now=START + 7 * HOUR, ahead=0)) is not None:
        made += firing.jobs
        schedule = replace(schedule, fired_through=firing.fired_through, next_at=firing.next_at)
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


@pytest.mark.parametrize(("misfire", "window"), [("latest", 50 * HOUR), ("skip", 10 * SECOND)])
def test_only_the_latest_can_run_unless_all_are_wanted(misfire: str, window: int) -> None:
    missed, latest = decide(now=START + 9 * HOUR, misfire=misfire, misfire_window=window).jobs
    assert told(missed) == (State.SKIPPED, "misfire", START, START + 8 * HOUR, 9)
    assert (latest.state, latest.occurrence) == (State.PENDING, START + 9 * HOUR)


def test_all_that_were_missed_run_one_after_the_other() -> None:
    firing = decide(now=START + 3 * HOUR, misfire="all", misfire_window=100 * HOUR)
    assert [job.occurrence for job in firing.jobs] == [START + n * HOUR for n in range(4)]
    assert {job.terms.gate for job in firing.jobs} == {schedule_gate("hourly")}
    assert firing.made == 4


@pytest.mark.parametrize(
    ("limits", "runs"),
    [
        ({"misfire_limit": 3, "misfire_window": 100 * HOUR}, 3),
        ({"misfire_limit": 100, "misfire_window": 4 * HOUR}, 5),
        ({"misfire_limit": 3, "misfire_window": 4 * HOUR}, 3),
    ],
)
def test_of_all_that_were_missed_the_latest_run_as_the_limits_say(limits: dict[str, Any], runs: int) -> None:
    missed, *made = decide(now=START + 9 * HOUR, misfire="all", overlap="allow", **limits).jobs
    assert told(missed) == (State.SKIPPED, "misfire", START, START + (9 - runs) * HOUR, 10 - runs)
    assert [job.occurrence for job in made] == [START + n * HOUR for n in range(10 - runs, 10)]
    assert {job.terms.gate for job in made} == {None}


def test_what_was_missed_does_not_run_beside_a_job_that_is_live() -> None:
    (job,) = decide(now=START + 3 * HOUR, misfire="all", misfire_window=100 * HOUR, live=1).jobs
    assert told(job) == (State.SKIPPED, "overlap", START, START + 3 * HOUR, 4)


def test_a_queue_takes_the_first_ones_it_has_room_for() -> None:
    policy: dict[str, Any] = {"misfire": "all", "overlap": "queue_all", "overlap_limit": 2}
    first, second, rest = decide(now=START + 4 * HOUR, misfire_window=100 * HOUR, live=1, **policy).jobs
    assert [first.occurrence, second.occurrence] == [START, START + HOUR]
    assert told(rest) == (State.SKIPPED, "overlap", START + 2 * HOUR, START + 4 * HOUR, 3)


def test_the_one_that_runs_is_ended_for_the_new_one_at_its_instant() -> None:
    assert fire(record(live=1, overlap="cancel_running"), HOURLY, now=START - 1, ahead=SECOND) is None
    firing = decide(now=START, live=1, overlap="cancel_running")
    assert firing.cancels
    assert [job.terms.gate for job in firing.jobs] == [schedule_gate("hourly")]


def test_nothing_is_ended_where_nothing_runs_or_nothing_comes() -> None:
    assert not decide(now=START, overlap="cancel_running").cancels
    late = decide(now=START + 2, live=1, overlap="cancel_running", misfire_window=1)
    assert not late.cancels
    assert [job.reason for job in late.jobs] == ["misfire"]


def test_the_gate_of_the_task_stays_the_gate_of_the_job() -> None:
    own = JobTerms(gate="greet").to_text()
    assert [job.terms.gate for job in decide(now=START, overlap="queue_one", terms=own).jobs] == ["greet"]


def test_a_job_falls_due_when_its_trigger_says_and_is_late_only_after_that() -> None:
    late = Counted(rule=HOURLY, late=600 * SECOND)
    (job,) = decide(now=START + 601 * SECOND, trigger=late, misfire_window=SECOND).jobs
    assert (job.state, job.occurrence, job.due_at) == (State.PENDING, START, START + 600 * SECOND)
    (job,) = decide(now=START + 602 * SECOND, trigger=late, misfire_window=SECOND).jobs
    assert job.state is State.SKIPPED


def test_a_schedule_ends_with_the_last_job_it_may_make() -> None:
    twice = Counted(rule=HOURLY, times=2)
    assert decide(now=START, trigger=twice, made=0).next_at == START + HOUR
    assert decide(now=START, trigger=twice, made=1).next_at is None


def test_what_was_skipped_does_not_count_as_made() -> None:
    once = Counted(rule=HOURLY, times=1)
    firing = decide(now=START, trigger=once, live=1)
    assert (firing.made, firing.next_at) == (0, START + HOUR)


def test_of_what_was_missed_no_more_run_than_may_be_made() -> None:
    trice = Counted(rule=HOURLY, times=3)
    firing = decide(now=START + 9 * HOUR, trigger=trice, made=1, misfire="all", misfire_window=100 * HOUR)
    assert [job.span_count for job in firing.jobs] == [8, 1, 1]
    assert (firing.made, firing.next_at) == (2, None)


@pytest.mark.parametrize("now", [START - SECOND, START, START + 5 * HOUR])
def test_failures_in_a_row_pause_the_schedule_and_leave_its_place(now: int) -> None:
    firing = decide(now=now, pause_after=5, streak=5)
    assert (firing.pause, firing.jobs) == ("5 failures in a row", ())
    assert (firing.expected, firing.fired_through, firing.next_at) == (START - HOUR, START - HOUR, START)


def test_one_failure_less_does_not() -> None:
    assert decide(now=START, pause_after=5, streak=4).pause is None
    assert decide(now=START, pause_after=1, streak=1).pause == "1 failure in a row"


def test_a_paused_schedule_makes_nothing_before_its_time_is_over() -> None:
    assert fire(record(paused_at=START - 1), HOURLY, now=START + HOUR, ahead=SECOND) is None
    until = record(paused_at=START - 1, paused_until=START + HOUR + 1)
    assert fire(until, HOURLY, now=START + HOUR, ahead=SECOND) is None


def test_what_passed_in_the_pause_shares_one_record_and_the_end_of_the_pause_runs() -> None:
    firing = decide(now=START + 3 * HOUR, paused_at=START - 1, paused_until=START + 3 * HOUR)
    paused, job = firing.jobs
    assert told(paused) == (State.SKIPPED, "paused", START, START + 2 * HOUR, 3)
    assert (job.state, job.occurrence) == (State.PENDING, START + 3 * HOUR)
    assert firing.resumes
    assert (firing.expected, firing.fired_through) == (START - HOUR, START + 3 * HOUR)
    assert firing.next_at == START + 4 * HOUR


def test_what_came_after_the_pause_is_told_from_what_passed_in_it() -> None:
    firing = decide(now=START + 9 * HOUR, paused_at=START, paused_until=START + 4 * HOUR + 1)
    assert [(job.reason, job.span_count) for job in firing.jobs] == [("paused", 5), ("misfire", 4), (None, 1)]
    assert firing.resumes


def test_a_pause_in_which_nothing_passed_leaves_no_record() -> None:
    firing = decide(now=START - 2 * SECOND, paused_at=START - HOUR, paused_until=START - 3 * SECOND)
    assert (firing.resumes, firing.jobs, firing.next_at) == (True, (), START)


def test_failures_before_the_pause_do_not_pause_it_again() -> None:
    firing = decide(now=START, paused_at=START - 1, paused_until=START, pause_after=2, streak=2)
    assert (firing.pause, firing.resumes, firing.made) == (None, True, 1)


def test_a_schedule_that_made_all_its_jobs_goes_on_without_a_record() -> None:
    once = Counted(rule=HOURLY, times=1)
    over: dict[str, Any] = {"next_at": None, "made": 1, "paused_at": START, "paused_until": START + 9 * HOUR}
    firing = decide(now=START + 9 * HOUR, trigger=once, **over)
    assert (firing.resumes, firing.jobs, firing.next_at) == (True, (), None)


def test_a_pause_too_long_for_one_firing_is_told_piece_by_piece_before_the_schedule_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passing, "MOST_WALKED", 3)
    trigger = Counted(rule=HOURLY, can_count=False)
    pause: dict[str, Any] = {"paused_at": START, "paused_until": START + 5 * HOUR}
    firing = decide(now=START + 5 * HOUR, trigger=trigger, **pause)
    assert [(job.reason, job.span_count) for job in firing.jobs] == [("paused", 3)]
    assert not firing.resumes
    moved: dict[str, Any] = {"fired_through": firing.fired_through, "next_at": firing.next_at, **pause}
    firing = decide(now=START + 5 * HOUR, trigger=trigger, **moved)
    assert [(job.reason, job.span_count) for job in firing.jobs] == [("paused", 2), (None, 1)]
    assert firing.resumes


@pytest.mark.parametrize("shift", [-HOUR // 2, HOUR // 2])
def test_a_time_that_the_zone_no_longer_has_is_put_right_and_then_fires(shift: int) -> None:
    moved = Every(interval=HOUR, start=START + shift)
    schedule = record(fired_through=START - HOUR // 4)
    firing = fire(schedule, moved, now=START, ahead=SECOND)
    assert firing == correct(schedule, moved)
    assert firing is not None
    assert (firing.jobs, firing.fired_through, firing.next_at) == ((), START - HOUR // 4, START + HOUR // 2)
    again = replace(schedule, next_at=firing.next_at)
    assert correct(again, moved) is None
    then = fire(again, moved, now=START + HOUR // 2, ahead=SECOND)
    assert then is not None
    assert then.made == 1


def test_a_schedule_that_the_zone_has_ended_or_begun_again_is_put_right() -> None:
    over = At(instants=(START - HOUR,))
    firing = fire(record(), over, now=START, ahead=SECOND)
    assert firing is not None
    assert (firing.jobs, firing.next_at) == ((), None)
    assert correct(record(next_at=None), replace(HOURLY, times=3)) is None, "it is over whatever was counted"
    begun = correct(record(next_at=None), HOURLY)
    assert begun is not None
    assert begun.next_at == START


@pytest.mark.parametrize("held", [{"paused_at": START}, {"parked_at": START, "next_at": None}])
def test_a_schedule_that_is_held_is_not_put_right(held: dict[str, Any]) -> None:
    assert correct(record(**{"next_at": START + 1} | held), HOURLY) is None
