"""Runs in this process whatever is due, by the real parts of a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Self

from duetime.errors import InvalidOption
from duetime.model.job import DEFAULT_QUEUE, JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Duration, Instant, from_datetime, parse_duration
from duetime.scheduler.records import JobRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.hand import Hand, Ran

MOST = 10_000
_PAGE = 1_000


async def drain(
    scheduler: Scheduler,
    *,
    until: Duration | datetime | None = None,
    schedules: bool = True,
    concurrency: int = 10,
    most: int = MOST,
) -> list[JobRecord]:
    """Run all jobs that are due, with those they enqueue, and return the jobs that ran, in order of their start.

    With `until`, a time or how long from now, the scheduler's `FakeClock` is moved from one due time to the next
    until then, and each job and schedule runs at its own.
    """
    async with scheduler:
        end = None if until is None else _end(_fake(scheduler), until)
        if schedules:
            await scheduler.put_declared()
        async with Shift(scheduler, schedules=schedules, concurrency=concurrency, most=most) as shift:
            await shift.run_due()
            while end is not None and await _step(scheduler, end, schedules=schedules):
                await shift.run_due()
        ids = dict.fromkeys(call.job_id for call in shift.calls)
        return [JobRecord.from_stored(job) for job in await _get(scheduler.store, list(ids))]


class Shift:
    """Runs what is due in any queue; one worker does it, until there are queues that it does not serve."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        schedules: bool = False,
        concurrency: int = 10,
        most: int = MOST,
        retries: bool = True,
    ) -> None:
        self.calls: list[Ran] = []
        self._scheduler = scheduler
        self._most = most
        self._make = partial(
            Hand,
            scheduler.store,
            scheduler.tasks,
            calls=self.calls,
            clock=scheduler.clock,
            make_lock=scheduler.lock,
            schedules=schedules,
            concurrency=concurrency,
            retries=retries,
            middleware=scheduler.wrapping,
            events=scheduler.events,
        )
        self._hand: Hand | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._hand is not None:
            await self._hand.stop()

    async def run_due(self) -> None:
        """Run everything that is due, and what that makes due, until nothing is."""
        hand = await self._fitting_hand()
        await hand.run_due(most=self._most)
        # What has run may have used queues that nobody had heard of.
        while (other := await self._fitting_hand()) is not hand:
            hand = other
            await hand.run_due(most=self._most)

    async def _fitting_hand(self) -> Hand:
        queues = await _queues(self._scheduler)
        if self._hand is None or not queues <= {*self._hand.options.queues}:
            if self._hand is not None:
                await self._hand.stop()
            self._hand = self._make(queues=queues)
            await self._hand.start()
        return self._hand


async def _queues(scheduler: Scheduler) -> set[str]:
    stored = {queue for queue, state in await scheduler.store.counts() if state is State.PENDING}
    return stored | {handler.options.queue for handler in scheduler.tasks.values()} | {DEFAULT_QUEUE}


async def _step(scheduler: Scheduler, end: Instant, *, schedules: bool) -> bool:
    """Move the clock to the next time at which something falls due; False when there is none until the end."""
    clock = _fake(scheduler)
    times = [time async for time in _times(scheduler, schedules=schedules) if time <= end]
    clock.set(min(times, default=max(end, clock.now())))
    return bool(times)


async def _times(scheduler: Scheduler, *, schedules: bool) -> AsyncIterator[Instant]:
    store, now = scheduler.store, _fake(scheduler).now()
    paused = {queue.name for queue in await store.queues() if queue.paused_at is not None}
    async for job in _pending(store):
        if job.task in scheduler.tasks and job.queue not in paused:
            # One that is due and did not run waits for a limit, which time will lift.
            yield job.due_at if job.due_at > now else now + SECOND
    for schedule in await store.schedules() if schedules else ():
        moment = schedule.next_at if schedule.paused_at is None else schedule.paused_until
        if moment is not None and moment > now:
            yield moment


async def _pending(store: Store) -> AsyncIterator[StoredJob]:
    before: JobId | None = None
    while page := await store.find(JobFilter(states=frozenset({State.PENDING}), before=before, limit=_PAGE)):
        for job in page:
            yield job
        before = page[-1].id


async def _get(store: Store, ids: list[JobId]) -> list[StoredJob]:
    pages = [ids[first : first + _PAGE] for first in range(0, len(ids), _PAGE)]
    return [job for page in pages for job in await store.get(page)]


def _fake(scheduler: Scheduler) -> FakeClock:
    clock = scheduler.clock
    if not isinstance(clock, FakeClock):
        text = "until= moves the clock of the test; give the scheduler one: Scheduler(..., clock=FakeClock()), or sandbox(scheduler)"
        raise InvalidOption(text)
    return clock


def _end(clock: FakeClock, until: Duration | datetime) -> Instant:
    if isinstance(until, datetime):
        return from_datetime(until, what="until")
    return clock.now() + parse_duration(until, what="until")
