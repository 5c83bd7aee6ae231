"""The verbs of schedules for callers without an event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Unpack

from duetime.model.durations import Duration
from duetime.model.schedule_options import ScheduleOptionValues
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.altering import Answer
from duetime.scheduler.blocking_handle import BlockingHandle
from duetime.scheduler.explaining import ScheduleExplanation
from duetime.scheduler.forecast_records import Forecast
from duetime.scheduler.job_class import Job
from duetime.scheduler.portal import Portal
from duetime.scheduler.porting import ScheduleExport, ScheduleImport
from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.task import Task


class BlockingSchedules:
    """Reads schedules, and changes what becomes of them."""

    def __init__(self, schedules: Schedules, portal: Portal) -> None:
        self._schedules = schedules
        self._portal = portal

    def list(self) -> list[ScheduleRecord]:
        """Return all schedules by name."""
        return self._portal.run(self._schedules.list())

    def get(self, name: str) -> ScheduleRecord:
        """Return one schedule; raises `ScheduleNotFound`."""
        return self._portal.run(self._schedules.get(name))

    def put(
        self,
        name: str,
        trigger: Trigger,
        task: Task[..., Any] | type[Job] | str,
        *,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> Answer:
        """Store a schedule, or change what differs in the one of this name; see `Schedules.put`."""
        asked = self._schedules.put(name, trigger, task, args=args, kwargs=kwargs, by=by, **values)
        return self._portal.run(asked)

    def edit(
        self,
        name: str,
        *,
        trigger: Trigger | None = None,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> Literal["changed", "unchanged"]:
        """Change what is given and nothing else; see `Schedules.edit`."""
        asked = self._schedules.edit(name, trigger=trigger, args=args, kwargs=kwargs, by=by, **values)
        return self._portal.run(asked)

    def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        until: datetime | Duration | None = None,
        by: str | None = None,
    ) -> None:
        """Stop a schedule from firing; see `Schedules.pause`."""
        self._portal.run(self._schedules.pause(name, reason=reason, until=until, by=by))

    def resume(self, name: str, *, by: str | None = None) -> Literal["resumed", "unchanged"]:
        """Let a schedule fire again, from now on."""
        return self._portal.run(self._schedules.resume(name, by=by))

    def delete(self, name: str, *, by: str | None = None) -> None:
        """Remove a schedule; see `Schedules.delete`."""
        self._portal.run(self._schedules.delete(name, by=by))

    def trigger(
        self,
        name: str,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
    ) -> BlockingHandle[Any]:
        """Store a job of a schedule now; see `Schedules.trigger`."""
        asked = self._schedules.trigger(name, args=args, kwargs=kwargs, by=by)
        return BlockingHandle(self._portal.run(asked), self._portal)

    def skip(self, name: str, *, by: str | None = None) -> datetime:
        """Have the next occurrence not run; see `Schedules.skip`."""
        return self._portal.run(self._schedules.skip(name, by=by))

    def preview(self, name: str, n: int = 10, *, after: datetime | None = None) -> Sequence[Upcoming]:
        """Return the next occurrences, with notes; see `Schedules.preview`."""
        return self._portal.run(self._schedules.preview(name, n, after=after))

    def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False, by: str | None = None
    ) -> Backfill:
        """Store a job for each occurrence that has none; see `Schedules.backfill`."""
        return self._portal.run(self._schedules.backfill(name, start, end, dry_run=dry_run, by=by))

    def history(self, name: str, *, limit: int = 50) -> Sequence[ScheduleChange]:
        """Return what was done to a schedule and by whom; see `Schedules.history`."""
        return self._portal.run(self._schedules.history(name, limit=limit))

    def forecast(self, *, days: int = 7, tz: str = "UTC") -> Forecast:
        """Tell the load to come; see `Schedules.forecast`."""
        return self._portal.run(self._schedules.forecast(days=days, tz=tz))

    def explain(self, name: str, at: datetime | None = None) -> ScheduleExplanation:
        """Tell how a schedule stands, or what became of it at some time; see `Schedules.explain`."""
        return self._portal.run(self._schedules.explain(name, at=at))

    def export(
        self,
        names: Sequence[str] | None = None,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
    ) -> ScheduleExport:
        """Return schedules as the text of a file; see `Schedules.export`."""
        return self._portal.run(self._schedules.export(names, format=format))

    def import_(
        self,
        text: str,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
        check: bool = True,
        dry_run: bool = False,
        source: str = "text",
        by: str | None = None,
    ) -> ScheduleImport:
        """Store the schedules of a file, all of them or none; see `Schedules.import_`."""
        asked = self._schedules.import_(
            text, format=format, check=check, dry_run=dry_run, source=source, by=by
        )
        return self._portal.run(asked)
