"""What a hint makes the fetcher ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, cast

import pytest

from duetime.model.instants import MILLISECOND, SECOND, Instant, Micros
from duetime.model.job import Claim
from duetime.model.outcome import Outcome, Released
from duetime.model.task import TaskOptions
from duetime.runtime.arguments import Arguments
from duetime.runtime.crowd import LATEST, SPACING, Crowd
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.fetcher import Fetcher
from duetime.runtime.handler import Handler
from duetime.runtime.identity import Identity
from duetime.runtime.slots import Slots
from duetime.stores.base import Demand, Hint, NextDue, Store
from tests.unit.runtime.kit import NoHealth, StillTime, claim


class Idle:
    """A dispatcher without work."""


class Busy(Idle):
    """A dispatcher that begins a task for each claim, which tells when it runs."""

    pace: float = SECOND
    gap: float = 1

    def __init__(self, story: list[str]) -> None:
        self._story = story
        self._tasks: list[asyncio.Task[None]] = []

    def start_all(self, claims: Sequence[Claim], *, unmarked: bool) -> Sequence[Claim]:
        assert not unmarked, "the store holds what was claimed for a free slot as started"
        self._tasks += [asyncio.create_task(self._run(claim)) for claim in claims]
        return []

    async def _run(self, claim: Claim) -> None:
        self._story.append(f"{claim.job_id} runs")


class LastOfMany(Crowd):
    """A crowd in which all the others go first."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = 1_000_000

    def wait(self, *, spacing: float = SPACING, at_most: float = LATEST) -> float:
        return min(at_most, spacing * self.workers)


class OneJob:
    """A store that has one job, and tells what it is asked."""

    hears_others = True

    def __init__(self, story: list[str]) -> None:
        self._story = story

    async def claim(self, _demand: Demand) -> list[Claim]:
        self._story.append("claim")
        return [claim()]

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        self._story.append("next due")
        return NextDue(now=0, due_at=None)


def idle_fetcher(
    crowd: Crowd | None = None,
    *,
    store: object = None,
    dispatcher: Idle | None = None,
    handlers: Mapping[str, Handler] | None = None,
    slots: Slots | None = None,
    watched: bool = False,
    budget: int = 1,
    window: Micros = SECOND,
) -> Fetcher:
    return Fetcher(
        store=cast("Store", store),
        identity=Identity(queues=("default",), slots=2),
        handlers=handlers or {},
        queues=("default",),
        slots=slots or Slots(2, {}),
        dispatcher=cast("Dispatcher", dispatcher or Idle()),
        time=StillTime(),
        health=NoHealth(),
        crowd=crowd or Crowd(),
        window=window,
        ahead_budget=budget,
        watched=watched,
    )


@pytest.mark.parametrize(("kind", "asks"), [("limits", True), ("jobs", False), ("any", False)])
def test_a_worker_without_limits_asks_for_limited_jobs_when_it_hears_of_some(
    kind: Literal["limits", "jobs", "any"], asks: bool
) -> None:
    fetcher = idle_fetcher()
    fetcher.hear(Hint(kind))
    assert fetcher.limited.wanted is asks


async def test_one_of_many_workers_lets_others_go_first_when_it_hears_of_jobs() -> None:
    fetcher = idle_fetcher(LastOfMany())
    fetcher.hear(Hint("jobs"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fetcher.wakeup.wait(None), 0.01)


async def test_a_hint_is_answered_soon_in_a_fleet_of_any_size() -> None:
    fetcher = idle_fetcher(LastOfMany())
    fetcher.hear(Hint("jobs"))
    await asyncio.wait_for(fetcher.wakeup.wait(None), 10)


HANDLER = Handler(
    name="task", function=print, is_async=True, options=TaskOptions(), arguments=cast("Arguments", None)
)


async def test_what_was_claimed_starts_before_the_store_is_asked_what_comes_next() -> None:
    story: list[str] = []
    fetcher = idle_fetcher(store=OneJob(story), dispatcher=Busy(story), handlers={"task": HANDLER})
    await fetcher.round()
    assert story == ["claim", "job runs", "next due"]


class Backlog(OneJob):
    """A store that has one batch, and then nothing."""

    async def claim(self, demand: Demand) -> list[Claim]:
        first = "claim" not in self._story
        await super().claim(demand)
        return [claim(str(n)) for n in range(demand.limit)] if first else []


async def test_the_next_batch_of_a_backlog_is_asked_for_before_the_one_that_was_claimed_runs() -> None:
    story: list[str] = []
    busy = Busy(story)
    busy.pace = 1
    await idle_fetcher(store=Backlog(story), dispatcher=busy, handlers={"task": HANDLER}).round()
    await asyncio.sleep(0)
    assert story == ["claim", "claim", "0 runs", "1 runs"]


class Endless(OneJob):
    """A store that has as many due jobs as anybody asks for."""

    async def claim(self, demand: Demand) -> list[Claim]:
        await super().claim(demand)
        return [claim(f"{len(self._story)} {n}") for n in range(demand.limit)]

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        return (await super().next_due(queues, tasks))._replace(due_at=0)


class Stuck(Idle):
    """A dispatcher whose runs were short until now, and whose slots are taken for ever by the first that come."""

    pace = gap = 1

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.given_back: list[Claim] = []
        self.has_given_back = asyncio.Event()

    def start_all(self, claims: Sequence[Claim], *, unmarked: bool) -> Sequence[Claim]:
        assert not unmarked
        return [claim for claim in claims if not self._slots.take(claim)]

    def settle(self, claim: Claim, outcome: Outcome) -> None:
        assert isinstance(outcome, Released)
        self.given_back.append(claim)
        self.has_given_back.set()


@pytest.mark.parametrize(("gap", "wanted"), [(1, 1_000), (MILLISECOND, 49), (10 * MILLISECOND, 4)])
async def test_as_many_are_taken_in_advance_as_end_in_a_moment_however_many_slots_there_are(
    gap: int, wanted: int
) -> None:
    slots = Slots(200, {})
    stuck = Stuck(slots)
    stuck.gap = gap
    fetcher = idle_fetcher(store=Endless([]), dispatcher=stuck, handlers={"task": HANDLER}, slots=slots)
    await fetcher.round()
    assert fetcher.hold.waiting == wanted


async def test_what_was_taken_in_advance_and_found_no_slot_is_left_to_others() -> None:
    slots = Slots(2, {})
    story: list[str] = []
    stuck = Stuck(slots)
    fetcher = idle_fetcher(
        store=Endless(story), dispatcher=stuck, handlers={"task": HANDLER}, slots=slots, window=1
    )
    await fetcher.round()
    waiting = fetcher.hold.waiting
    assert waiting > 0
    await asyncio.wait_for(stuck.has_given_back.wait(), 10)
    assert len(stuck.given_back) == waiting
    await fetcher.round()
    assert story == ["claim", "claim", "next due"], "others were not let have what had gone back"


@pytest.mark.parametrize(
    ("workers", "hears", "seconds"),
    [(1, True, 10), (100, True, 20), (1_000, True, 60), (1, False, 0.25), (100, False, 1), (1_000, False, 2)],
)
async def test_the_workers_of_a_fleet_that_have_nothing_to_do_look_for_jobs_in_turn(
    workers: int, hears: bool, seconds: float
) -> None:
    store, crowd = OneJob([]), Crowd()
    store.hears_others, crowd.workers = hears, workers
    fetcher = idle_fetcher(crowd, store=store)
    pause = await fetcher._look_ahead()
    assert pause is not None
    assert 0.8 * seconds <= pause <= 1.2 * seconds


class Later(OneJob):
    """A store whose job falls due so many seconds from now."""

    def __init__(self, story: list[str], *, due_in: int | None) -> None:
        super().__init__(story)
        self._due_at = None if due_in is None else due_in * SECOND
        self.meanwhile: Callable[[], None] = lambda: None

    async def claim(self, _demand: Demand) -> list[Claim]:
        return []

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        self.meanwhile()
        return (await super().next_due(queues, tasks))._replace(due_at=self._due_at)


async def woken_by_a_free_slot(fetcher: Fetcher) -> bool:
    """Whether a slot that comes free after a round makes for another one."""
    fetcher.wakeup.clear()
    await fetcher.round()
    fetcher.slot_freed()
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await fetcher.wakeup.wait(None)
            return True
    return False


@pytest.mark.parametrize("due_in", [None, 1, 3_600])
async def test_a_slot_that_comes_free_asks_nothing_of_the_store_when_no_job_has_lacked_one(
    due_in: int | None,
) -> None:
    store = Later([], due_in=due_in)
    assert not await woken_by_a_free_slot(
        idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    )


async def test_a_slot_that_comes_free_is_offered_when_a_job_is_due() -> None:
    store = Later([], due_in=0)
    assert await woken_by_a_free_slot(
        idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    )


async def test_a_slot_that_comes_free_is_offered_when_all_were_taken_at_the_last_look() -> None:
    slots = Slots(1, {})
    slots.take(claim())
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_to_a_job_that_a_heartbeat_has_seen_when_all_were_taken() -> (
    None
):
    slots = Slots(1, {})
    store = Later([], due_in=None)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    await fetcher.round()
    fetcher.wakeup.clear()
    # A held claim starts without a round.
    slots.take(claim())
    fetcher.expect(SECOND)
    slots.give_back(claim())
    fetcher.slot_freed()
    await asyncio.wait_for(fetcher.wakeup.wait(None), 5)


class Filling(Later):
    """A store that takes a while to answer who claims ahead; meanwhile a held claim takes the last slot."""

    def __init__(self, slots: Slots) -> None:
        super().__init__([], due_in=1)
        self._slots = slots

    async def claim(self, demand: Demand) -> list[Claim]:
        if demand.ahead:
            assert self._slots.take(claim())
        return []


async def test_a_slot_that_comes_free_is_offered_when_the_last_was_taken_while_the_fetcher_looked_ahead() -> (
    None
):
    slots = Slots(1, {})
    fetcher = idle_fetcher(store=Filling(slots), dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_where_queues_have_slots_of_their_own() -> None:
    store = Later([], due_in=3_600)
    slots = Slots(2, {"default": 1})
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=slots)
    assert await woken_by_a_free_slot(fetcher)


class Stream(OneJob):
    """A store whose next jobs always fall due within the window; it takes a while to hand them out."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(story)
        self.fetcher: Fetcher | None = None

    async def claim(self, demand: Demand) -> list[Claim]:
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
    fetcher = idle_fetcher(
        store=store, dispatcher=Busy([]), handlers={"task": HANDLER}, slots=Slots(10, {}), budget=10
    )
    store.fetcher = fetcher
    for n in range(6):
        fetcher.hold.add(claim(f"held {n}", due_at=SECOND // 2))
    assert await fetcher.round() == 0, (
        "four were asked for and found, and the six before have started meanwhile"
    )
    assert await fetcher.round() == 0.5
    assert [said for said in store._story if said != "next due"] == ["claim 4", "claim 6"]


async def test_a_slot_that_comes_free_while_the_store_is_asked_is_offered() -> None:
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    await fetcher.round()
    store.meanwhile = fetcher.slot_freed
    fetcher.wakeup.clear()
    await fetcher.round()
    await asyncio.wait_for(fetcher.wakeup.wait(None), 5)


async def test_a_slot_that_comes_free_is_offered_to_jobs_under_limits_that_have_lacked_one() -> None:
    fetcher = idle_fetcher(store=Later([], due_in=3_600), dispatcher=Busy([]), handlers={"task": HANDLER})
    with fetcher.limited.turn(at_latest=3_600):
        fetcher.limited.had_no_room()
    assert await woken_by_a_free_slot(fetcher)


async def test_a_slot_that_comes_free_is_offered_to_a_claim_that_waits_for_one() -> None:
    store = Later([], due_in=3_600)
    fetcher = idle_fetcher(store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    await fetcher.round()
    fetcher.hold.add_due([claim()])
    fetcher.wakeup.clear()
    fetcher.slot_freed()
    await asyncio.wait_for(fetcher.wakeup.wait(None), 5)


@pytest.mark.parametrize(("hears", "sleeps"), [(True, True), (False, False)])
async def test_while_heartbeats_look_a_worker_that_hears_sleeps_until_it_is_told(
    hears: bool, sleeps: bool
) -> None:
    store = OneJob([])
    store.hears_others = hears
    assert (await idle_fetcher(store=store, watched=True)._look_ahead() is None) is sleeps


@pytest.mark.parametrize("wait", [-SECOND, 0, SECOND])
async def test_what_a_heartbeat_has_seen_is_looked_for_when_it_is_nearly_due(wait: int) -> None:
    fetcher = idle_fetcher(watched=True)
    fetcher.expect(wait)
    await asyncio.wait_for(fetcher.wakeup.wait(None), 10)


async def test_what_a_heartbeat_has_seen_is_not_looked_for_before_its_time_or_without_a_slot() -> None:
    fetcher = idle_fetcher(watched=True)
    fetcher.expect(3600 * SECOND)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fetcher.wakeup.wait(None), 0.01)
    full = idle_fetcher(watched=True, slots=Slots(0, {}))
    full.expect(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(full.wakeup.wait(None), 0.01)


@pytest.mark.parametrize(("crowd", "story"), [(Crowd(), ["claim", "next due"]), (LastOfMany(), ["next due"])])
async def test_one_of_many_that_lets_others_go_first_looks_before_it_claims(
    crowd: Crowd, story: list[str]
) -> None:
    told: list[str] = []
    fetcher = idle_fetcher(crowd, store=OneJob(told), dispatcher=Busy([]), handlers={"task": HANDLER})
    await fetcher.round()
    told.clear()
    fetcher.hear(Hint("jobs"))
    await fetcher.round()
    assert told == story


class Snatched:
    """A store whose jobs are always taken by others between the look and the claim."""

    hears_others = True
    due_at: Instant | None = 0

    async def claim(self, _demand: Demand) -> list[Claim]:
        return []

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        return NextDue(now=0, due_at=self.due_at)


async def test_who_has_lost_many_races_and_hears_of_another_job_claims_it_as_soon_as_it_sees_it() -> None:
    store = Snatched()
    fetcher = idle_fetcher(LastOfMany(), store=store, dispatcher=Busy([]), handlers={"task": HANDLER})
    pauses = [await fetcher.round() for _ in range(10)]
    assert pauses[-1] == 0.5, "claims that keep coming back empty are spaced out"
    store.due_at = None
    await fetcher.round()
    fetcher.hear(Hint("jobs"))
    store.due_at = 0
    assert await fetcher.round() == 0
