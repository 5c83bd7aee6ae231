from __future__ import annotations

from typing import Any

from duetime.model.job import Claim
from duetime.runtime.running.slots import Slots
from tests.unit.runtime.kit import claim


def fits(slots: Slots, job: Claim) -> bool:
    """Whether a claim may start now."""
    if taken := slots.take(job):
        slots.give_back(job)
    return taken


def test_a_queue_without_a_limit_has_room_for_all_free_slots() -> None:
    slots = Slots(3, {"a": None, "b": 2})
    slots.take(claim(queue="b"))
    assert (slots.free, slots.taken, slots.room("a"), slots.room("b")) == (2, 1, 2, 1)


def test_a_limit_holds_although_slots_are_free() -> None:
    slots = Slots(10, {"b": 1})
    slots.take(claim(queue="b"))
    assert (slots.room("b"), slots.free) == (0, 9)
    slots.give_back(claim(queue="b"))
    assert slots.room("b") == 1


def test_no_queue_has_more_room_than_there_are_slots() -> None:
    slots = Slots(1, {"a": None, "b": 5})
    slots.take(claim(queue="a"))
    assert (slots.room("a"), slots.room("b"), slots.room("unheard of")) == (0, 0, 0)


def test_jobs_in_children_need_a_child_beside_their_slot() -> None:
    slots = Slots(3, {"a": None}, children=1)
    slots.cpu_tasks = frozenset({"cpu"})
    first, second, plain = (claim(queue="a", task=task) for task in ("cpu", "cpu", "plain"))
    assert (fits(slots, first), slots.children_free) == (True, 1)
    slots.take(first)
    assert (fits(slots, second), fits(slots, plain), slots.children_free) == (False, True, 0)
    slots.give_back(first)
    assert fits(slots, second)


def test_a_child_is_of_no_use_without_a_slot() -> None:
    slots = Slots(1, {"a": None}, children=5)
    slots.cpu_tasks = frozenset({"cpu"})
    slots.take(claim(queue="a", task="plain"))
    assert (slots.children_free, fits(slots, claim(queue="a", task="cpu"))) == (0, False)


def test_a_slot_is_taken_by_whoever_fits_and_refused_to_others() -> None:
    slots = Slots(2, {"a": None, "b": 1})
    assert slots.take(claim(queue="b"))
    assert not slots.take(claim(queue="b"))
    assert slots.taken == 1, "a refused claim takes nothing"
    assert slots.take(claim(queue="a"))
    assert not slots.take(claim(queue="a"))
    assert slots.taken == 2


def test_what_a_queue_has_left_is_told_by_its_own_limit_alone() -> None:
    slots = Slots(2, {"a": None, "b": 5})
    slots.take(claim(queue="a"))
    slots.take(claim(queue="b"))
    assert (slots.left("a"), slots.left("b")) == (None, 4)


def test_no_more_jobs_start_than_may_in_all_whatever_has_ended() -> None:
    last: list[int] = []
    slots = Slots(2, {"a": None}, starts=3)
    slots.on_last = lambda: last.append(slots.taken)
    jobs = [claim(queue="a") for _ in range(4)]
    assert slots.take(jobs[0])
    assert slots.take(jobs[1])
    slots.give_back(jobs[0])
    assert (slots.free, slots.taken, last) == (1, 1, [])
    assert slots.take(jobs[2])
    assert (slots.free, slots.taken, last) == (0, 2, [2])
    slots.give_back(jobs[1])
    slots.give_back(jobs[2])
    assert (slots.free, slots.taken, slots.take(jobs[3])) == (0, 0, False)


def test_no_more_slots_are_free_than_jobs_may_start() -> None:
    slots = Slots(10, {"a": None}, starts=1)
    assert (slots.free, slots.taken) == (1, 0)
    assert slots.take(claim(queue="a"))
    assert (slots.free, slots.taken) == (0, 1)


def shared(total: int, **options: Any) -> tuple[Slots, Slots]:
    """The slots of one worker, for each of two stores."""
    slots = Slots(total, {"a": None, "b": 1}, **options)
    return slots, slots.share()


def test_what_runs_for_one_store_takes_a_slot_from_the_other() -> None:
    near, far = shared(2, starts=3)
    near.take(claim(queue="b"))
    assert (far.free, far.taken, far.room("b"), far.starts) == (1, 1, 0, 2)
    far.take(claim(queue="a"))
    assert not near.take(claim(queue="a"))
    near.give_back(claim(queue="b"))
    assert (far.free, far.starts) == (1, 1)


def test_the_next_slot_is_left_to_the_store_that_found_none() -> None:
    near, far = shared(1)
    near.take(claim(queue="a"))
    far.line_up()
    near.give_back(claim(queue="a"))
    assert (near.free, near.take(claim(queue="a")), far.free) == (0, False, 1)
    assert far.take(claim(queue="a"))


def test_the_others_have_all_slots_but_one_for_each_that_is_in_line() -> None:
    near, far = shared(3)
    third = near.share()
    far.line_up()
    third.line_up()
    assert (near.free, far.free, third.free) == (1, 3, 2)
    assert near.next_in_line is far


def test_whoever_leaves_the_line_leaves_what_it_does_not_need() -> None:
    near, far = shared(1)
    told: list[str] = []
    far.on_left_over = lambda: told.append("look again")
    far.line_up()
    near.line_up()
    assert near.free == 0
    far.leave_line()
    assert (near.free, told) == (1, ["look again"])
    near.leave_line()
    far.leave_line()
    assert told == ["look again"], "there is no one who waits"


def test_one_store_alone_has_all_slots_also_while_it_waits() -> None:
    slots = Slots(2, {})
    slots.line_up()
    assert slots.free == 2
