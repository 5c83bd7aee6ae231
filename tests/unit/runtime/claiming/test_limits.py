from __future__ import annotations

from typing import Any

import pytest

from duetime import Scheduler
from duetime.model.time import SECOND
from duetime.runtime.claiming import limits as limited
from duetime.runtime.claiming.limits import LimitedClaimPolicy
from duetime.stores.base import LimitedClaims, NextDue

NOTHING = LimitedClaims([], None)


class Monotonic:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    clock = Monotonic()
    monkeypatch.setattr(limited, "monotonic", clock)
    return clock


def turns(**options: Any) -> LimitedClaimPolicy:
    scheduler = Scheduler("sqlite://")
    scheduler.task(name="task", **options)(print_nothing)
    return LimitedClaimPolicy(scheduler.tasks)


async def print_nothing() -> None: ...


def ask(mine: LimitedClaimPolicy, *answers: LimitedClaims, asked: int = 1) -> None:
    with mine.turn(at_latest=9):
        for answer in answers:
            mine.answered(answer, asked=asked, now=0)


def claims(count: int) -> list[Any]:
    return [object()] * count


def test_a_worker_without_limits_never_asks_until_the_store_says_so() -> None:
    mine = turns()
    mine.ask_again()
    assert not mine.wanted
    mine.look_ahead(NextDue(0, None))
    assert not mine.wanted
    mine.look_ahead(NextDue(0, None, limited=True))
    assert mine.wanted
    assert mine.sooner(10) == 0


def test_a_worker_with_limits_asks_at_its_start_and_when_something_stirs(clock: Monotonic) -> None:
    mine = turns(limit=1)
    assert mine.wanted
    ask(mine, NOTHING)
    assert not mine.wanted
    assert mine.sooner(10) == 9
    mine.ask_again()
    assert mine.wanted


def test_limits_that_are_no_longer_in_use_are_not_asked_for() -> None:
    mine = turns()
    mine.look_ahead(NextDue(0, None, limited=True))
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(0, None, limited=False))
    mine.ask_again()
    assert not mine.wanted


def test_a_worker_whose_own_tasks_have_limits_asks_for_their_jobs_also_where_none_waits_yet() -> None:
    mine = turns(limit=1)
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(0, None, limited=False))
    assert mine.in_use
    mine.ask_again()
    assert mine.wanted


def test_limited_jobs_go_first_every_second_time() -> None:
    mine = turns(limit=1)
    assert [mine.goes_first() for _ in range(4)] == [True, False, True, False]
    ask(mine, NOTHING)
    assert not mine.goes_first()


def test_what_stirs_while_the_store_is_asked_is_not_forgotten() -> None:
    mine = turns(limit=1)
    with mine.turn(at_latest=9):
        mine.ask_again()
        mine.answered(NOTHING, asked=1, now=0)
    assert mine.wanted


def test_a_question_that_failed_is_asked_again() -> None:
    mine = turns(limit=1)
    with pytest.raises(OSError, match="away"), mine.turn(at_latest=9):
        raise OSError("away")
    assert mine.wanted


def test_time_alone_makes_it_ask_again(clock: Monotonic) -> None:
    mine = turns(rate="1/1s")
    ask(mine, LimitedClaims([], 3 * SECOND))
    assert not mine.wanted
    assert mine.sooner(None) == 3
    assert mine.sooner(1) == 1
    clock.now = 3 * SECOND
    assert mine.wanted


def test_the_next_limited_job_to_fall_due_is_waited_for(clock: Monotonic) -> None:
    mine = turns(limit=1)
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(100, None, 100 + 2 * SECOND, limited=True))
    assert mine.sooner(10) == 2
    clock.now = 2 * SECOND
    assert mine.wanted


def test_the_earliest_of_several_answers_counts(clock: Monotonic) -> None:
    mine = turns(rate="1/1s")
    ask(mine, LimitedClaims([], 5 * SECOND), LimitedClaims([], 2 * SECOND), NOTHING)
    assert mine.sooner(None) == 2
    clock.now = 2 * SECOND
    assert mine.wanted


def test_what_is_said_to_be_there_and_is_not_found_is_asked_for_less_and_less(clock: Monotonic) -> None:
    mine = turns(limit=1)
    pauses = []
    for _ in range(8):
        ask(mine, LimitedClaims([], 0))
        pauses.append(mine.sooner(None) or 0)
        clock.now += SECOND
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < pauses[-1] == 0.5


def test_a_full_answer_waits_for_a_slot_and_lets_nobody_take_slots_in_advance() -> None:
    mine = turns(limit=9)
    ask(mine, LimitedClaims(claims(3), None), asked=3)
    assert mine.waits_for_slots
    assert not mine.wanted
    mine.slot_freed()
    assert mine.wanted


def test_a_short_answer_does_not_wait_for_slots() -> None:
    mine = turns(limit=9)
    ask(mine, LimitedClaims(claims(2), None), asked=3)
    assert not mine.waits_for_slots
    mine.slot_freed()
    assert not mine.wanted


def test_without_room_it_asks_when_there_is_some(clock: Monotonic) -> None:
    mine = turns(limit=1)
    with mine.turn(at_latest=9):
        mine.starved = True
    assert not mine.wanted
    assert mine.sooner(10) == 9
    mine.slot_freed()
    assert mine.wanted


def test_a_queue_that_was_full_is_asked_for_when_it_has_room() -> None:
    mine = turns(limit=1)
    with mine.turn(at_latest=9):
        mine.queue_full = True
        mine.answered(NOTHING, asked=3, now=0)
    assert not mine.waits_for_slots, "the slots of other queues may be used in advance"
    assert not mine.wanted
    mine.slot_freed()
    assert mine.wanted
    ask(mine, NOTHING)
    mine.slot_freed()
    assert not mine.wanted


def test_a_queue_that_gets_room_while_the_store_is_asked_is_asked_for_again() -> None:
    mine = turns(limit=1)
    with mine.turn(at_latest=9):
        mine.queue_full = True
        mine.slot_freed()
        mine.answered(NOTHING, asked=3, now=0)
    assert mine.wanted


def test_it_asks_again_after_a_while_even_if_nothing_is_heard(clock: Monotonic) -> None:
    mine = turns(limit=1)
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(0, None, limited=True))
    assert mine.sooner(None) == 9
    clock.now = 9 * SECOND - 1
    assert not mine.wanted
    clock.now = 9 * SECOND
    assert mine.wanted


def test_while_the_store_has_nothing_under_limits_it_does_not_ask_and_asks_when_it_has(
    clock: Monotonic,
) -> None:
    mine = turns(limit=1)
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(0, None, limited=False))
    clock.now = 100 * SECOND
    assert not mine.wanted
    assert mine.sooner(None) is None
    mine.look_ahead(NextDue(0, None, limited=True))
    assert mine.wanted


def test_what_the_store_says_after_it_was_asked_is_no_news(clock: Monotonic) -> None:
    mine = turns(limit=1)
    mine.look_ahead(NextDue(0, None, limited=False))
    mine.ask_again()
    ask(mine, NOTHING)
    mine.look_ahead(NextDue(0, None, limited=True))
    assert not mine.wanted
