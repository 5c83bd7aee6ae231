"""Schedules as a client sees them: put, edited, paused, skipped, previewed and backfilled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal, Unpack

import msgspec

from duetime.errors import InvalidOption, InvalidTask, ScheduleChanged
from duetime.model.job import JobTerms, NewJob
from duetime.model.schedule.actions import deletion, edit, pause, put, resume, skip
from duetime.model.schedule.calendar import CalendarRecord, calendar_of
from duetime.model.schedule.firing import in_turn
from duetime.model.schedule.forecast import Forecast, forecast_schedules
from duetime.model.schedule.occurrences import (
    MOST_BACKFILLED,
    backfill_job,
    gives_way,
    scheduled_job,
    span_cuts,
    to_backfill,
    upcoming_occurrences,
)
from duetime.model.schedule.options import ScheduleOptionValues, schedule_options, with_options
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.schedule.runs import most_counted
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.text import check_name, check_reason, shown
from duetime.model.time import Duration, Instant, from_datetime, parse_duration, to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.specs import schedule_trigger, trigger_from_text
from duetime.runtime.codec.results import result_decoder
from duetime.runtime.running.handler import Handler, with_current_gate
from duetime.scheduler.announced import find_handler
from duetime.scheduler.audit import actor_name
from duetime.scheduler.explanations import (
    OverdueSchedule,
    ScheduleExplanation,
    explain_schedule_at,
    overdue_schedules,
)
from duetime.scheduler.job_class import Job, task_of
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.lookup import check_limit, find_schedule, schedule_not_found
from duetime.scheduler.pages import Page, read_cursor, write_cursor
from duetime.scheduler.records import Backfill, ScheduleChange, ScheduleRecord
from duetime.scheduler.registry import ScheduleDefinition, SchedulerRegistry, TriggerPolicy
from duetime.scheduler.schedule_changes import (
    ChangeAnswer,
    answer_of,
    change_existing,
    change_schedule,
    read_until_written,
    write_changes,
)
from duetime.scheduler.task import Call, EnqueueClient, Task, call_arguments
from duetime.scheduler.transfer.schedule_files import (
    ImportRules,
    ScheduleExport,
    ScheduleImport,
    export_schedules,
    import_schedules,
)
from duetime.stores.base import JobFilter, Store


class Schedules:
    """Reads schedules, and changes what becomes of them."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        client: EnqueueClient,
        registry: SchedulerRegistry,
        pace: TriggerPolicy,
    ) -> None:
        self._store = store
        self._client = client
        self._registry = registry
        self._pace = pace

    async def list(
        self,
        *,
        queues: Collection[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[ScheduleRecord]:
        """Return schedules by name, each with its last run: all of them, or a page of those of some queues.

        Of more than 100 schedules no more than 100 successes and failures are counted, else 1,000 of each.
        """
        after = "" if cursor is None else read_cursor(_KIND, cursor)
        store, most = self._store(), None if limit is None else check_limit(limit)
        found = await store.schedules(after=after, limit=most and most + 1, queues=queues)
        page = found[:most]
        more = len(found) > len(page)
        return Page(await _records(store, page), cursor=write_cursor(_KIND, page[-1].name) if more else None)

    async def get(self, name: str) -> ScheduleRecord:
        """Return one schedule; raises `ScheduleNotFound`."""
        (record,) = await _records(self._store(), [await self._stored(name)])
        return record

    async def put(
        self,
        name: str,
        trigger: Trigger,
        task: Task[..., Any] | type[Job] | str,
        *,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        expected: ScheduleRecord | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> ChangeAnswer:
        """Store a schedule, or change what differs in the one of this name; its times stay if its trigger does.

        A task is named where its code is not here: one that workers have announced. A schedule that code declares stays
        the code's own, and the change holds until the code changes there. Nothing is stored when anything is refused:
        the trigger, the arguments or an option. Raises `ScheduleChanged` if it is not as it was when `expected` was read.
        """
        asks = actor_name(by)
        store = self._store()
        handler = await self._handler_of(task)
        check_name(name, what="schedule name")
        payload = handler.arguments.encode(*call_arguments(args, kwargs))
        options = schedule_options(values, owner=self._client)
        declared = ScheduleDefinition(name, handler, trigger, payload, options)
        rule = self._pace.check(trigger, name=name, now=await store.now())

        def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate | None:
            _check_expected(before, expected)
            new = replace(declared.at(now), owner="user", declared="")
            return self._pace.checked(put(before, new, rule, who=asks, now=now), now=now)

        return answer_of(await change_schedule(store, name, decide))

    async def edit(
        self,
        name: str,
        *,
        trigger: Trigger | None = None,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        expected: ScheduleRecord | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> Literal["changed", "unchanged"]:
        """Change what is given and nothing else; raises `ScheduleNotFound`.

        `args` and `kwargs` together are the new arguments. `None` for retries, timeout or expires leaves it to the
        task again. Raises `ScheduleChanged` if it is not as it was when `expected` was read.
        """
        asks = actor_name(by)
        if trigger is None and args is None and kwargs is None and not values:
            raise InvalidOption("say what to change, e.g. schedules.edit(name, trigger=every('15m'))")
        store = self._store()
        call = call_arguments(args, kwargs)
        handler = None
        if args is not None or kwargs is not None:
            handler = await self._handler_of((await self._stored(name)).task)
        rule = None if trigger is None else self._pace.check(trigger, name=name, now=await store.now())

        def decide(before: StoredSchedule, now: Instant) -> ScheduleUpdate | None:
            _check_expected(before, expected)
            after = with_options(before, values, owner=self._client)
            if handler is not None:
                after = _with_arguments(after, handler, *call)
            return self._pace.checked(edit(before, after, rule, who=asks, now=now), now=now)

        return "unchanged" if await change_existing(store, name, decide) is None else "changed"

    async def pause(
        self,
        name: str,
        *,
        reason: str | None = None,
        until: datetime | Duration | None = None,
        by: str | None = None,
    ) -> None:
        """Stop a schedule from firing, until a time if one is given; planted jobs that have not started are withdrawn."""
        asks = actor_name(by)
        why = None if reason is None else check_reason(reason)
        moment = from_datetime(until, what="until") if isinstance(until, datetime) else None
        length = None if until is None or isinstance(until, datetime) else parse_duration(until, what="until")

        def decide(before: StoredSchedule, now: Instant) -> ScheduleUpdate:
            end = moment if length is None else now + length
            return pause(before, reason=why, until=end, who=asks, now=now)

        await change_existing(self._store(), name, decide)

    async def resume(self, name: str, *, by: str | None = None) -> Literal["resumed", "unchanged"]:
        """Let a schedule fire again from now on; one record tells what did not run meanwhile.

        `unchanged`: it was not paused. One that is parked stays so until code declares it, or someone puts it.
        """
        asks = actor_name(by)
        change = await change_existing(self._store(), name, lambda old, now: resume(old, who=asks, now=now))
        return "unchanged" if change is None else "resumed"

    async def delete(self, name: str, *, by: str | None = None) -> None:
        """Remove a schedule and withdraw its planted jobs; its records stay. Raises `ScheduleNotFound`.

        One that code declares comes back when the next worker with that code starts.
        """
        entry = deletion(await self._stored(name), who=actor_name(by))
        if not await self._store().delete_schedule(name, entry):
            raise schedule_not_found(name)

    async def trigger(
        self,
        name: str,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
    ) -> JobHandle[Any]:
        """Store a job of a schedule now, with other arguments if given; the schedule goes on as it would, even paused."""
        asks = actor_name(by)
        schedule = with_current_gate(await self._stored(name), self._registry.handlers)
        if args is not None or kwargs is not None:
            handler = await self._handler_of(schedule.task)
            schedule = _with_arguments(schedule, handler, *call_arguments(args, kwargs))
        job = scheduled_job(schedule, None, due_at=None, in_turn=in_turn(schedule, several=True))
        known = self._registry.handlers.get(schedule.task)
        reader = msgspec.json.decode if known is None else result_decoder(known.function)
        entry = AuditEntry(verb="trigger", target=name, who=asks, detail={"job": job.id})
        return await self._client.enqueue(Call[Any](job, reader, entry))

    async def skip(self, name: str, *, by: str | None = None) -> datetime:
        """Skip the next occurrence, even if its job is planted, and return when it would have been.

        Raises `NothingToSkip` for a schedule that is paused, parked or over.
        """
        asks, store, occurrence = actor_name(by), self._store(), 0
        async for before, now in read_until_written(store, name):
            occurrence, change = skip(before, planted=await _first_planted(store, name, now=now), who=asks)
            if await write_changes(store, [change]):
                break
        return to_datetime(occurrence)

    async def preview(self, name: str, n: int = 10, *, after: datetime | None = None) -> Sequence[Upcoming]:
        """Return the next occurrences, with notes about changes of the clock and what will not run."""
        count, given = check_limit(n, what="n"), None if after is None else from_datetime(after, what="after")
        store, schedule = self._store(), await self._stored(name)
        trigger, until = schedule_trigger(schedule), schedule.fired_through
        start, planted = await store.now() if given is None else given, list[StoredJob]()
        if until > start:
            planted += await store.occurrences(name, since=start, until=until, limit=MOST_BACKFILLED)
        left_out = [job for job in planted if job.state is State.SKIPPED]
        skipped = {one.occurrence: one.reason or "skipped" for one in left_out if one.occurrence is not None}
        return upcoming_occurrences(schedule, trigger, after=start, count=count, skipped=skipped)

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False, by: str | None = None
    ) -> Backfill:
        """Store a job, due now, for each occurrence from `start` to `end` that has none; a dry run only counts.

        Run twice, it makes each once. What the schedule will still make by itself is left to it. Raises
        `InvalidTime` for an end in the future, and for more than 10,000 occurrences.
        """
        first, last = from_datetime(start, what="start"), from_datetime(end, what="end")
        store, asks = self._store(), actor_name(by)
        schedule = with_current_gate(await self._stored(name), self._registry.handlers)
        trigger = trigger_from_text(schedule.trigger)
        wanted = to_backfill(schedule, trigger, start=first, end=last, now=await store.now())
        found = await _occurrences_between(store, name, wanted)
        made = {job.occurrence for job in found if not gives_way(job)}
        missing = [occurrence for occurrence in wanted if occurrence not in made]
        enqueued = len(missing)
        if not dry_run:
            turns = in_turn(schedule, several=True)
            jobs = [backfill_job(schedule, occurrence, in_turn=turns) for occurrence in missing]
            # One entry for all: it is kept once, with the first that is stored.
            entry = AuditEntry(verb="backfill", target=name, who=asks, detail={"start": first, "end": last})
            chunks = [jobs[at : at + _BACKFILL_CHUNK] for at in range(0, len(jobs), _BACKFILL_CHUNK)]
            enqueued = sum([await _store_backfill(store, chunk, entry, schedule) for chunk in chunks])
        return Backfill(occurrences=len(wanted), enqueued=enqueued, already=len(wanted) - enqueued)

    async def history(self, name: str, *, limit: int = 50) -> Sequence[ScheduleChange]:
        """Return what was done to a schedule and by whom, newest first; also of one that is deleted.

        Raises `ScheduleNotFound` for a name that no schedule has or had.
        """
        found = await self._store().entries(name, limit=check_limit(limit))
        if not found:
            await self._stored(name)
        return [ScheduleChange.from_stored(entry) for entry in found]

    async def forecast(self, *, days: int = 7, tz: str = "UTC") -> Forecast:
        """Return how many jobs all schedules will make in the coming days."""
        store = self._store()
        schedules, now = await store.schedules(), await store.now()
        return await asyncio.to_thread(forecast_schedules, schedules, start=now, days=days, tz=tz)

    async def calendar(self, *, days: int = 14, queues: Collection[str] | None = None) -> CalendarRecord:
        """Return the occurrences of the coming days, of all schedules or of those of some queues.

        Of a schedule no more than 50 are listed.
        """
        store = self._store()
        found, now = await store.schedules(), await store.now()
        meant = [one for one in found if queues is None or one.queue in queues]
        return await asyncio.to_thread(calendar_of, meant, start=now, days=days)

    async def overdue(self, *, queues: Collection[str] | None = None) -> Sequence[OverdueSchedule]:
        """Return the schedules whose time came more than a minute ago and that no worker has fired, the latest first."""
        store = self._store()
        found, now = await store.schedules(), await store.now()
        return overdue_schedules([one for one in found if queues is None or one.queue in queues], now=now)

    async def explain(self, name: str, at: datetime | None = None) -> ScheduleExplanation:
        """Explain the state of a schedule, or what it did at some time; raises `ScheduleNotFound`.

        A time without a zone is one in the zone of the schedule, one without seconds stands for the whole minute.
        """
        return await explain_schedule_at(self._store(), name, at)

    async def export(
        self,
        names: Sequence[str] | None = None,
        *,
        format: str = "json",  # noqa: A002 - the usual word
    ) -> ScheduleExport:
        """Return schedules, all or those named, as the text of a file: `json`, `yaml` or `crontab`.

        Raises `ScheduleNotFound`. Parked and ended ones are left out, and `notes` says so.
        """
        return await export_schedules(self._store(), names, format)

    async def import_(
        self,
        text: str,
        *,
        format: str = "json",  # noqa: A002 - the usual word
        check: bool = True,
        dry_run: bool = False,
        source: str = "text",
        by: str | None = None,
    ) -> ScheduleImport:
        """Store the schedules of a file, all of them or none, and tell what became of each; a dry run only tells.

        A file that `export` wrote is read in the same format; `system-crontab` is a crontab with a user in each line.
        Raises `InvalidImport` with every problem and its place in `source`. Without `check` tasks and arguments are
        taken as they are. Schedules that the file does not have stay, and what is paused stays paused.
        """
        rules = ImportRules(self._registry.handlers if check else None, self._pace, actor_name(by))
        return await import_schedules(self._store(), text, format, rules, source=source, dry_run=dry_run)

    async def _handler_of(self, task: Task[..., Any] | type[Job] | str) -> Handler:
        if isinstance(task, str):
            return await find_handler(self._store(), self._registry.handlers, task)
        found = task_of(task) if isinstance(task, type) and issubclass(task, Job) else task
        if not isinstance(found, Task):
            raise InvalidTask(f"a schedule runs a task, a job class or the name of one, not {shown(task)}")
        if self._registry.handlers.get(found.name) is not found.handler:
            raise InvalidTask(f"{found.name} is a task of another scheduler; register it with this one")
        return found.handler

    async def _stored(self, name: str) -> StoredSchedule:
        return await find_schedule(self._store(), name)


_KIND: Final = "schedules"
"""Of cursors."""
_BACKFILL_CHUNK: Final = 500
"""How many jobs are stored in one transaction."""
_RUNS_CHUNK: Final = 500
"""Of how many schedules the runs are looked up at once."""


def _check_expected(before: StoredSchedule | None, expected: ScheduleRecord | None) -> None:
    """Raise `ScheduleChanged` for a schedule that is not as it was read."""
    if expected is None:
        return
    seen = (from_datetime(expected.created_at), expected.rev)
    if before is None or (before.created_at, before.rev) != seen:
        raise ScheduleChanged(f"schedule {expected.name} has been changed since it was read; read it again")


def _with_arguments(
    schedule: StoredSchedule, handler: Handler, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> StoredSchedule:
    payload = handler.arguments.encode(args, kwargs)
    terms = handler.terms_of(payload, JobTerms.from_text(schedule.terms))
    return replace(schedule, payload=payload, terms=terms.to_text())


async def _records(store: Store, schedules: Sequence[StoredSchedule]) -> list[ScheduleRecord]:
    """Read how schedules fare, too."""
    records: list[ScheduleRecord] = []
    for at in range(0, len(schedules), _RUNS_CHUNK):
        some = schedules[at : at + _RUNS_CHUNK]
        runs = await store.runs([one.name for one in some], most=most_counted(len(schedules)))
        records += [ScheduleRecord.from_stored(one, runs[one.name]) for one in some]
    return records


async def _first_planted(store: Store, name: str, *, now: Instant) -> Instant | None:
    """Return the first occurrence whose job is there and waits for its time, if there is one."""
    found: list[Instant] = []
    for state, claims in ((State.PENDING, 0), (State.RUNNING, 1)):
        # One that was claimed before may have begun, and waits for something else.
        found += [
            job.occurrence
            for job in await store.find(
                JobFilter(schedule=name, states=frozenset({state}), limit=MOST_BACKFILLED)
            )
            if job.due_at > now and job.started_at is None and job.occurrence is not None
            if job.occurrence > now or job.fence == claims
        ]
    return min(found, default=None)


async def _occurrences_between(store: Store, name: str, wanted: Sequence[Instant]) -> Sequence[StoredJob]:
    """Return the records of a schedule from the first to the last of some occurrences."""
    if not wanted:
        return ()
    return await store.occurrences(name, since=wanted[0], until=wanted[-1], limit=2 * MOST_BACKFILLED)


async def _store_backfill(
    store: Store, jobs: Sequence[NewJob], entry: AuditEntry, schedule: StoredSchedule
) -> int:
    """Store jobs in place of the records that they did not run, and return how many."""
    wanted = [job.occurrence for job in jobs if job.occurrence is not None]
    trigger = trigger_from_text(schedule.trigger)
    async for _ in read_until_written(store, schedule.name):
        found = await _occurrences_between(store, schedule.name, wanted)
        ids = await store.backfill(jobs, entry, cuts=span_cuts(found, wanted, schedule, trigger))
        if ids is not None:
            return len(ids)
    return 0
