"""What a worker asks for fits the room it has."""

from __future__ import annotations

from typing import cast

from duetime.model.task import TaskOptions
from duetime.model.time import SECOND
from duetime.runtime.claiming.claim_requests import ClaimGroup, ClaimRequests
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.arguments import Arguments
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import Slots
from duetime.stores.base import JobStore
from tests.unit.runtime.kit import StillTime, claim

PLAIN, IN_CHILD = ClaimGroup(("plain",)), ClaimGroup(("heavy",), in_child=True)


def handler(name: str, *, cpu: bool = False) -> Handler:
    arguments = cast("Arguments", None)
    return Handler(
        name=name, function=print, is_async=True, options=TaskOptions(cpu=cpu), arguments=arguments
    )


def holding() -> HeldClaims:
    return HeldClaims(
        budget=lambda: 10,
        slots=10,
        window=SECOND,
        time=StillTime(),
        on_due=lambda claims: claims,
        on_late=lambda _: None,
    )


def requests(slots: Slots, *queues: str, held: HeldClaims | None = None) -> ClaimRequests:
    return ClaimRequests(
        cast("JobStore", None),
        identity=WorkerIdentity(queues=queues, slots=slots.total),
        time=StillTime(),
        handlers={"plain": handler("plain"), "heavy": handler("heavy", cpu=True)},
        queues=queues,
        slots=slots,
        held=holding() if held is None else held,
        limits={},
    )


def test_what_starts_now_fits_the_slots_that_each_queue_has_left() -> None:
    slots = Slots(4, {"mail": 2})
    slots.take(claim(queue="mail"))
    found = requests(slots, "mail", "default").request(PLAIN, 3, below_priority=4)
    assert dict(found.queues) == {"mail": 1, "default": 3}
    assert (found.tasks, found.limit, found.below_priority) == (("plain",), 3, 4)
    assert (found.ahead, found.unstarted) == (0, False)


def test_a_queue_without_room_is_not_asked_for() -> None:
    slots = Slots(4, {"mail": 1})
    slots.take(claim(queue="mail"))
    assert requests(slots, "mail").request(PLAIN, 3).queues == ()


def test_what_waits_here_may_be_more_than_there_are_free_slots() -> None:
    slots = Slots(1, {})
    slots.take(claim())
    asked = requests(slots, "default")
    in_advance, ahead = asked.request(PLAIN, 5, hold=True), asked.request(PLAIN, 5, hold=True, ahead=SECOND)
    assert in_advance.queues == ahead.queues == (("default", 5),)
    assert (in_advance.unstarted, in_advance.ahead) == (True, 0)
    assert (ahead.unstarted, ahead.ahead) == (False, SECOND)


async def test_what_is_held_of_a_queue_is_no_more_than_the_slots_it_has_left() -> None:
    slots = Slots(9, {"mail": 4})
    slots.take(claim("runs", queue="mail"))
    held = holding()
    asked = requests(slots, "mail", "default", held=held)
    for job_id, queue in (("a", "mail"), ("b", "mail"), ("c", "default")):
        held.add(claim(job_id, queue=queue))
    left = {"mail": 1, "default": 5}
    assert (
        dict(asked.request(PLAIN, 5, hold=True).queues)
        == dict(asked.request(PLAIN, 5, hold=True, ahead=SECOND).queues)
        == left
    )
    assert (asked.queue_room_to_hold("mail", 1), asked.queue_room_to_hold("default", 5)) == (1, 5)
    held.add(claim("d", queue="mail"))
    assert dict(asked.request(PLAIN, 5, hold=True, ahead=SECOND).queues) == {"default": 5}
    held.take_all()


def test_no_two_questions_have_the_same_name() -> None:
    asked = requests(Slots(1, {}), "default")
    assert asked.request(PLAIN, 1).claim_id != asked.request(PLAIN, 1).claim_id


def test_no_queue_is_always_the_first() -> None:
    asked = requests(Slots(1, {}), "one", "other")
    assert {asked.request(PLAIN, 1).queues[0][0] for _ in range(100)} == {"one", "other"}


async def test_children_are_not_waited_for() -> None:
    held = holding()
    asked = requests(Slots(4, {}, children=2), "default", held=held)
    asked.groups()
    assert (asked.room(PLAIN), asked.room(IN_CHILD)) == (4, 2)
    held.add(claim(task="heavy"))
    assert (asked.room_to_hold(PLAIN), asked.room_to_hold(IN_CHILD)) == (9, 1)
    held.take_all()
