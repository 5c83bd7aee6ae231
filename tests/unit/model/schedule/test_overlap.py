from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.schedule.firing import admit, check_turns, in_turn, may_plant
from tests.unit.model.schedule.firing_kit import record


@pytest.mark.parametrize(
    ("policy", "live", "runs"),
    [
        ({"overlap": "allow"}, 9, [1, 2, 3]),
        ({"overlap": "skip"}, 0, [1, 2, 3]),
        ({"overlap": "skip"}, 1, []),
        ({"overlap": "queue_one"}, 0, [1, 2]),
        ({"overlap": "queue_one"}, 1, [1]),
        ({"overlap": "queue_one"}, 2, []),
        ({"overlap": "queue_one"}, 3, []),
        ({"overlap": "queue_all", "overlap_limit": 2}, 0, [1, 2, 3]),
        ({"overlap": "queue_all", "overlap_limit": 2}, 2, [1]),
        ({"overlap": "queue_all", "overlap_limit": 2}, 3, []),
        ({"overlap": "queue_all", "overlap_limit": 2}, 4, []),
    ],
)
def test_the_first_ones_run_as_far_as_there_is_room(policy: Any, live: int, runs: list[int]) -> None:
    assert admit(record(live=live, **policy), [1, 2, 3]) == ([], runs, [1, 2, 3][len(runs) :])


@pytest.mark.parametrize("live", [0, 5])
def test_of_several_that_would_end_each_other_only_the_last_runs(live: int) -> None:
    assert admit(record(live=live, overlap="cancel_running"), [1, 2, 3]) == ([1, 2], [3], [])


@pytest.mark.parametrize(
    ("policy", "live", "may"),
    [
        ({"overlap": "skip"}, 0, True),
        ({"overlap": "skip"}, 1, False),
        ({"overlap": "allow"}, 5, True),
        ({"overlap": "allow", "pause_after": 3}, 0, True),
        ({"overlap": "allow", "pause_after": 3}, 1, False),
        ({"overlap": "queue_one"}, 1, True),
        ({"overlap": "queue_one"}, 2, False),
        ({"overlap": "queue_all", "overlap_limit": 3}, 3, True),
        ({"overlap": "queue_all", "overlap_limit": 3}, 4, False),
        ({"overlap": "cancel_running"}, 0, True),
        ({"overlap": "cancel_running"}, 1, False),
    ],
)
def test_a_job_is_planted_only_where_the_instant_cannot_decide_otherwise(
    policy: Any, live: int, may: bool
) -> None:
    assert may_plant(record(live=live, **policy)) is may


@pytest.mark.parametrize(
    ("overlap", "beside", "turns"),
    [
        ("allow", True, False),
        ("skip", False, False),
        ("skip", True, True),
        ("queue_one", False, True),
        ("queue_all", False, True),
        ("cancel_running", False, True),
    ],
)
def test_jobs_wait_for_each_other_where_they_must_not_run_side_by_side(
    overlap: str, beside: bool, turns: bool
) -> None:
    assert in_turn(record(overlap=overlap), several=beside) is turns


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all", "cancel_running"])
def test_a_task_with_a_limit_of_its_own_takes_no_policy_that_needs_a_gate(overlap: Any) -> None:
    with pytest.raises(InvalidOption, match=f"overlap='{overlap}' does not go with limit= or rate=.*send"):
        check_turns(overlap, "latest", task="send", limited=True)
    check_turns(overlap, "latest", task="send", limited=False)


def test_what_was_missed_cannot_run_in_turn_under_a_limit_either() -> None:
    with pytest.raises(InvalidOption, match=r"misfire='all'.*overlap='allow'"):
        check_turns("skip", "all", task="send", limited=True)
    check_turns("allow", "all", task="send", limited=True)
    check_turns("skip", "latest", task="send", limited=True)
