"""A fetcher of its own, without a worker around it, and stores and dispatchers that it can talk to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from duetime.model.job import Claim
from duetime.model.outcome import Outcome, Released
from duetime.model.task import TaskOptions
from duetime.model.time import SECOND, Micros
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import LONGEST_WAIT, REQUEST_SPACING, FleetPacing
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import RunSpeed, Slots
from duetime.runtime.store_clock import StoreClock
from duetime.stores.base import ClaimRequest, NextDue
from tests.unit.runtime.kit import StillTime, claim, context_of


class Idle:
    """A dispatcher without work."""

    def __init__(self, *, duration: float = SECOND, gap: float = 1) -> None:
        self.speed = RunSpeed()
        self.speed.duration, self.speed.gap = duration, gap
        self.speed.by_task["task"] = 1


class Busy(Idle):
    """A dispatcher that begins a task for each claim, which tells when it runs."""

    def __init__(self, story: list[str]) -> None:
        super().__init__()
        self._story = story
        self._tasks: list[asyncio.Task[None]] = []

    def start_all(self, claims: Sequence[Claim], *, unmarked: bool) -> Sequence[Claim]:
        assert not unmarked, "the store holds what was claimed for a free slot as started"
        self._tasks += [asyncio.create_task(self._run(claim)) for claim in claims]
        return []

    async def _run(self, claim: Claim) -> None:
        self._story.append(f"{claim.job_id} runs")


class Stuck(Idle):
    """A dispatcher whose runs were short until now, and whose slots are taken for ever by the first that come."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(duration=1)
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


class LastOfMany(FleetPacing):
    """A crowd in which all the others go first."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = 1_000_000

    def wait(self, *, spacing: float = REQUEST_SPACING, at_most: float = LONGEST_WAIT) -> float:
        return min(at_most, spacing * self.workers)


class OneJob:
    """A store that has one job, and tells what it is asked."""

    hears_others = True

    def __init__(self, story: list[str]) -> None:
        self._story = story

    async def claim(self, _demand: ClaimRequest) -> list[Claim]:
        self._story.append("claim")
        return [claim()]

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        self._story.append("next due")
        return NextDue(now=0, due_at=None)


class Later(OneJob):
    """A store whose job falls due so many seconds from now."""

    def __init__(self, story: list[str], *, due_in: int | None, limited: bool = False) -> None:
        super().__init__(story)
        self._due_at = None if due_in is None else due_in * SECOND
        self._limited = limited
        self.meanwhile: Callable[[], None] = lambda: None

    async def claim(self, _demand: ClaimRequest) -> list[Claim]:
        return []

    async def next_due(self, queues: object, tasks: object) -> NextDue:
        self.meanwhile()
        found = await super().next_due(queues, tasks)
        return found._replace(due_at=self._due_at, limited=self._limited)


HANDLER = Handler(
    name="task", function=print, is_async=True, options=TaskOptions(), arguments=cast("Arguments", None)
)


def idle_fetcher(
    crowd: FleetPacing | None = None,
    *,
    store: object = None,
    dispatcher: Idle | None = None,
    handlers: Mapping[str, Handler] | None = None,
    slots: Slots | None = None,
    watched: bool = False,
    window: Micros = SECOND,
    queues: tuple[str, ...] = ("default",),
    time: StoreClock | None = None,
) -> Fetcher:
    return Fetcher(
        context_of(
            store,
            options=WorkerOptions(queues=dict.fromkeys(queues), window=window),
            handlers=handlers or {},
            time=time or StillTime(),
            fleet=crowd or FleetPacing(),
        ),
        slots=slots or Slots(2, {}),
        dispatcher=cast("Dispatcher", dispatcher or Idle()),
        watched=watched,
    )


async def is_woken(fetcher: Fetcher) -> bool:
    """Whether the fetcher has been told to ask."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await fetcher.wakeup.wait(None)
            return True
    return False
