"""Turns due schedules into jobs; any number of workers may try, one of them succeeds."""

from __future__ import annotations

import logging
import random

import msgspec

from duetime.errors import InvalidValue
from duetime.model.firing import fire
from duetime.model.instants import MILLISECOND, SECOND, Micros
from duetime.model.schedule import Firing, StoredSchedule
from duetime.model.triggers import Trigger, from_spec
from duetime.runtime.service import Health, Service
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")

_AHEAD: Micros = 1 * SECOND
_LIMIT = 500
_LOOK_AGAIN: Micros = 250 * MILLISECOND
POLL = 10.0


class ScheduleFirer(Service):
    """Plants each occurrence up to a second before its time, so that it is claimed ahead like any job."""

    name = "schedule firer"

    def __init__(self, store: Store, health: Health) -> None:
        super().__init__(health)
        self._store = store
        # Workers that look at different moments do not compute the same firings.
        self._ahead = int(_AHEAD * random.uniform(0.6, 1.0))
        self._triggers: dict[str, Trigger | None] = {}

    async def round(self) -> float | None:
        """Fire what is due or nearly so, and sleep until shortly before the next."""
        due = await self._store.due_schedules(ahead=self._ahead, limit=_LIMIT)
        firings: list[Firing] = []
        wait = int(POLL * SECOND)
        for schedule in due.schedules:
            trigger = self._trigger(schedule)
            if trigger is None or schedule.next_at is None:
                continue
            firing = fire(schedule, trigger, now=due.now, ahead=self._ahead)
            if firing is None:
                # One of its jobs is live: ask again soon, at the latest at the instant itself.
                wait = min(wait, _LOOK_AGAIN, max(0, schedule.next_at - due.now))
                continue
            firings.append(firing)
            if firing.next_at is not None:
                wait = min(wait, max(0, firing.next_at - self._ahead - due.now))
        if firings:
            await self._store.fire(firings)
        if due.next_at is not None:
            wait = min(wait, max(0, due.next_at - self._ahead - due.now))
        if due.resumes_at is not None:
            wait = min(wait, max(0, due.resumes_at - due.now))
        if len(due.schedules) == _LIMIT and firings:
            return 0
        return max(wait / SECOND, 0.001)

    def _trigger(self, schedule: StoredSchedule) -> Trigger | None:
        """Build the trigger once per spec; one that cannot be read stays put and is told once."""
        if schedule.trigger not in self._triggers:
            try:
                self._triggers[schedule.trigger] = from_spec(msgspec.json.decode(schedule.trigger))
            except (InvalidValue, msgspec.MsgspecError, ValueError) as error:
                log.error(  # noqa: TRY400 - the message says it all
                    "schedule %s has a trigger that cannot be read: %s",
                    schedule.name,
                    error,
                )
                self._triggers[schedule.trigger] = None
        return self._triggers[schedule.trigger]
