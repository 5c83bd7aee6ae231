"""Parks schedules that no code declares any more, and brings back those that it does."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.model.schedule.actions import CodeSchedule, park, undeclared, undeclared_by_workers
from duetime.model.text import short_list
from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.service import HealthObserver, Service

if TYPE_CHECKING:
    from duetime.stores.base import Store


log = logging.getLogger("duetime.worker")

LOOK_PAUSE = 60.0
"""Seconds between looks."""
_LONGEST_LOOK_PAUSE = 180.0
"""The same in a large fleet: it takes two looks of one worker to park a schedule."""
_LOOK_SPACING = 1.0
"""Seconds between the looks of all workers, on average."""


@dataclass(frozen=True, slots=True)
class Declarations:
    """The schedules that the code of this process declares."""

    names: Collection[str] = ()
    store: Callable[[], Awaitable[None]] | None = None
    """Stores them; `None` where nobody looks after them."""


class ScheduleParker(Service):
    """Compares what code has declared with what workers declare; any worker may, there is no leader."""

    name = "schedule parker"

    def __init__(
        self,
        store: Store,
        health: HealthObserver,
        *,
        declared: Declarations,
        tasks: Collection[str],
        crowd: FleetPacing | None = None,
    ) -> None:
        super().__init__(health)
        self._store = store
        self._declared = declared
        self._tasks = tasks
        self._crowd = crowd or FleetPacing()
        self._suspects = frozenset[str]()
        self._forgotten = False

    def declare_again(self) -> None:
        """Declare everything anew, as a worker does that starts: the store may have lost more than the worker."""
        self._forgotten = True
        self.wakeup.set()

    async def round(self) -> float | None:
        """Park what nobody declared at two looks in a row, and declare again what was parked of our own."""
        found = await self._store.code_schedules()
        own, declare = self._declared.names, self._declared.store
        # Somebody may have parked it between our declaring it and our being known as alive.
        if declare is not None and (self._forgotten or any(one.parked and one.name in own for one in found)):
            await declare()
            self._forgotten = False
        suspects = await self._undeclared(found)
        # Seen twice, it is not one whose workers are about to start.
        await self._park(suspects & self._suspects)
        self._suspects = suspects
        pause = self._crowd.share(LOOK_PAUSE, spacing=_LOOK_SPACING, at_most=_LONGEST_LOOK_PAUSE)
        return pause * random.uniform(0.9, 1.1)

    async def _undeclared(self, found: Collection[CodeSchedule]) -> frozenset[str]:
        foreign = undeclared(found, declared=self._declared.names, tasks=self._tasks)
        if not foreign:
            return foreign
        return undeclared_by_workers(foreign, await self._store.workers(), now=await self._store.now())

    async def _park(self, names: Collection[str]) -> None:
        if not names:
            return
        now = await self._store.now()
        stored = await self._store.get_schedules(sorted(names))
        changes = [change for schedule in stored if (change := park(schedule, now=now)) is not None]
        # What somebody else has changed meanwhile is looked at again the next time.
        if parked := await self._store.write_schedules(changes):
            log.warning(
                "parked %d schedule(s) that no code declares any more: %s",
                len(parked),
                short_list(sorted(parked)),
            )
