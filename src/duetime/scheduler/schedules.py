"""Schedules as a client sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Unpack

import msgspec

from duetime.errors import InvalidOption, InvalidTask
from duetime.model import durations
from duetime.model import schedule_moves as moves
from duetime.model.audit import AuditEntry
from duetime.model.durations import Duration
from duetime.model.editing import with_options
from duetime.model.instants import Instant, from_datetime, to_datetime
from duetime.model.names import check_name, check_reason
from duetime.model.occurrence import run_of
from duetime.model.overlap import in_turn
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.schedule_options import ScheduleOptionValues, schedule_options
from duetime.model.shown import shown
from duetime.model.terms import Terms
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming
from duetime.runtime.gating import under_limit
from duetime.runtime.handler import Handler
from duetime.scheduler.altering import Answer, alter, alter_known, answer_of
from duetime.scheduler.arguments import call_of
from duetime.scheduler.explaining import ScheduleExplanation, explain_occurrence
from duetime.scheduler.forecast_records import Forecast
from duetime.scheduler.forecasting import forecast
from duetime.scheduler.handle import JobHandle
from duetime.scheduler.job_class import Job
from duetime.scheduler.job_verbs import task_of
from duetime.scheduler.lookup import find_schedule, no_schedule
from duetime.scheduler.pace import Pace
from duetime.scheduler.pages import check_limit
from duetime.scheduler.porting import (
    Importer,
    ScheduleExport,
    ScheduleImport,
    export_schedules,
    import_schedules,
)
from duetime.scheduler.registry import Declared, Registry
from duetime.scheduler.schedule_records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.schedule_runs import foresee, make_up_for, skip_next
from duetime.scheduler.task import Call, Client, Task, result_reader
from duetime.scheduler.who import who
from duetime.stores.base import Store


class Schedules:
    """Reads schedules, and changes what becomes of them."""

    def __init__(self, store: Callable[[], Store], *, client: Client, registry: Registry, pace: Pace) -> None:
        self._store = store
        self._client = client
        self._registry = registry
        self._pace = pace

    async def list(self) -> list[ScheduleRecord]:
        """Return all schedules by name."""
        return [ScheduleRecord.from_stored(schedule) for schedule in await self._store().schedules()]

    async def get(self, name: str) -> ScheduleRecord:
        """Return one schedule; raises `ScheduleNotFound`."""
        return ScheduleRecord.from_stored(await self._stored(name))

    async def put(
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
        """Store a schedule, or change what differs in the one of this name; its times stay if its trigger does.

        A schedule that code declares stays the code's own, and the change holds until the code changes there.
        Nothing is stored when anything is refused: the trigger, the arguments or an option.
        """
        asks = who(by)
        handler = self._handler_of(task)
        declared = Declared(
            name=check_name(name, what="schedule name"),
            handler=handler,
            trigger=trigger,
            payload=handler.arguments.encode(*call_of(args, kwargs)),
            options=schedule_options(values, owner=self._client),
        )
        store = self._store()
        rule = self._pace.check(trigger, name=name, now=await store.now())

        def decide(before: StoredSchedule | None, now: Instant) -> Change | None:
            new = replace(declared.at(now), owner="user", declared="")
            change = moves.put(before, new, rule, who=asks, now=now)
            return self._pace.checked(change, now=now)

        return answer_of(await alter(store, name, decide))

    async def edit(
        self,
        name: str,
        *,
        trigger: Trigger | None = None,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> Literal["changed", "unchanged"]:
        """Change what is given and nothing else; raises `ScheduleNotFound`.

        `args` and `kwargs` together are the new arguments. `None` for retries, timeout or expires leaves it to the
        task again.
        """
        asks = who(by)
        if trigger is None and args is None and kwargs is None and not values:
            text = "say what to change, e.g. schedules.edit(name, trigger=every('15m'), queue='slow')"
            raise InvalidOption(text)
        store = self._store()
        call = call_of(args, kwargs)
        rule = None if trigger is None else self._pace.check(trigger, name=name, now=await store.now())

        def decide(before: StoredSchedule, now: Instant) -> Change | None:
            after = with_options(before, values, owner=self._client)
            if args is not None or kwargs is not None:
                after = self._with_arguments(after, *call)
            change = moves.edit(before, after, rule, who=asks, now=now)
            return self._pace.checked(change, now=now)

        return "unchanged" if await alter_known(store, name, decide) is None else "changed"

    async def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        until: datetime | Duration | None = None,
        by: str | None = None,
    ) -> None:
        """Stop a schedule from firing, until a time if one is given; planted jobs that have not started are withdrawn."""
        asks = who(by)
        why = None if reason is None else check_reason(reason)
        end = _end(until)

        def decide(before: StoredSchedule, now: Instant) -> Change:
            return moves.pause(before, reason=why, until=end(now), who=asks, now=now)

        await alter_known(self._store(), name, decide)

    async def resume(self, name: str, *, by: str | None = None) -> Literal["resumed", "unchanged"]:
        """Let a schedule fire again, from now on; one record tells what has not run meanwhile.

        `unchanged`: it was not paused. One that is parked stays so until code declares it, or somebody puts it.
        """
        asks = who(by)
        change = await alter_known(
            self._store(), name, lambda before, now: moves.resume(before, who=asks, now=now)
        )
        return "unchanged" if change is None else "resumed"

    async def delete(self, name: str, *, by: str | None = None) -> None:
        """Remove a schedule and withdraw its planted jobs; its records stay. Raises `ScheduleNotFound`.

        One that code declares comes back when the next worker with that code starts.
        """
        asks = who(by)
        entry = moves.deletion(await self._stored(name), who=asks)
        if not await self._store().delete_schedule(name, entry):
            raise no_schedule(name)

    async def trigger(
        self,
        name: str,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
    ) -> JobHandle[Any]:
        """Store a job of a schedule now, with other arguments if given; the schedule goes on as it would, even paused."""
        asks = who(by)
        schedule = under_limit(await self._stored(name), self._registry.handlers)
        if args is not None or kwargs is not None:
            schedule = self._with_arguments(schedule, *call_of(args, kwargs))
        job = run_of(schedule, None, due_at=None, in_turn=in_turn(schedule, beside=True))
        handler = self._registry.handlers.get(schedule.task)
        reader = msgspec.json.decode if handler is None else result_reader(handler)
        entry = AuditEntry(verb="trigger", target=name, who=asks, detail={"job": job.id})
        call: Call[Any] = Call(job, reader, entry)
        return await self._client.enqueue(call)

    async def skip(self, name: str, *, by: str | None = None) -> datetime:
        """Have the next occurrence not run, also if its job is planted, and return when it would have been.

        Raises `NothingToSkip` for a schedule that is paused, parked or over.
        """
        return to_datetime(await skip_next(self._store(), name, who=who(by)))

    async def preview(self, name: str, n: int = 10, *, after: datetime | None = None) -> Sequence[Upcoming]:
        """Return the next occurrences, with notes about changes of the clock and what will not run."""
        count, start = check_limit(n, what="n"), None if after is None else from_datetime(after, what="after")
        return await foresee(self._store(), await self._stored(name), after=start, count=count)

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False, by: str | None = None
    ) -> Backfill:
        """Store a job, due now, for each occurrence from `start` to `end` that has none; a dry run only counts.

        Run twice, it makes each once. What the schedule will still make by itself is left to it. Raises
        `InvalidTime` for an end in the future, and for more than 10,000 occurrences.
        """
        first, last = from_datetime(start, what="start"), from_datetime(end, what="end")
        schedule = under_limit(await self._stored(name), self._registry.handlers)
        return await make_up_for(self._store(), schedule, start=first, end=last, dry_run=dry_run, who=who(by))

    async def history(self, name: str, *, limit: int = 50) -> Sequence[ScheduleChange]:
        """Return what was done to a schedule and by whom, newest first; also of one that is deleted.

        Raises `ScheduleNotFound` for a name that no schedule has or had.
        """
        found = await self._store().entries(name, limit=check_limit(limit))
        if not found:
            await self._stored(name)
        return [ScheduleChange.from_stored(entry) for entry in found]

    async def forecast(self, *, days: int = 7, tz: str = "UTC") -> Forecast:
        """Tell how many jobs all schedules will make in the days to come, and which of them start together."""
        return await forecast(self._store(), days=days, tz=tz)

    async def explain(self, name: str, at: datetime | None = None) -> ScheduleExplanation:
        """Tell how a schedule stands, or what became of it at some time, and why; raises `ScheduleNotFound`.

        A time without a zone is one in the zone of the schedule, one without seconds stands for the whole minute.
        """
        return await explain_occurrence(self._store(), name, at)

    async def export(
        self,
        names: Sequence[str] | None = None,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
    ) -> ScheduleExport:
        """Return schedules, all or those named, as the text of a file: `json`, `yaml` or `crontab`.

        Raises `ScheduleNotFound`. Parked and ended ones are left out, and `notes` says so.
        """
        return await export_schedules(self._store(), names, format)

    async def import_(
        self,
        text: str,
        *,
        format: str = "json",  # noqa: A002 - the word that everybody uses
        check: bool = True,
        dry_run: bool = False,
        source: str = "text",
        by: str | None = None,
    ) -> ScheduleImport:
        """Store the schedules of a file, all of them or none, and tell what became of each; a dry run only tells.

        Raises `InvalidImport` with every problem and its place in `source`. Without `check` tasks and arguments are
        taken as they are. Schedules that the file does not have stay, and what is paused stays paused.
        """
        asks, store = who(by), self._store()
        tasks = self._registry.handlers if check else None
        now, stored = await store.now(), await store.schedules()
        importer = Importer(tasks, stored=stored, pace=self._pace, now=now, source=source)
        plans, notes = importer.read(text, format)
        done = await import_schedules(store, plans, who=asks, dry_run=dry_run)
        return ScheduleImport(schedules=done, notes=notes)

    def _handler_of(self, task: Task[..., Any] | type[Job] | str) -> Handler:
        if isinstance(task, str):
            return self._registry.handler(task)
        found = task_of(task) if isinstance(task, type) and issubclass(task, Job) else task
        if not isinstance(found, Task):
            text = f"a schedule runs a task, as @scheduler.task makes it, a job class or the name of one, not {shown(task)}"
            raise InvalidTask(text)
        if self._registry.handlers.get(found.name) is not found.handler:
            text = f"{found.name} is a task of another scheduler, whose workers may not see this schedule"
            raise InvalidTask(text)
        return found.handler

    def _with_arguments(
        self, schedule: StoredSchedule, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> StoredSchedule:
        handler = self._registry.handler(schedule.task)
        payload = handler.arguments.encode(args, kwargs)
        terms = handler.terms_of(payload, Terms.from_text(schedule.terms))
        return replace(schedule, payload=payload, terms=terms.to_text())

    async def _stored(self, name: str) -> StoredSchedule:
        return await find_schedule(self._store(), name)


def _end(until: datetime | Duration | None) -> Callable[[Instant], Instant | None]:
    """Return what tells the end of a pause once its beginning is known."""
    if until is None:
        return lambda _: None
    if isinstance(until, datetime):
        moment = from_datetime(until, what="until")
        return lambda _: moment
    length = durations.parse(until, what="until")
    return lambda now: now + length
