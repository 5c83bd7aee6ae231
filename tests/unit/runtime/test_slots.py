from __future__ import annotations

from duetime.runtime.slots import Slots


def test_a_queue_without_a_limit_has_room_for_all_free_slots() -> None:
    slots = Slots(3, {"a": None, "b": 2})
    slots.take("b")
    assert (slots.free, slots.taken, slots.room("a"), slots.room("b")) == (2, 1, 2, 1)


def test_a_limit_holds_although_slots_are_free() -> None:
    slots = Slots(10, {"b": 1})
    slots.take("b")
    assert (slots.room("b"), slots.free) == (0, 9)
    slots.give_back("b")
    assert slots.room("b") == 1


def test_no_queue_has_more_room_than_there_are_slots() -> None:
    slots = Slots(1, {"a": None, "b": 5})
    slots.take("a")
    assert (slots.room("a"), slots.room("b"), slots.room("unheard of")) == (0, 0, 0)
