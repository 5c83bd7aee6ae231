"""Turns due schedules into jobs, and parks those that no code declares; any number of workers may try, one succeeds."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from duetime.model.job import NewJob
from duetime.model.schedule.actions import park, undeclared, undeclared_by_workers
from duetime.model.schedule.firing import correct, fire
from duetime.model.schedule.record import Firing, StoredSchedule
from duetime.model.text import counted, one_line, short_list
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger, trigger_to_show
from duetime.runtime.pacing import PARK, POLL_SCHEDULES, FleetPacing
from duetime.runtime.running.handler import Handler, with_current_gate
from duetime.runtime.service import DATABASE_DOWN, Service, ServiceHealth
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import PulseFindings, Store

log = logging.getLogger("duetime.worker")

_AHEAD: Micros = 1 * SECOND
_LATEST_BEFORE_DUE = (500 * MILLISECOND, 700 * MILLISECOND)
"""How long before an occurrence a round is due; it plants what comes within `_AHEAD`, in one commit."""
ROUND_LIMIT = 200
"""How many schedules a round looks at; one for more would keep others from the loop and the database for too long."""
_BLOCKED_PAUSE: Micros = 250 * MILLISECOND
_YIELD_AFTER: Micros = 50 * MILLISECOND
_MAX_TRIGGERS = 10_000
"""How many triggers are kept, each built once; schedules that come and go leave theirs behind."""
FiringDecision: TypeAlias = Callable[[StoredSchedule, Trigger], Firing | None]


class ScheduleFirer(Service):
    """Plants each occurrence half a second to a second before its time, so that it is claimed ahead like any job."""

    name = "schedule firer"

    def __init__(
        self,
        store: Store,
        health: ServiceHealth,
        *,
        fleet: FleetPacing | None = None,
        handlers: Mapping[str, Handler] = MappingProxyType({}),
        watched: bool = False,
    ) -> None:
        """`watched`: heartbeats look for schedules that hints have missed, and tell by `expect`."""
        super().__init__(store, health)
        self._fleet = fleet or FleetPacing()
        self._handlers = handlers
        self._watched = watched
        self.on_skipped: Callable[[Iterable[NewJob]], object] = lambda _: None
        """Told of jobs that it has stored, some of which may be occurrences that are skipped."""
        self._off = 0.0
        # Workers that look at different moments do not compute the same firings.
        self._latest = random.randint(*_LATEST_BEFORE_DUE)
        self._read = lru_cache(_MAX_TRIGGERS)(trigger_to_show)
        self._failing: set[str] = set()
        """The schedules that do not fire, which is logged once for each."""
        self._corrected = False
        self._expected: Instant | None = None
        self._waiting = 0
        self.behind = False
        """Whether the last round has left something that is due to the next."""

    async def round(self) -> float | None:
        """Fire what is due or nearly so, and sleep until shortly before the next."""
        if not self._corrected:
            # Times that zone data which came with this process has moved: no one would look in time.
            await self._apply(await self._store.schedules(), correct)
            self._corrected = True
        # Those that wait for a live job, or cannot be read, must not hide the ones behind them.
        limit = ROUND_LIMIT + self._waiting
        due = await self._store.due_schedules(ahead=_AHEAD, limit=limit)
        # When something falls due that this round has not dealt with, by the store's clock.
        moments = [] if self._watched else [due.now + int(self._fleet.share(POLL_SCHEDULES) * SECOND)]
        self.behind = len(due.schedules) == limit

        def decide(schedule: StoredSchedule, trigger: Trigger) -> Firing | None:
            firing = fire(schedule, trigger, now=due.now, ahead=_AHEAD)
            if firing is None and schedule.next_at is not None:
                # One of its jobs is live: ask again soon, at the latest at the instant itself.
                moments.append(min(due.now + _BLOCKED_PAUSE, schedule.next_at))
            elif firing is not None and firing.next_at is not None:
                moments.append(firing.next_at - self._latest)
                self.behind = self.behind or firing.next_at <= due.now
            return firing

        fired = await self._apply(due.schedules, decide)
        moments += self._look_times(due.next_at, due.resumes_at)
        self._waiting = len(due.schedules) - fired
        if len(due.schedules) == limit:
            return 0
        outrun = not due.schedules and self._expected is not None and due.now >= self._expected
        self._expected = min(moments, default=None)
        # Of many workers, leave the firing for a while to the one that was quicker, and be there if it dies.
        spacing, at_most = POLL_SCHEDULES.spacing, POLL_SCHEDULES.alone
        self._off = self._fleet.wait(spacing=spacing, at_most=at_most) if outrun else 0
        return None if self._expected is None else max((self._expected - due.now) / SECOND, 0.001) + self._off

    def expect(self, sight: PulseFindings, now: Instant) -> None:
        """Look when a schedule comes up that a heartbeat has seen: it may be new, or the clocks may have drifted."""
        if moments := self._look_times(sight.fires_at, sight.resumes_at):
            self.wakeup.set_after(max(0, min(moments) - now) / SECOND + self._off)

    def _look_times(self, fires_at: Instant | None, resumes_at: Instant | None) -> list[Instant]:
        early = None if fires_at is None else fires_at - self._latest
        return [at for at in (early, resumes_at) if at is not None]

    async def _apply(self, schedules: Sequence[StoredSchedule], decide: FiringDecision) -> int:
        """Decide about schedules and store what was decided, in several steps if it takes long; return how many."""
        firings: list[Firing] = []
        fired, breath = 0, monotonic()
        for schedule in schedules:
            if (firing := self._decided(schedule, decide)) is not None:
                firings.append(firing)
            if monotonic() - breath > _YIELD_AFTER:
                # Triggers that have to be walked take their time, and others in this process want to run, too.
                fired += await self._store_firings(firings)
                firings, breath = [], monotonic()
        return fired + await self._store_firings(firings)

    async def _store_firings(self, firings: Sequence[Firing]) -> int:
        if not firings:
            await asyncio.sleep(0)
            return 0
        try:
            fired = await self._store.fire(firings)
        except DATABASE_DOWN:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a value does to a driver must stay with that value
            if len(firings) == 1:
                self._log_once(firings[0].name, "does not fire, since the store refuses its next job", error)
                return 0
            # One that the database refuses must not hold up its neighbours.
            return sum([await self._store_firings([firing]) for firing in firings])
        self._failing.difference_update(firing.name for firing in firings)
        self.on_skipped(job for firing in firings if firing.name in fired for job in firing.jobs)
        return len(firings)

    def _decided(self, schedule: StoredSchedule, decide: FiringDecision) -> Firing | None:
        """Decide about one schedule; one that cannot be decided about keeps no other from firing, and is logged once."""
        try:
            trigger = schedule_trigger(schedule, read=self._read)
            if isinstance(trigger, UnreadableTrigger):
                self._log_once(schedule.name, f"waits, since it has {one_line(trigger.describe())}")
                return None
            firing = decide(with_current_gate(schedule, self._handlers), trigger)
        except Exception as error:  # noqa: BLE001 - whatever is stored in one schedule
            self._log_once(schedule.name, "does not fire, since its next job cannot be made", error)
            return None
        if firing is None:
            self._failing.discard(schedule.name)
        return firing

    def _log_once(self, name: str, text: str, error: Exception | None = None) -> None:
        if name not in self._failing:
            self._failing.add(name)
            log.error("schedule %s %s", one_line(str(name)), text, exc_info=error)


@dataclass(frozen=True, slots=True)
class Declarations:
    """The schedules that the code of this process declares."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their names, each with the queue of its jobs."""
    store: Callable[[], Awaitable[None]] | None = None
    """Stores them; `None` where they are not kept in step."""


class ScheduleParker(Service):
    """Compares what code has declared with what workers declare; any worker may, there is no leader."""

    name = "schedule parker"

    def __init__(
        self,
        store: Store,
        health: ServiceHealth,
        *,
        declared: Declarations,
        tasks: Collection[str],
        fleet: FleetPacing | None = None,
    ) -> None:
        super().__init__(store, health)
        self._declared = declared
        self._tasks = tasks
        self._fleet = fleet or FleetPacing()
        self._suspects = frozenset[str]()
        self._forgotten = False

    def declare_again(self) -> None:
        """Declare everything anew, as a worker does that starts: the store may have lost more than the worker."""
        self._forgotten = True
        self.wakeup.set()

    async def round(self) -> float | None:
        """Park what no one declared at two looks in a row, and declare again what was parked of our own."""
        found = await self._store.code_schedules()
        own, declare = self._declared.names, self._declared.store
        # Another worker may have parked it between our declaring it and our being known as alive.
        if declare is not None and (self._forgotten or any(one.parked and one.name in own for one in found)):
            await declare()
            self._forgotten = False
        suspects = undeclared(found, declared=own, tasks=self._tasks)
        if suspects:
            now = await self._store.now()
            suspects = undeclared_by_workers(suspects, await self._store.workers(), now=now)
        # Seen twice, it is not one whose workers are about to start.
        await self._park(suspects & self._suspects)
        self._suspects = suspects
        return self._fleet.pause(PARK)

    async def _park(self, names: Collection[str]) -> None:
        if not names:
            return
        now = await self._store.now()
        stored = await self._store.get_schedules(sorted(names))
        changes = [change for schedule in stored if (change := park(schedule, now=now)) is not None]
        # What was changed meanwhile is looked at again the next time.
        if parked := await self._store.write_schedules(changes):
            names = short_list(sorted(parked))
            log.warning(
                "parked %s that no code declares any more: %s", counted(len(parked), "schedule"), names
            )
