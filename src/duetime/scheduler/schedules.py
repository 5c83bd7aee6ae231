"""Schedules as a client sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import msgspec

from duetime.model.instants import Instant
from duetime.model.names import check_reason
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.triggers import from_spec
from duetime.scheduler.altering import alter, known
from duetime.scheduler.explaining import ScheduleExplanation, explain_occurrence
from duetime.scheduler.forecasting import Forecast, forecast
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

        def decide(schedule: StoredSchedule | None, now: Instant) -> Change:
            before = known(schedule, name)
            after = replace(before, paused_at=before.paused_at or now, paused_reason=why)
            return Change(before=before, after=after, withdraw="schedule paused")

        await alter(self._store(), name, decide)

    async def resume(self, name: str) -> None:
        """Let a schedule fire again, from now on."""

        def decide(schedule: StoredSchedule | None, now: Instant) -> Change:
            before = known(schedule, name)
            trigger = from_spec(msgspec.json.decode(before.trigger))
            after = replace(
                before, paused_at=None, paused_reason=None, fired_through=now, next_at=trigger.after(now)
            )
            return Change(before=before, after=after)

        await alter(self._store(), name, decide)

    async def forecast(self, *, days: int = 7, tz: str = "UTC") -> Forecast:
        """Tell how many jobs all schedules will make in the days to come, and which of them start together."""
        return await forecast(self._store(), days=days, tz=tz)

    async def explain(self, name: str, at: datetime | None = None) -> ScheduleExplanation:
        """Tell how a schedule stands, or what became of it at some time, and why; raises `ScheduleNotFound`.

        A time without a zone is one in the zone of the schedule, one without seconds stands for the whole minute.
        """
        return await explain_occurrence(self._store(), name, at)

    async def _stored(self, name: str) -> StoredSchedule:
        return known(next(iter(await self._store().get_schedules([name])), None), name)
