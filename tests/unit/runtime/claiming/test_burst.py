"""When a worker that runs only what is due has come to the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from duetime.model.job import Token
from duetime.runtime.claiming.burst import BurstFetcher
from duetime.runtime.options import WorkerOptions
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.slots import Slots
from duetime.runtime.settling.settler import Settler
from tests.unit.runtime.claiming.fetching import HANDLER, Busy, Later, is_woken
from tests.unit.runtime.kit import context_of


class Runs(Busy):
    """A dispatcher that also tells what runs, and how much has ended."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(story)
        self.runs: dict[str, Any] = {}
        self.done = 0


class Unwritten:
    """A settler that has something to write."""

    def __init__(self, story: list[str]) -> None:
        self.left: set[Token] = set()
        self._story = story

    def tokens(self) -> set[Token]:
        return self.left

    async def flush(self) -> None:
        self._story.append("flush")
        self.left.clear()


class Burst:
    """A fetcher whose store has nothing that is due, unless a test says so."""

    def __init__(self, *, due_in: int | None = None) -> None:
        self.story: list[str] = []
        self.dispatcher, self.settler = Runs(self.story), Unwritten(self.story)
        self.store = Later(self.story, due_in=due_in)
        self.ready = True
        options = WorkerOptions(window=0)
        self.fetcher = BurstFetcher(
            context_of(self.store, options=options, handlers={"task": HANDLER}),
            slots=Slots(2, {}),
            dispatcher=cast("Dispatcher", self.dispatcher),
            settler=cast("Settler", self.settler),
            ready=lambda: self.ready,
            ended=lambda: self.dispatcher.done,
            on_done=lambda _: self.story.append("done"),
        )

    async def ends(self) -> bool:
        """Whether one more look is the last."""
        self.story.clear()
        await self.fetcher.round()
        return "done" in self.story


@pytest.mark.parametrize("due_in", [None, 60])
async def test_it_ends_when_nothing_is_due(due_in: int | None) -> None:
    assert await Burst(due_in=due_in).ends()


async def test_what_has_ended_is_written_before_the_look_that_ends_it() -> None:
    burst = Burst()
    burst.settler.left.add(Token("job", 1, "claim"))
    assert await burst.ends()
    assert burst.story == ["flush", "next due", "done"]


def due(burst: Burst) -> None:
    burst.store = Later(burst.story, due_in=0)
    burst.fetcher._store = cast("Any", burst.store)


def not_ready(burst: Burst) -> None:
    burst.ready = False


def running(burst: Burst) -> None:
    burst.dispatcher.runs["job"] = None


def paused(burst: Burst) -> None:
    burst.fetcher.pause()


def ending_meanwhile(burst: Burst) -> None:
    def end() -> None:
        burst.dispatcher.done += 1

    burst.store.meanwhile = end


def to_be_written(burst: Burst) -> None:
    burst.store.meanwhile = lambda: burst.settler.left.add(Token("job", 1, "claim"))


@pytest.mark.parametrize(
    "hindrance",
    [due, not_ready, running, paused, ending_meanwhile, to_be_written],
    ids=lambda one: one.__name__,
)
async def test_it_goes_on_while_something_may_still_become_due(hindrance: Callable[[Burst], None]) -> None:
    burst = Burst()
    hindrance(burst)
    assert not await burst.ends()


async def test_it_looks_again_after_every_run() -> None:
    burst = Burst()
    running(burst)
    await burst.fetcher.round()
    burst.fetcher.wakeup.clear()
    burst.fetcher.slot_freed()
    await asyncio.sleep(0)
    assert await is_woken(burst.fetcher)
