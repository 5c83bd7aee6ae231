from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from duetime.model.job import Claim
from duetime.model.time import SECOND
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.options import WorkerOptions
from tests.unit.runtime.kit import StillTime, claim, context_of


class Ends:
    """What becomes of held claims; slots are free or not."""

    def __init__(self) -> None:
        self.free = True
        self.times = 0
        self.started: list[str] = []
        self.released: list[str] = []
        self.asked = asyncio.Event()
        self.given_up = asyncio.Event()

    def on_due(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        self.asked.set()
        self.times += 1
        if not self.free:
            return claims
        self.started += [claim.job_id for claim in claims]
        return []

    def on_late(self, claim: Claim) -> None:
        self.released.append(claim.job_id)
        self.given_up.set()


class Slots:
    """Starts claims of the queues that are open."""

    def __init__(self, open_queues: set[str]) -> None:
        self.open = open_queues
        self.started: list[str] = []

    def on_late(self, _: Claim) -> None: ...

    def on_due(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        self.started += [claim.job_id for claim in claims if claim.queue in self.open]
        return [claim for claim in claims if claim.queue not in self.open]


@pytest.fixture
async def ends() -> Ends:
    return Ends()


def hold_of(
    ends: Ends | Slots, time: StillTime, *, budget: int = 2, slots: int = 9, window: int = SECOND
) -> HeldClaims:
    context = context_of(None, options=WorkerOptions(window=window), time=time)
    return HeldClaims(context, slots, budget=lambda: budget, on_due=ends.on_due, on_late=ends.on_late)


async def test_a_claim_starts_when_its_time_has_come_and_leaves(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000))
    hold.add([claim("a", due_at=1_000)])
    assert (len(hold.claims), hold.room) == (1, 1)
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert (ends.started, len(hold.claims), hold.room) == (["a"], 0, 2)


async def test_a_timer_that_fires_early_by_the_stores_clock_starts_nothing(ends: Ends) -> None:
    time = StillTime(999)
    hold = hold_of(ends, time)
    hold.add([claim("a", due_at=1_000)])
    for _ in range(20):
        await asyncio.sleep(0)
    assert not ends.asked.is_set()
    time.instant = 1_000
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert ends.started == ["a"]


async def test_claims_that_are_due_at_the_same_instant_start_together(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), budget=9)
    for job_id in "abc":
        hold.add([claim(job_id, due_at=1_000)])
    hold.add([claim("b", due_at=1_000, fence=2)])
    hold.claims.pop("c")
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert (ends.started, ends.times, len(hold.claims)) == (["a", "b"], 1, 0)


async def test_of_those_of_one_instant_the_most_urgent_is_first_also_if_it_came_last(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), budget=9)
    for job_id, priority in (("last", 9), ("third", 5), ("second", 5), ("first", 0)):
        hold.add([claim(job_id, due_at=1_000, priority=priority)])
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert ends.started == ["first", "second", "third", "last"]


async def test_a_claim_that_comes_after_others_of_its_instant_were_taken_away_starts(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), budget=9)
    hold.add([claim("a", due_at=1_000)])
    hold.take_all()
    hold.add([claim("b", due_at=1_000)])
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert ends.started == ["b"]


class Far(StillTime):
    """A clock that also tells how far an instant is."""

    def until(self, instant: int) -> float:
        return max(0, instant - self.instant) / SECOND


async def test_the_loop_is_woken_shortly_before_the_next_due_time_and_then_exactly_at_it(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    waits: list[float] = []
    call_later = loop.call_later

    def noted(wait: float, call: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        waits.append(wait)
        return call_later(wait, call, *args)

    monkeypatch.setattr(loop, "call_later", noted)
    time = Far(0)
    hold = hold_of(ends, time, budget=9)
    for job_id, due_at in (("lone", 500_000), ("before", 100_000), ("near", 10_000)):
        hold.add([claim(job_id, due_at=due_at)])
    assert waits == [0.48, 0.08, 0.01]
    time.instant = 81_000
    hold._come_due()
    assert ends.started == ["near"]
    assert waits[-1] == 0.019, "from there on it is exact"
    hold.take_all()


async def test_a_claim_without_a_slot_waits_and_is_given_back_after_a_window(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), window=20_000)
    ends.free = False
    hold.add([claim("a", due_at=1_000)])
    await asyncio.wait_for(ends.asked.wait(), 5)
    waiting = hold.first_waiting()
    assert waiting is not None
    assert waiting.job_id == "a"
    await asyncio.wait_for(ends.given_up.wait(), 5)
    assert (ends.released, ends.started, hold.first_waiting(), len(hold.claims)) == (["a"], [], None, 0)


async def test_those_that_were_held_beyond_the_slots_wait_for_a_moment_only(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), budget=9, slots=2, window=60 * SECOND)
    ends.free = False
    for job_id, priority in (("d", 9), ("c", 5), ("b", 1), ("a", 0)):
        hold.add([claim(job_id, due_at=1_000, priority=priority)])
    await asyncio.wait_for(ends.given_up.wait(), 5)
    assert (ends.released, len(hold.waiting)) == (["c", "d"], 2)


async def test_of_those_that_wait_the_most_urgent_is_first(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(9_000), budget=9)
    ends.free = False
    for job_id, priority, due_at in (("late", 5, 3_000), ("early", 5, 2_000), ("urgent", 0, 4_000)):
        hold.add([claim(job_id, priority=priority, due_at=due_at)])
    order: list[str] = []
    for _ in range(50):
        await asyncio.sleep(0.001)
        if len(hold.claims) == len(hold.waiting):
            break
    while (first := hold.first_waiting()) is not None:
        order.append(first.job_id)
        hold.claims.pop(first.job_id)
    assert order == ["urgent", "early", "late"]


async def test_what_is_taken_away_neither_starts_nor_is_given_back(ends: Ends) -> None:
    time = StillTime(0)
    hold = hold_of(ends, time, window=1)
    hold.add([claim("a", due_at=1_000)])
    hold.add([claim("b", due_at=1_000)])
    hold.add_due([claim("late")])
    del hold.claims["a"]
    assert [held.job_id for held in hold.take_all()] == ["b", "late"]
    time.instant = 1_000
    await asyncio.sleep(0.01)
    assert (ends.started, ends.released, hold.claims.get("b")) == ([], [], None)


async def test_no_more_than_the_budget_has_room(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(0), budget=1)
    hold.add([claim("a")])
    hold.add([claim("b")])
    assert hold.room == 0


async def test_a_full_queue_does_not_keep_others_from_their_slots() -> None:
    slots = Slots({"open"})
    hold = hold_of(slots, StillTime(1_000), budget=4)
    hold.add_due([claim("slow", queue="full", priority=0), claim("fast", queue="open", priority=9)])
    hold.hand_out(1)
    assert slots.started == ["fast"]
    hold.hand_out(1)
    assert (slots.started, len(hold.waiting), len(hold.claims)) == (["fast"], 1, 1)
    slots.open.add("full")
    hold.hand_out(1)
    assert (slots.started, len(hold.waiting), len(hold.claims)) == (["fast", "slow"], 0, 0)


async def test_no_more_are_handed_out_than_are_asked_for_and_the_most_urgent_first() -> None:
    slots = Slots({"default"})
    hold = hold_of(slots, StillTime(1_000), budget=9)
    hold.add_due([claim("third", priority=5), claim("last", priority=9)])
    hold.add_due([claim("first", priority=0)])
    hold.add_due([claim("second", priority=3), claim("taken", priority=1)])
    hold.claims.pop("taken")
    hold.hand_out(2)
    assert slots.started == ["first", "second"], "one that was taken otherwise is neither started nor counted"
    hold.hand_out(9)
    assert slots.started == ["first", "second", "third", "last"]


async def test_those_that_are_refused_keep_their_place_before_those_that_were_not_offered() -> None:
    slots = Slots({"open"})
    hold = hold_of(slots, StillTime(1_000), budget=9)
    hold.add_due([claim(f"full {n}", queue="full", priority=n) for n in range(4)])
    hold.add_due([claim(f"open {n}", queue="open", priority=n) for n in range(4)])
    hold.hand_out(2)
    assert slots.started == ["open 0", "open 1"]
    slots.open.add("full")
    hold.hand_out(9)
    assert slots.started[2:] == ["full 0", "full 1", "full 2", "open 2", "full 3", "open 3"]


async def test_a_claim_is_given_back_a_window_after_it_came_however_often_it_was_refused(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000), window=20_000)
    hold.add_due([claim("a"), claim("b")])
    ends.free = False
    hold.hand_out(1)
    hold.claims.pop("b")
    await asyncio.wait_for(ends.given_up.wait(), 5)
    assert (ends.released, len(hold.waiting), len(hold.claims)) == (["a"], 0, 0)


async def test_nothing_is_kept_of_a_claim_that_has_been_handed_out() -> None:
    hold = hold_of(Slots({"default"}), StillTime(1_000))
    came = claim("a")
    known = sys.getrefcount(came)
    hold.add_due([came])
    assert sys.getrefcount(came) > known
    hold.hand_out(1)
    assert sys.getrefcount(came) == known, "its timer, a window long, must not keep it"


async def test_a_job_that_comes_back_under_a_new_claim_is_held_under_that_one_alone(ends: Ends) -> None:
    time = StillTime(1_000)
    hold = hold_of(ends, time)
    hold.add([claim("a", due_at=1_000, fence=1)])
    hold.add([claim("a", due_at=2_000, fence=2)])
    for _ in range(20):
        await asyncio.sleep(0)
    assert (ends.started, len(hold.claims)) == ([], 1), "the timer of the old claim is gone"
    time.instant = 2_000
    await asyncio.wait_for(ends.asked.wait(), 5)
    assert (ends.started, len(hold.claims)) == (["a"], 0)


async def test_a_new_claim_that_is_not_due_does_not_take_the_place_of_one_that_was(ends: Ends) -> None:
    hold = hold_of(ends, StillTime(1_000))
    hold.add_due([claim("a", due_at=1_000, fence=1)])
    hold.add([claim("a", due_at=2_000, fence=2)])
    assert hold.first_waiting() is None
    assert len(hold.claims) == 1
