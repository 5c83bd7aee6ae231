"""Schedules as files of JSON, YAML or crontab: all of a file is stored, or nothing."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec

from duetime.errors import (
    DuetimeError,
    InvalidArguments,
    InvalidImport,
    InvalidOption,
    InvalidValue,
    MissingDriver,
)
from duetime.model.job import JobTerms
from duetime.model.schedule.actions import SCHEDULE_FIELDS
from duetime.model.schedule.crontab import read_crontab, write_crontab
from duetime.model.schedule.files import (
    FileText,
    WantedSchedule,
    import_schedule,
    read_schedule,
    written_schedule,
)
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.task import TaskOptions
from duetime.model.text import MAX_DEPTH, beyond_bounds, is_deeper, shown
from duetime.model.time import Instant
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.runtime.running.arguments import Arguments
from duetime.runtime.running.handler import Handler
from duetime.scheduler.lookup import find_task, schedule_not_found
from duetime.scheduler.registry import ScheduleDefinition, TriggerPolicy
from duetime.scheduler.schedule_changes import ChangeAnswer, ScheduleDecision, answer_of, change_schedules
from duetime.scheduler.task import CallArguments as Call
from duetime.scheduler.task import read_arguments
from duetime.stores.base import Store

FileFormat: TypeAlias = Literal["json", "yaml", "crontab"]

FILE_VERSION = 1
MAX_SCHEDULES = 10_000
MAX_FILE_LENGTH = 10_000_000
"""How many characters a file may have."""
MAX_VALUES = 500_000
"""How many values a YAML file may have: its reader takes about a kilobyte for each."""
MAX_FILE_DEPTH = MAX_DEPTH + 10
"""How deep values may be nested in a file: as deep as those of arguments, and what is around them."""

_TOO_DEEP = f"values are nested more than {MAX_FILE_DEPTH} deep"
_ESCAPED_CHARACTERS = re.compile(r"[^\n -~]")
_YAML_MISSING = 'YAML needs a library: pip install "duetime[yaml]"'


class FileEntry(NamedTuple):
    """One schedule of a file, or what is wrong with it."""

    place: str
    entry: Mapping[str, Any] | InvalidValue


class ScheduleDocument(NamedTuple):
    """What a file says."""

    found: list[FileEntry]
    notes: list[str]


def check_format(value: str) -> FileFormat:
    """Return the format, or raise `InvalidOption`."""
    if value not in get_args(FileFormat):
        text = f"format must be one of {', '.join(get_args(FileFormat))}, not {shown(value)}"
        raise InvalidOption(text)
    return cast("FileFormat", value)


def write_document(schedules: Sequence[StoredSchedule], style: FileFormat) -> FileText:
    """Return a file of schedules, and what this kind of file cannot say."""
    if style == "crontab":
        return write_crontab(schedules)
    values = {"duetime": FILE_VERSION, "schedules": [written_schedule(schedule) for schedule in schedules]}
    if style == "json":
        text = json.dumps(values, indent=2, ensure_ascii=False)
        return FileText(_ESCAPED_CHARACTERS.sub(_escape, text) + "\n", len(schedules), [])
    try:
        return FileText(msgspec.yaml.encode(values).decode().rstrip("\n") + "\n", len(schedules), [])
    except ImportError as error:
        raise MissingDriver(_YAML_MISSING) from error


def read_document(text: str, style: FileFormat) -> ScheduleDocument:
    """Read a file as far as it can be read; raises `InvalidValue` when it is none of its kind at all."""
    if len(text) > MAX_FILE_LENGTH:
        raise InvalidOption(f"the file has more than {MAX_FILE_LENGTH:,} characters; split it")
    # Some editors begin a file with this mark, which is no part of what it says.
    text = text.removeprefix("\ufeff")
    if style == "crontab":
        crontab = read_crontab(text)
        return ScheduleDocument(
            [FileEntry(str(line.number), line.entry) for line in crontab.lines], crontab.notes
        )
    schedules = _entries(_decode(text, style))
    found: list[FileEntry] = []
    seen: set[object] = set()
    for number, entry in enumerate(schedules, 1):
        if not isinstance(entry, Mapping):
            problem = InvalidOption(
                f"a schedule is an object with a name, a task and a trigger, not {shown(entry)}"
            )
            found.append(FileEntry(f"schedule {number}", problem))
            continue
        said = cast("Mapping[str, Any]", entry)
        name = said.get("name")
        place = name if isinstance(name, str) else f"schedule {number}"
        twice = isinstance(name, str) and name in seen
        seen |= {place}
        found.append(
            FileEntry(place, InvalidOption("there are two schedules of this name") if twice else said)
        )
    return ScheduleDocument(found, [])


def _escape(found: re.Match[str]) -> str:
    """Leave letters as they are, and escape what a terminal might obey."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def _decode(text: str, style: FileFormat) -> object:
    if style == "json" and is_deeper(text.encode(errors="replace"), MAX_FILE_DEPTH):
        raise InvalidOption(_TOO_DEEP)
    try:
        if style == "json":
            return msgspec.json.decode(text)
        _check_yaml(text)
        return msgspec.yaml.decode(text)
    except ImportError as error:
        raise MissingDriver(_YAML_MISSING) from error
    except InvalidOption:
        raise
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidOption(f"this is no {style.upper()}: {error}") from None


def _check_yaml(text: str) -> None:
    """Raise `InvalidOption` for YAML that would take more memory or depth than its length says, before it is built."""
    yaml: Any = importlib.import_module("yaml")
    depth = values = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise InvalidOption(
                    f"line {line}: *{event.anchor} stands for another value; write the value itself"
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            values += isinstance(event, yaml.NodeEvent)
            if depth > MAX_FILE_DEPTH:
                raise InvalidOption(f"line {line}: {_TOO_DEEP}")
            if values > MAX_VALUES:
                raise InvalidOption(f"line {line}: there are more than {MAX_VALUES:,} values; split the file")
    except yaml.YAMLError as error:
        raise InvalidOption(f"this is no YAML: {error}") from None


def _entries(values: object) -> list[object]:
    said = cast("Mapping[str, Any]", values)
    if not isinstance(values, Mapping) or not isinstance(said.get("schedules"), list):
        text = f"a file of schedules is an object with a list of 'schedules', not {shown(said)}"
        raise InvalidOption(text)
    if (version := said.get("duetime", FILE_VERSION)) != FILE_VERSION:
        text = f"the file says 'duetime': {shown(version)}; this code reads {FILE_VERSION}"
        raise InvalidOption(text)
    entries: list[object] = said["schedules"]
    if len(entries) > MAX_SCHEDULES:
        text = f"the file has {len(entries):,} schedules; at most {MAX_SCHEDULES:,} are taken at once"
        raise InvalidOption(text)
    return entries


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

    schedules: Mapping[str, ChangeAnswer]
    notes: tuple[str, ...]
    """What else the file says, which is left out."""


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
            raise schedule_not_found(name, [schedule.name for schedule in await store.schedules()])
    kept = [schedule for schedule in found if _reason_left_out(schedule) is None]
    made = write_document(kept, checked)
    left_out = [
        f"{schedule.name} {why}; it is left out" for schedule in found if (why := _reason_left_out(schedule))
    ]
    return ScheduleExport(text=made.text, count=made.size, notes=(*left_out, *made.notes))


def _reason_left_out(schedule: StoredSchedule) -> str | None:
    """Return why a schedule would be wrong elsewhere: it would begin to run, or never can."""
    if schedule.parked_at is not None:
        return "is parked, since no code declares it any more"
    if isinstance(trigger := schedule_trigger(schedule), UnreadableTrigger):
        return f"has {trigger.what} that cannot be read here"
    if schedule.next_at is None:
        return "has ended"
    try:
        written_schedule(schedule)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return f"has arguments or callbacks that cannot be read: {shown(error)}"
    return None


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule that is to be as a file has it."""

    wanted: WantedSchedule
    declared: ScheduleDefinition
    known: bool
    """Whether its task is known here, so that the task's own limit counts and not the one in the file."""
    terse: bool
    """Whether the file says nothing of policies, as a crontab: those of a schedule that is there stay."""

    def decide(self, before: StoredSchedule | None, now: Instant, *, who: str) -> ScheduleUpdate | None:
        """Return what to write, `None` when it is so already."""
        new = self._row(now)
        if self.terse and before is not None and before.task == new.task:
            kept = {
                name: getattr(before, name) for name in SCHEDULE_FIELDS if name not in ("task", "payload")
            }
            new = replace(new, **kept | {"terms": self._terms(before)})
        return import_schedule(before, new, self.wanted.trigger, pause=self.wanted.pause, who=who, now=now)

    def _row(self, now: Instant) -> StoredSchedule:
        row = self.declared.at(now)
        on_crash = self.wanted.on_crash or row.on_crash
        terms = row.terms
        if not self.known and self.wanted.gate is not None:
            terms = replace(JobTerms.from_text(terms), gate=self.wanted.gate).to_text()
        return replace(row, owner="user", declared="", on_crash=on_crash, terms=terms, made=self.wanted.made)

    def _terms(self, before: StoredSchedule) -> str | None:
        return self.declared.handler.terms_of(
            self.declared.payload, JobTerms.from_text(before.terms)
        ).to_text()


class ScheduleImporter:
    """Reads a file against the tasks that are known and the schedules that are stored."""

    def __init__(
        self,
        tasks: Mapping[str, Handler] | None,
        *,
        stored: Iterable[StoredSchedule],
        pace: TriggerPolicy,
        now: Instant,
        source: str,
    ) -> None:
        """Check tasks and arguments by `tasks`; with `None` they are taken as they are."""
        self._tasks = tasks
        self._stored = {schedule.name: schedule for schedule in stored}
        self._pace = pace
        self._now = now
        self._source = source

    def read(self, text: str, style: str) -> tuple[list[PlannedSchedule], tuple[str, ...]]:
        """Return what the file asks for; raises `InvalidImport` with every problem there is."""
        checked: FileFormat = check_format(style)
        try:
            document = read_document(text, checked)
        except DuetimeError as error:
            if isinstance(error, ImportError):
                raise
            raise InvalidImport([f"{self._source}: {error}"]) from None
        return self._planned(document, terse=checked == "crontab"), tuple(document.notes)

    def _planned(self, document: ScheduleDocument, *, terse: bool) -> list[PlannedSchedule]:
        apart = ":" if terse else ": "
        plans: list[PlannedSchedule] = []
        problems: list[str] = []
        for found in document.found:
            try:
                plans.append(self._plan(found, terse=terse))
            except DuetimeError as error:
                problems.append(f"{self._source}{apart}{found.place}: {error}")
        if problems:
            raise InvalidImport(problems)
        return plans

    def _plan(self, found: FileEntry, *, terse: bool) -> PlannedSchedule:
        if isinstance(found.entry, Exception):
            raise found.entry
        wanted = read_schedule(found.entry)
        handler = (
            _stand_in_handler(wanted.task) if self._tasks is None else find_task(self._tasks, wanted.task)
        )
        declared = ScheduleDefinition(
            name=wanted.name,
            handler=handler,
            trigger=self._pace.check(wanted.trigger, name=wanted.name, now=self._now),
            payload=self._payload(handler, wanted),
            options=wanted.options,
        )
        plan = PlannedSchedule(wanted, declared, known=self._tasks is not None, terse=terse)
        foreseen = plan.decide(self._stored.get(wanted.name), self._now, who=self._source)
        self._pace.checked(foreseen, now=self._now)
        return plan

    def _payload(self, handler: Handler, wanted: WantedSchedule) -> str:
        if isinstance(wanted.arguments, tuple):
            call = read_arguments(handler, wanted.arguments)
            if self._tasks is None:
                return _unchecked_arguments(call)
            return handler.arguments.encode(tuple(call.args), call.kwargs)
        text = _json_arguments(wanted.arguments, exact=self._tasks is None)
        if self._tasks is None:
            return text
        args, kwargs = handler.arguments.decode(text)
        return handler.arguments.encode(tuple(args), kwargs)


async def import_schedules(
    store: Store, plans: Iterable[PlannedSchedule], *, who: str, dry_run: bool
) -> dict[str, ChangeAnswer]:
    """Make schedules as planned, all in one step, and tell what became of each; a dry run only tells."""
    decisions = {plan.wanted.name: _decision(plan, who) for plan in plans}
    if dry_run:
        now = await store.now()
        found = {schedule.name: schedule for schedule in await store.get_schedules(list(decisions))}
        foreseen = {name: decide(found.get(name), now) for name, decide in decisions.items()}
        changes = {name: change for name, change in foreseen.items() if change is not None}
    else:
        changes = await change_schedules(store, decisions, whole=True)
    return {name: answer_of(changes.get(name)) for name in decisions}


def _decision(plan: PlannedSchedule, who: str) -> ScheduleDecision:
    def decide(before: StoredSchedule | None, now: Instant) -> ScheduleUpdate | None:
        return plan.decide(before, now, who=who)

    return decide


def _json_arguments(arguments: Mapping[str, object], *, exact: bool) -> str:
    """Return arguments as JSON; raises `InvalidArguments` for what would silently become something else."""

    def other(value: object) -> object:
        if exact:
            text = f"{value} is a {type(value).__name__} here, and JSON has none; write it in quotes"
            raise InvalidArguments(text)
        return msgspec.to_builtins(value)

    try:
        json.dumps(arguments, allow_nan=False, default=other)
        return _bounded_json(msgspec.json.encode(arguments))
    except InvalidArguments:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments cannot be written as JSON: {error}") from None


def _unchecked_arguments(call: Call) -> str:
    if call.args:
        text = "a list of arguments needs the code of the task; write name=value pairs or a JSON object"
        raise InvalidArguments(text)
    return _bounded_json(msgspec.json.encode(call.kwargs))


def _bounded_json(raw: bytes) -> str:
    # The object that names the arguments is no part of them.
    if (problem := beyond_bounds(raw, deepest=MAX_DEPTH + 1)) is not None:
        raise InvalidArguments(f"the arguments cannot be stored: {problem}")
    return raw.decode()


def _stand_in_handler(task: str) -> Handler:
    """Return what stands for a task that is not known here: it asks for nothing."""

    def nothing() -> None: ...

    return Handler(
        name=task,
        function=nothing,
        is_async=False,
        options=TaskOptions(),
        arguments=Arguments(nothing, task=task),
    )
