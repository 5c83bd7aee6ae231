"""Schedules as a client sees them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from duetime.errors import ScheduleNotFound
from duetime.model.names import check_reason
from duetime.model.schedule import StoredSchedule
from duetime.model.triggers import from_spec
from duetime.scheduler.records import ScheduleRecord
from duetime.stores.base import Store


class Schedules:
    """Reads, pauses and resumes schedules."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def list(self) -> list[ScheduleRecord]:
        """Return all schedules by name."""
        return [ScheduleRecord.from_stored(schedule) for schedule in await self._store().schedules()]

    async def get(self, name: str) -> ScheduleRecord:
        """Return one schedule; raises `ScheduleNotFound`."""
        return ScheduleRecord.from_stored(await self._stored(name))

    async def pause(self, name: str, *, reason: str | None = None) -> None:
        """Stop a schedule from firing; planted jobs that have not started are withdrawn."""
        why = None if reason is None else check_reason(reason)
        if not await self._store().pause_schedule(name, reason=why):
            raise _not_found(name)

    async def resume(self, name: str) -> None:
        """Let a schedule fire again, from now on."""
        stored = await self._stored(name)
        now = await self._store().now()
        trigger = from_spec(msgspec.json.decode(stored.trigger))
        await self._store().resume_schedule(name, next_at=trigger.after(now), fired_through=now)

    async def _stored(self, name: str) -> StoredSchedule:
        for schedule in await self._store().schedules():
            if schedule.name == name:
                return schedule
        raise _not_found(name)


def _not_found(name: str) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"there is no schedule {name!r}; scheduler.schedules.list() shows those there are"
    )
