"""Schedules of the test's own making, jobs that go on until they are let go, and what became of each occurrence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from duetime import Scheduler
from duetime.model.schedule.actions import declare
from duetime.model.schedule.options import schedule_options
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import MILLISECOND, Instant, Micros
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.every import Every
from duetime.runtime.running.run import current_run
from duetime.scheduler.registry import ScheduleDefinition
from duetime.stores.base import Store
from tests.integration.kit import until

NAME = "busy"
PACE: Micros = 150 * MILLISECOND


class Runs:
    """A task of the same name in any number of schedulers, whose runs wait to be let go."""

    def __init__(self, *urls: str, **options: Any) -> None:
        self.schedulers = [Scheduler(url) for url in urls]
        self.started: list[Instant] = []
        self.cancelled: list[Instant] = []
        self.peak = 0
        self.running = 0
        self._free = asyncio.Event()

        async def work() -> None:
            await self._work()

        for scheduler in self.schedulers:
            scheduler.task(name="work", **options)(work)

    async def _work(self) -> None:
        occurrence = current_run.get().claim.occurrence or 0
        self.started.append(occurrence)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await self._free.wait()
        except asyncio.CancelledError:
            self.cancelled.append(occurrence)
            # It takes its time to clean up.
            await asyncio.shield(self._free.wait())
            raise
        finally:
            self.running -= 1

    def let_go(self) -> None:
        """Let those that run end, and those that come."""
        self._free.set()

    async def put(self, trigger: Trigger | None = None, **policy: Any) -> None:
        """Store the schedule; unless told otherwise it comes far more often than its jobs end."""
        store = self.schedulers[0].store
        now = await store.now()
        often = Every(interval=PACE, start=now + 2 * PACE)
        await put(self.schedulers[0], NAME, "work", often if trigger is None else trigger, **policy)


async def put(
    scheduler: Scheduler,
    name: str,
    task: str,
    trigger: Trigger,
    *,
    args: tuple[object, ...] = (),
    **policy: Any,
) -> None:
    """Store a schedule that no code declares, however often it comes."""
    store = scheduler.store
    now = await store.now()
    options = schedule_options(policy)  # type: ignore[arg-type]
    handler = scheduler.tasks[task]
    payload = handler.arguments.encode(args, {})
    declared = ScheduleDefinition(
        name=name, handler=handler, trigger=trigger, payload=payload, options=options
    )
    change = declare(None, replace(declared.at(now), owner="user"), who="test", now=now)
    assert change is not None
    assert await store.write_schedules([change]) == {name}


async def records(store: Store, name: str = NAME) -> list[StoredJob]:
    """What became of each occurrence, in order."""
    return await store.occurrences(name, since=0, until=2**62, limit=10_000)


async def skipped(store: Store, reason: str, *, least: int = 1, name: str = NAME) -> list[StoredJob]:
    """Wait until so many records say that something was skipped for this reason."""

    async def found() -> list[StoredJob]:
        some = [r for r in await records(store, name) if r.state is State.SKIPPED and r.reason == reason]
        return some if len(some) >= least else []

    return await until(found, what=f"{least} records of {reason}")


async def all_ended(store: Store, count: int) -> list[StoredJob]:
    """Wait until all records of the schedule are final, and at least so many of them runs."""

    async def found() -> list[StoredJob]:
        some = await records(store)
        runs = [record for record in some if record.state is not State.SKIPPED]
        return some if len(runs) >= count and all(record.state.terminal for record in some) else []

    return await until(found, what=f"the end of {count} runs")


def stood_for(record: StoredJob, pace: Micros) -> Sequence[Instant]:
    """The occurrences of a schedule that comes at this pace which one record stands for."""
    last = record.occurrence or 0
    first = last if record.span_first is None else record.span_first
    return range(first, last + 1, pace)


def accounted(found: Iterable[StoredJob], pace: Micros = PACE) -> bool:
    """Whether the records follow one another without a gap and without a second one for any occurrence."""
    following: Instant | None = None
    for record in found:
        assert record.occurrence is not None
        first = record.occurrence if record.span_first is None else record.span_first
        if following not in (None, first) or (record.occurrence - first) // pace + 1 != record.span_count:
            return False
        following = record.occurrence + pace
    return True
