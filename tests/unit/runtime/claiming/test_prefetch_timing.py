"""When what falls due soon is claimed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from duetime.model.job import Claim
from duetime.model.time import MILLISECOND, SECOND, Instant
from duetime.runtime.claiming import fetcher as module
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.running.slots import Slots
from duetime.stores.base import ClaimRequest, NextDue
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, OneJob, Stuck, idle_fetcher, is_woken
from tests.unit.runtime.kit import claim


class Stream(OneJob):
    """A store whose next jobs always fall due within the window; it takes a while to hand them out."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(story)
        self.fetcher: Fetcher | None = None

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        if not demand.ahead:
            return []
        assert self.fetcher is not None
        # What is held starts meanwhile, and makes room.
        self.fetcher.hold.take_all()
        self._story.append(f"claim {demand.limit}")
        return [claim(f"{len(self._story)} {n}", due_at=SECOND // 2) for n in range(demand.limit)]

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(due_at=SECOND // 2)


async def test_more_is_claimed_ahead_as_soon_as_half_is_started_also_if_some_started_while_it_was_asked_for() -> (
    None
):
    store = Stream([])
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=Slots(10, {}))
    store.fetcher = fetcher
    for n in range(6):
        fetcher.hold.add([claim(f"held {n}", due_at=SECOND // 2)])
    assert await fetcher.round() == 0, (
        "four were asked for and found, and the six before have started meanwhile"
    )
    assert await fetcher.round() == 0
    assert await fetcher.round() == 0.5, "what is not held is claimed when it is due"
    assert [said for said in store._story if said != "next due"] == ["claim 4", "claim 6"]


class Told(OneJob):
    """A store that tells which jobs it is asked for; one of the due ones is there, and what comes ahead as said."""

    def __init__(self, story: list[str], *, due_at: Instant, ahead: Sequence[Claim] = ()) -> None:
        super().__init__(story)
        self._due_at = due_at
        self.ahead = ahead

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        self._story.append("ahead" if demand.ahead else "due")
        return list(self.ahead) if demand.ahead else [claim(f"{len(self._story)}")]

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(due_at=self._due_at)


def fetcher_of(store: Told, *, slots: int = 10) -> Fetcher:
    return idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=Slots(slots, {}))


async def test_a_job_that_may_not_be_claimed_ahead_is_claimed_when_it_is_due() -> None:
    story: list[str] = []
    fetcher = fetcher_of(Told(story, due_at=SECOND // 8))
    assert await fetcher.round() == 0.125
    assert story == ["due", "next due", "ahead"]
    await fetcher.round()
    assert story[3] == "due", "it is known to be"


async def test_what_a_claim_ahead_has_left_is_looked_for_before_anything_else() -> None:
    story: list[str] = []
    held = [claim("held", due_at=SECOND // 4)]
    fetcher = fetcher_of(Told(story, due_at=SECOND // 4, ahead=held))
    assert await fetcher.round() == 0
    story.clear()
    await fetcher.round()
    assert story[0] == "next due"


async def test_who_keeps_up_with_jobs_that_are_always_due_gets_ahead_of_them() -> None:
    story: list[str] = []
    fetcher = fetcher_of(Told(story, due_at=0, ahead=[claim("held", due_at=SECOND)]))
    assert await fetcher.round() == 0
    assert story == ["due", "next due", "ahead"]
    fetcher.hold.take_all()


async def test_a_worker_that_keeps_up_does_not_claim_ahead_every_time() -> None:
    story: list[str] = []
    fetcher = fetcher_of(Told(story, due_at=0))
    for _ in range(2):
        assert await fetcher.round() == 0
    assert story == ["due", "next due", "ahead", "due", "next due"]


async def test_who_does_not_keep_up_claims_what_is_due_alone() -> None:
    story: list[str] = []
    fetcher = fetcher_of(Told(story, due_at=0), slots=1)
    for _ in range(2):
        await fetcher.round()
    assert "ahead" not in story


class Willing(Busy):
    """A dispatcher that starts whatever is held."""

    def start_all(self, claims: Sequence[Claim], *, unmarked: bool) -> Sequence[Claim]:
        del claims, unmarked
        return []


async def test_room_that_starts_have_made_is_told_once() -> None:
    ahead = [claim(f"held {n}", due_at=SECOND // 2) for n in range(4)]
    store = Told([], due_at=SECOND // 2, ahead=ahead)
    fetcher = idle_fetcher(
        store=store, dispatcher=Willing([]), handlers={"task": HANDLER}, slots=Slots(4, {})
    )
    await fetcher.round()
    told: list[bool] = []
    for held in fetcher.hold.take_all()[:2]:
        fetcher.wakeup.clear()
        fetcher._start_held([held])
        told.append(await is_woken(fetcher))
    assert told == [True, False]


class Asked(Told):
    """A store that tells how many jobs it is asked for ahead of their time."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        if demand.ahead:
            self._story.append(f"ahead {demand.limit}")
        return []


@pytest.mark.parametrize(
    ("pace", "gap", "workers", "held"),
    [(1, 1, 1, 1_200), (1, 1, 4, 300), (1, 1, 300, 10), (1, 50 * MILLISECOND, 1, 10), (SECOND, 1, 1, 10)],
)
async def test_short_runs_let_a_worker_hold_its_share_of_what_ends_in_a_moment_however_few_slots_it_has(
    pace: int, gap: int, workers: int, held: int
) -> None:
    store, crowd, busy = Asked([], due_at=SECOND // 8), FleetPacing(), Busy([])
    crowd.workers, busy.speed.duration, busy.speed.gap = workers, pace, gap
    fetcher = idle_fetcher(
        crowd, store=store, dispatcher=busy, handlers={"task": HANDLER}, slots=Slots(10, {})
    )
    await fetcher.round()
    assert store._story == ["next due", f"ahead {held}"]


class Rich(Told):
    """A store that has as many jobs for the next instant as anybody asks for."""

    def __init__(self, story: list[str], *, due_at: Instant) -> None:
        super().__init__(story, due_at=due_at)
        self.asked: list[tuple[str, int]] = []

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        if not demand.ahead:
            return []
        most = min(demand.limit, sum(most for _, most in demand.queues))
        self._story.append(f"ahead {most}")
        self.asked.append((" ".join(demand.tasks), demand.limit))
        return [claim(f"{len(self._story)} {n}", due_at=self._due_at) for n in range(most)]


async def test_no_more_is_held_of_a_queue_than_it_has_slots_and_what_is_taken_away_makes_room() -> None:
    store = Rich([], due_at=SECOND // 8)
    slots = Slots(10, {"default": 3})
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await fetcher.round() == 0
    await fetcher.round()
    assert store._story == ["next due", "ahead 3"], "the queue has no slots left to look for"
    fetcher.wakeup.clear()
    assert fetcher.take(next(iter(fetcher.hold.claims))) is not None
    assert await is_woken(fetcher)
    await fetcher.round()
    assert store._story == ["next due", "ahead 3", "next due", "ahead 1"]
    fetcher.hold.take_all()


@pytest.mark.parametrize(
    ("paces", "asked"),
    [
        ({"quick": 1}, [("slow quick", 10), ("quick", 1_190)]),
        ({"quick": 1, "slow": 30 * MILLISECOND}, [("slow quick", 10), ("quick", 1_190)]),
        ({"quick": 1, "slow": 1}, [("slow quick", 1_200)]),
        ({}, [("slow quick", 10)]),
    ],
)
async def test_beyond_its_slots_a_worker_holds_jobs_of_tasks_alone_whose_own_runs_are_short(
    paces: dict[str, float], asked: list[tuple[str, int]]
) -> None:
    store, busy = Rich([], due_at=SECOND // 8), Busy([])
    busy.speed.duration, busy.speed.by_task = 1, paces
    handlers = {"slow": HANDLER, "quick": HANDLER}
    fetcher = idle_fetcher(store=store, dispatcher=busy, handlers=handlers, slots=Slots(10, {}))
    for _ in asked:
        await fetcher.round()
    assert store.asked == asked
    fetcher.hold.take_all()


async def test_nobody_asks_for_more_of_short_runs_while_there_are_slots_for_all_that_comes() -> None:
    store, busy = Asked([], due_at=SECOND // 8), Busy([])
    busy.speed.duration = 1
    handlers = {"task": HANDLER, "unknown": HANDLER}
    fetcher = idle_fetcher(store=store, dispatcher=busy, handlers=handlers, slots=Slots(10, {}))
    await fetcher.round()
    assert store._story == ["next due", "ahead 10"]


async def test_a_slot_that_a_waiting_claim_takes_makes_room_for_what_could_not_be_held() -> None:
    ahead = [claim(f"held {n}", due_at=SECOND // 2) for n in range(2)]
    slots, willing = Slots(2, {}), Willing([])
    store = Told([], due_at=SECOND // 2, ahead=ahead)
    fetcher = idle_fetcher(store=store, dispatcher=willing, handlers={"task": HANDLER}, slots=slots)
    await fetcher.round()
    assert fetcher._more_ahead
    fetcher.hold.add_due(fetcher.hold.take_all())
    willing.speed.duration, willing.speed.gap = 1, SECOND
    fetcher.wakeup.clear()
    fetcher.slot_freed()
    assert not fetcher._more_ahead
    assert await is_woken(fetcher)


async def test_a_task_whose_claims_had_to_go_back_is_not_held_beyond_the_slots() -> None:
    slots = Slots(1, {})
    stuck = Stuck(slots)
    fetcher = idle_fetcher(dispatcher=stuck, slots=slots, window=1)
    fetcher.hold.add_due([claim("late", task="task")])
    await asyncio.wait_for(stuck.has_given_back.wait(), 5)
    assert stuck.speed.by_task["task"] == SECOND


async def test_who_has_given_claims_back_holds_no_more_than_it_has_slots_for() -> None:
    stuck = Stuck(Slots(10, {}))
    fetcher = idle_fetcher(dispatcher=stuck, slots=Slots(10, {}), window=1)
    assert fetcher.hold.room == 1_200
    fetcher.hold.add_due([claim("late")])
    await asyncio.wait_for(stuck.has_given_back.wait(), 5)
    assert fetcher.hold.room == 10


class Clocked(Told):
    """A store whose next job falls due at a set moment of a clock that the test moves."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, due_at: Instant, ahead: Sequence[Claim] = ()
    ) -> None:
        super().__init__([], due_at=due_at, ahead=ahead)
        self.now = SECOND
        monkeypatch.setattr(module, "monotonic", lambda: self.now)

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(now=self.now, due_at=self._due_at)


@pytest.mark.parametrize(("wait", "pause"), [(0.2, 0.2), (0.95, 0.0125), (5, 4.0625)])
async def test_what_is_near_is_claimed_and_what_is_far_awaited(
    monkeypatch: pytest.MonkeyPatch, wait: float, pause: float
) -> None:
    store = Clocked(monkeypatch, due_at=SECOND + int(wait * SECOND))
    assert await fetcher_of(store)._look_ahead() == pytest.approx(pause)
    assert ("ahead" in store._story) is (wait == 0.2)


async def test_two_claims_ahead_are_half_a_window_apart_unless_a_job_falls_due_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Clocked(monkeypatch, due_at=2 * SECOND - 100_000)
    fetcher = fetcher_of(store)
    fetcher._ahead_from = SECOND + SECOND // 2
    assert await fetcher._look_ahead() == 0.5
    assert "ahead" not in store._story
    store._due_at = SECOND + SECOND // 2
    await fetcher._look_ahead()
    assert "ahead" in store._story


async def test_what_finds_no_room_is_awaited_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [claim(f"held {n}", due_at=9 * SECOND) for n in range(4)]
    store = Clocked(monkeypatch, due_at=SECOND + SECOND // 2, ahead=held)
    fetcher = fetcher_of(store, slots=4)
    assert await fetcher._look_ahead() == 0
    store._story.clear()
    assert await fetcher._look_ahead() == 0.5, "all room is taken"
    assert "ahead" not in store._story
    fetcher.hold.take_all()
    assert await fetcher._look_ahead() == 0
    assert "ahead" in store._story
    fetcher.hold.take_all()


@pytest.mark.parametrize(("room", "again"), [(True, True), (False, False)])
async def test_a_worker_catches_up_only_with_room_and_not_again_before_half_a_window_has_passed(
    monkeypatch: pytest.MonkeyPatch, *, room: bool, again: bool
) -> None:
    store = Clocked(monkeypatch, due_at=0)
    fetcher = fetcher_of(store)
    if not room:
        fetcher.hold._budget = lambda: 0
    asked: list[bool] = []
    for later in (0, SECOND // 2 - 1, 1):
        store.now += later
        store._story.clear()
        await fetcher._look_ahead(keeps_up=True)
        asked.append("ahead" in store._story)
    assert asked == [room, False, again]
