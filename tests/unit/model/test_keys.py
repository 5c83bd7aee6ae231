"""Who holds a key, and what becomes of the next who asks."""

from __future__ import annotations

import pytest

from duetime.model.job import IfExists, Key, KeyDecision, KeyHolder, decide_key
from duetime.model.states import State

NOW = 1_000


def holder(
    state: State, *, finished_at: int | None = None, keep: int | None = None, until: int | None = None
) -> KeyHolder:
    return KeyHolder("id", state, "{}", finished_at, keep, until)


WAITS = holder(State.PENDING)
RUNS = holder(State.RUNNING)
KEPT = holder(State.SUCCEEDED, finished_at=NOW - 5, keep=6)


@pytest.mark.parametrize(
    ("if_exists", "other", "verdict"),
    [
        ("return", WAITS, KeyDecision.JOIN),
        ("return", RUNS, KeyDecision.JOIN),
        ("return", KEPT, KeyDecision.JOIN),
        ("replace", WAITS, KeyDecision.REPLACE),
        ("replace", RUNS, KeyDecision.TAKE_OVER),
        ("replace", KEPT, KeyDecision.TAKE_OVER),
        ("raise", WAITS, KeyDecision.REFUSE),
        ("raise", RUNS, KeyDecision.REFUSE),
        ("raise", KEPT, KeyDecision.REFUSE),
    ],
)
def test_the_request_says_what_becomes_of_it(
    if_exists: IfExists, other: KeyHolder, verdict: KeyDecision
) -> None:
    assert decide_key(Key(value="k", if_exists=if_exists), other, now=NOW) is verdict


@pytest.mark.parametrize("if_exists", ["return", "replace", "raise"])
def test_a_hold_that_is_over_stops_nobody(if_exists: IfExists) -> None:
    over = holder(State.FAILED, finished_at=NOW - 5, keep=5, until=NOW)
    assert decide_key(Key(value="k", if_exists=if_exists), over, now=NOW) is KeyDecision.TAKE_OVER


def test_the_longer_of_two_holds_counts() -> None:
    assert holder(State.FAILED, finished_at=NOW - 5, keep=6, until=NOW - 1).holds(NOW)
    assert holder(State.FAILED, finished_at=NOW - 5, keep=1, until=NOW + 1).holds(NOW)
    assert not holder(State.FAILED, finished_at=NOW - 5).holds(NOW)


def test_a_live_job_holds_its_key_whatever_it_asked_for() -> None:
    assert holder(State.PENDING, keep=0, until=NOW - 1).holds(NOW)
