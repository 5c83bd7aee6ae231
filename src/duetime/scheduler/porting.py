"""Moves schedules between databases and files: all of a file is stored, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from duetime.errors import DuetimeError, InvalidArguments, InvalidImport, InvalidOption
from duetime.model.bounds import MAX_DEPTH, excess
from duetime.model.instants import Instant
from duetime.model.portable import Wanted, read, written
from duetime.model.porting import port
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.schedule_moves import FIELDS
from duetime.model.shown import shown
from duetime.model.task import TaskOptions
from duetime.model.terms import Terms
from duetime.model.triggers.text import trigger_of
from duetime.model.triggers.unreadable import Unreadable
from duetime.runtime.arguments import Arguments
from duetime.runtime.handler import Handler
from duetime.scheduler.altering import Answer, Decision, alter_all, answer_of
from duetime.scheduler.arguments import Arguments as Call
from duetime.scheduler.arguments import read_arguments
from duetime.scheduler.documents import Document, Format, Found, check_format, read_document, write_document
from duetime.scheduler.lookup import no_schedule, no_task
from duetime.scheduler.pace import Pace
from duetime.scheduler.registry import Declared
from duetime.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleExport:
    """Schedules as the text of a file."""

    text: str
    count: int
    """How many schedules are in it; what is only a comment does not count."""
    notes: tuple[str, ...]
    """What is left out of it, and why; what this kind of file cannot say."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleImport:
    """What has become of the schedules of a file, or would."""

    schedules: Mapping[str, Answer]
    notes: tuple[str, ...]
    """What the file says besides, and is left out."""


async def export_schedules(store: Store, names: Sequence[str] | None, style: str) -> ScheduleExport:
    """Return schedules as the text of a file; raises `ScheduleNotFound`."""
    checked = check_format(style)
    if isinstance(names, str):
        text = f"names must be a list of names, such as [{names!r}], not the text {names!r}"
        raise InvalidOption(text)
    found = await (store.schedules() if names is None else store.get_schedules(names))
    known = {schedule.name for schedule in found}
    for name in names or ():
        if name not in known:
            raise no_schedule(name, [schedule.name for schedule in await store.schedules()])
    kept = [schedule for schedule in found if _why_not(schedule) is None]
    made = write_document(kept, checked)
    left_out = [f"{schedule.name} {why}; it is left out" for schedule in found if (why := _why_not(schedule))]
    return ScheduleExport(text=made.text, count=made.size, notes=(*left_out, *made.notes))


def _why_not(schedule: StoredSchedule) -> str | None:
    """Return why a schedule would be wrong elsewhere: it would begin to run, or never can."""
    if schedule.parked_at is not None:
        return "is parked, since no code declares it any more"
    if isinstance(trigger := trigger_of(schedule), Unreadable):
        return f"has {trigger.what} that cannot be read here"
    if schedule.next_at is None:
        return "has ended"
    try:
        written(schedule)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return f"has arguments or callbacks that cannot be read: {shown(error)}"
    return None


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule that is to be as a file has it."""

    wanted: Wanted
    declared: Declared
    known: bool
    """Whether its task is known here, so that the task's own limit counts and not the one in the file."""
    terse: bool
    """Whether the file says nothing of policies, as a crontab: those of a schedule that is there stay."""

    def decide(self, before: StoredSchedule | None, now: Instant, *, who: str) -> Change | None:
        """Return what to write, `None` when it is so already."""
        new = self._row(now)
        if self.terse and before is not None and before.task == new.task:
            kept = {name: getattr(before, name) for name in FIELDS if name not in ("task", "payload")}
            new = replace(new, **kept | {"terms": self._terms(before)})
        return port(before, new, self.wanted.trigger, pause=self.wanted.pause, who=who, now=now)

    def _row(self, now: Instant) -> StoredSchedule:
        row = self.declared.at(now)
        on_crash = self.wanted.on_crash or row.on_crash
        terms = row.terms
        if not self.known and self.wanted.gate is not None:
            terms = replace(Terms.from_text(terms), gate=self.wanted.gate).to_text()
        return replace(row, owner="user", declared="", on_crash=on_crash, terms=terms, made=self.wanted.made)

    def _terms(self, before: StoredSchedule) -> str | None:
        return self.declared.handler.terms_of(self.declared.payload, Terms.from_text(before.terms)).to_text()


class Importer:
    """Reads a file against the tasks that are known and the schedules that are stored."""

    def __init__(
        self,
        tasks: Mapping[str, Handler] | None,
        *,
        stored: Iterable[StoredSchedule],
        pace: Pace,
        now: Instant,
        source: str,
    ) -> None:
        """Check tasks and arguments by `tasks`; with `None` they are taken as they are."""
        self._tasks = tasks
        self._stored = {schedule.name: schedule for schedule in stored}
        self._pace = pace
        self._now = now
        self._source = source

    def read(self, text: str, style: str) -> tuple[list[Planned], tuple[str, ...]]:
        """Return what the file asks for; raises `InvalidImport` with every problem there is."""
        checked: Format = check_format(style)
        try:
            document = read_document(text, checked)
        except DuetimeError as error:
            if isinstance(error, ImportError):
                raise
            raise InvalidImport([f"{self._source}: {error}"]) from None
        return self._planned(document, terse=checked == "crontab"), tuple(document.notes)

    def _planned(self, document: Document, *, terse: bool) -> list[Planned]:
        apart = ":" if terse else ": "
        plans: list[Planned] = []
        problems: list[str] = []
        for found in document.found:
            try:
                plans.append(self._plan(found, terse=terse))
            except DuetimeError as error:
                problems.append(f"{self._source}{apart}{found.place}: {error}")
        if problems:
            raise InvalidImport(problems)
        return plans

    def _plan(self, found: Found, *, terse: bool) -> Planned:
        if isinstance(found.entry, Exception):
            raise found.entry
        wanted = read(found.entry)
        handler = self._handler(wanted.task)
        declared = Declared(
            name=wanted.name,
            handler=handler,
            trigger=self._pace.check(wanted.trigger, name=wanted.name, now=self._now),
            payload=self._payload(handler, wanted),
            options=wanted.options,
        )
        plan = Planned(wanted, declared, known=self._tasks is not None, terse=terse)
        foreseen = plan.decide(self._stored.get(wanted.name), self._now, who=self._source)
        self._pace.checked(foreseen, now=self._now)
        return plan

    def _handler(self, task: str) -> Handler:
        if self._tasks is None:
            return _stand_in(task)
        if task not in self._tasks:
            raise no_task(task, self._tasks)
        return self._tasks[task]

    def _payload(self, handler: Handler, wanted: Wanted) -> str:
        if isinstance(wanted.arguments, tuple):
            call = read_arguments(handler, wanted.arguments)
            if self._tasks is None:
                return _unchecked(call)
            return handler.arguments.encode(tuple(call.args), call.kwargs)
        text = _json(wanted.arguments, exact=self._tasks is None)
        if self._tasks is None:
            return text
        args, kwargs = handler.arguments.decode(text)
        return handler.arguments.encode(tuple(args), kwargs)


async def import_schedules(
    store: Store, plans: Iterable[Planned], *, who: str, dry_run: bool
) -> dict[str, Answer]:
    """Make schedules as planned, all in one step, and tell what became of each; a dry run only tells."""
    decisions = {plan.wanted.name: _decision(plan, who) for plan in plans}
    if dry_run:
        now = await store.now()
        found = {schedule.name: schedule for schedule in await store.get_schedules(list(decisions))}
        foreseen = {name: decide(found.get(name), now) for name, decide in decisions.items()}
        changes = {name: change for name, change in foreseen.items() if change is not None}
    else:
        changes = await alter_all(store, decisions, whole=True)
    return {name: answer_of(changes.get(name)) for name in decisions}


def _decision(plan: Planned, who: str) -> Decision:
    def decide(before: StoredSchedule | None, now: Instant) -> Change | None:
        return plan.decide(before, now, who=who)

    return decide


def _json(arguments: Mapping[str, object], *, exact: bool) -> str:
    """Return arguments as JSON; raises `InvalidArguments` for what would silently become something else."""

    def other(value: object) -> object:
        if exact:
            text = f"{value} is a {type(value).__name__} here, and JSON has none; write it in quotes"
            raise InvalidArguments(text)
        return msgspec.to_builtins(value)

    try:
        json.dumps(arguments, allow_nan=False, default=other)
        return _bounded(msgspec.json.encode(arguments))
    except InvalidArguments:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments cannot be written as JSON: {error}") from None


def _unchecked(call: Call) -> str:
    if call.args:
        text = "a list of arguments needs the code of the task; write name=value pairs or a JSON object"
        raise InvalidArguments(text)
    return _bounded(msgspec.json.encode(call.kwargs))


def _bounded(raw: bytes) -> str:
    # The object that names the arguments is no part of them.
    if (problem := excess(raw, deepest=MAX_DEPTH + 1)) is not None:
        raise InvalidArguments(f"the arguments cannot be stored: {problem}")
    return raw.decode()


def _stand_in(task: str) -> Handler:
    """Return what stands for a task that is not known here: it asks for nothing."""

    def nobody() -> None: ...

    return Handler(
        name=task,
        function=nobody,
        is_async=False,
        options=TaskOptions(),
        arguments=Arguments(nobody, task=task),
    )
