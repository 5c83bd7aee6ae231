"""What a worker asks for fits the room it has."""

from __future__ import annotations

from typing import cast

from duetime.model.task import TaskOptions
from duetime.model.time import SECOND
from duetime.runtime.claiming.fetcher import Fetcher, TaskGroup
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import Slots
from tests.unit.runtime.claiming.fetching import idle_fetcher
from tests.unit.runtime.kit import claim

PLAIN, IN_CHILD = TaskGroup(("plain",)), TaskGroup(("heavy",), in_child=True)


def handler(name: str, *, cpu: bool = False) -> Handler:
    arguments = cast("Arguments", None)
    return Handler(
        name=name, function=print, is_async=True, options=TaskOptions(cpu=cpu), arguments=arguments
    )


def fetcher_with(slots: Slots, *queues: str) -> Fetcher:
    handlers = {"plain": handler("plain"), "heavy": handler("heavy", cpu=True)}
    return idle_fetcher(handlers=handlers, slots=slots, queues=queues)


def test_what_starts_now_fits_the_slots_that_each_queue_has_left() -> None:
    slots = Slots(4, {"mail": 2})
    slots.take(claim(queue="mail"))
    found = fetcher_with(slots, "mail", "default")._request(PLAIN, 3, below_priority=4)
    assert dict(found.queues) == {"mail": 1, "default": 3}
    assert (found.tasks, found.limit, found.below_priority) == (("plain",), 3, 4)
    assert (found.ahead, found.unstarted) == (0, False)


def test_a_queue_without_room_is_not_asked_for() -> None:
    slots = Slots(4, {"mail": 1})
    slots.take(claim(queue="mail"))
    assert fetcher_with(slots, "mail")._request(PLAIN, 3).queues == ()


def test_what_waits_here_may_be_more_than_there_are_free_slots() -> None:
    slots = Slots(1, {})
    slots.take(claim())
    asked = fetcher_with(slots, "default")
    in_advance, ahead = asked._request(PLAIN, 5, hold=True), asked._request(PLAIN, 5, hold=True, ahead=SECOND)
    assert in_advance.queues == ahead.queues == (("default", 5),)
    assert (in_advance.unstarted, in_advance.ahead) == (True, 0)
    assert (ahead.unstarted, ahead.ahead) == (False, SECOND)


async def test_what_is_held_of_a_queue_is_no_more_than_the_slots_it_has_left() -> None:
    slots = Slots(9, {"mail": 4})
    slots.take(claim("runs", queue="mail"))
    asked = fetcher_with(slots, "mail", "default")
    for job_id, queue in (("a", "mail"), ("b", "mail"), ("c", "default")):
        asked.hold.add([claim(job_id, queue=queue)])
    left = {"mail": 1, "default": 5}
    assert (
        dict(asked._request(PLAIN, 5, hold=True).queues)
        == dict(asked._request(PLAIN, 5, hold=True, ahead=SECOND).queues)
        == left
    )
    asked.hold.add([claim("d", queue="mail")])
    assert dict(asked._request(PLAIN, 5, hold=True, ahead=SECOND).queues) == {"default": 5}
    asked.hold.take_all()


def test_no_two_questions_have_the_same_name() -> None:
    asked = fetcher_with(Slots(1, {}), "default")
    assert asked._request(PLAIN, 1).claim_id != asked._request(PLAIN, 1).claim_id


def test_no_queue_is_always_the_first() -> None:
    asked = fetcher_with(Slots(1, {}), "one", "other")
    assert {asked._request(PLAIN, 1).queues[0][0] for _ in range(100)} == {"one", "other"}


async def test_children_are_not_waited_for() -> None:
    asked = fetcher_with(Slots(4, {}, children=2), "default")
    asked._groups()
    asked.hold.add([claim(task="heavy")])
    assert (asked._room_to_hold(PLAIN), asked._room_to_hold(IN_CHILD)) == (4, 1)
    asked.hold.take_all()
