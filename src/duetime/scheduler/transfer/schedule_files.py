"""Schedules as files of JSON, YAML or crontab: all of a file is stored, or nothing."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

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
from duetime.model.schedule.files import (
    ScheduleDocument,
    WantedSchedule,
    import_schedule,
    read_crontab,
    read_schedule,
    write_crontab,
    written_schedule,
)
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.task import TaskOptions
from duetime.model.text import MAX_DEPTH, beyond_bounds, check_choice, is_deeper, shown
from duetime.model.time import Instant
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.running.handler import Handler
from duetime.scheduler.lookup import find_task, schedule_not_found
from duetime.scheduler.registry import ScheduleDefinition, TriggerPolicy
from duetime.scheduler.schedule_changes import ChangeAnswer, answer_of, change_schedules
from duetime.scheduler.task import read_arguments
from duetime.stores.base import Store

FileFormat: TypeAlias = Literal["json", "yaml", "crontab"]
ImportFormat: TypeAlias = Literal[FileFormat, "system-crontab"]

FILE_VERSION = 1
MAX_SCHEDULES = 10_000
MAX_FILE_LENGTH = 10_000_000
"""How many characters a file may have."""
MAX_VALUES = 500_000
"""How many values a YAML file may have: its reader takes about a kilobyte for each."""
MAX_FILE_DEPTH = MAX_DEPTH + 10
"""How deep values may be nested in a file: as deep as those of arguments, and what is around them."""

_CRONTABS: Final = frozenset({"crontab", "system-crontab"})
_TOO_DEEP = f"values are nested more than {MAX_FILE_DEPTH} deep"
_ESCAPED_CHARACTERS = re.compile(r"[^\n -~]")
_YAML_MISSING = 'YAML needs a library: pip install "duetime[yaml]"'


def _written(schedules: Sequence[StoredSchedule], style: FileFormat) -> str:
    values = {"duetime": FILE_VERSION, "schedules": [written_schedule(schedule) for schedule in schedules]}
    if style == "json":
        return _ESCAPED_CHARACTERS.sub(_escape, json.dumps(values, indent=2, ensure_ascii=False)) + "\n"
    try:
        return msgspec.yaml.encode(values).decode().rstrip("\n") + "\n"
    except ImportError as error:
        raise MissingDriver(_YAML_MISSING) from error


def _read_document(text: str, style: ImportFormat) -> ScheduleDocument:
    """Read a file as far as it can be read; raises `InvalidValue` when it is none of its kind at all."""
    if len(text) > MAX_FILE_LENGTH:
        raise InvalidOption(f"the file has more than {MAX_FILE_LENGTH:,} characters; split it")
    # Some editors begin a file with this mark, which is no part of what it says.
    text = text.removeprefix("\ufeff")
    if style in _CRONTABS:
        return read_crontab(text, has_users=style == "system-crontab")
    found: dict[str, Mapping[str, Any] | InvalidValue] = {}
    for number, entry in enumerate(_entries(_decode(text, style)), 1):
        said: Mapping[str, Any] = cast("Mapping[str, Any]", entry) if isinstance(entry, Mapping) else {}
        name = said.get("name")
        place = name if isinstance(name, str) else f"schedule {number}"
        twice = found.pop(place, None) is not None
        if not isinstance(entry, Mapping):
            found[place] = InvalidOption(
                f"a schedule is an object with a name, a task and a trigger, not {shown(entry)}"
            )
        else:
            found[place] = InvalidOption("there are two schedules of this name") if twice else said
    return ScheduleDocument(found, [])


def _escape(found: re.Match[str]) -> str:
    """Leave letters as they are, and escape what a terminal might obey."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def _decode(text: str, style: ImportFormat) -> object:
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
    """Raise `InvalidOption` for YAML that would need far more memory than its length suggests, before it is built."""
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
        raise InvalidOption(f"a file of schedules is an object with a list of 'schedules', not {shown(said)}")
    if (version := said.get("duetime", FILE_VERSION)) != FILE_VERSION:
        raise InvalidOption(f"the file says 'duetime': {shown(version)}; this code reads {FILE_VERSION}")
    entries: list[object] = said["schedules"]
    if len(entries) > MAX_SCHEDULES:
        raise InvalidOption(f"the file has {len(entries):,} schedules; at most {MAX_SCHEDULES:,} are taken")
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
    """What became of the schedules of a file, or would become of them."""

    schedules: Mapping[str, ChangeAnswer]
    notes: tuple[str, ...]
    """What else the file says, which is left out."""


async def export_schedules(store: Store, names: Sequence[str] | None, style: str) -> ScheduleExport:
    """Return schedules as the text of a file; raises `ScheduleNotFound`."""
    checked: FileFormat = check_choice(style, get_args(FileFormat), what="format")
    if isinstance(names, str):
        raise InvalidOption(f"names must be a list of names, such as [{names!r}], not the text {names!r}")
    found = await (store.schedules() if names is None else store.get_schedules(names))
    known = {schedule.name for schedule in found}
    for name in names or ():
        if name not in known:
            raise schedule_not_found(name, [schedule.name for schedule in await store.schedules()])
    reasons = [(schedule, _reason_left_out(schedule)) for schedule in found]
    kept = [schedule for schedule, why in reasons if why is None]
    notes = [f"{schedule.name} {why}; it is left out" for schedule, why in reasons if why is not None]
    if checked == "crontab":
        text, count, unsaid = write_crontab(kept)
        return ScheduleExport(text=text, count=count, notes=(*notes, *unsaid))
    return ScheduleExport(text=_written(kept, checked), count=len(kept), notes=tuple(notes))


def _reason_left_out(schedule: StoredSchedule) -> str | None:
    """Return why a schedule must not be exported: elsewhere it would begin to run, or it never could."""
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
class _PlannedSchedule:
    """A schedule that is to be as a file has it."""

    wanted: WantedSchedule
    definition: ScheduleDefinition
    known: bool
    """Whether its task is known here, so that the task's own limit counts and not the one in the file."""
    keeps_policies: bool
    """Whether an existing schedule keeps its policies, because the file has none, as a crontab."""
    who: str

    def decide(self, before: StoredSchedule | None, now: Instant) -> ScheduleUpdate | None:
        """Return what to write, `None` when it is so already."""
        wanted, row = self.wanted, self.definition.at(now)
        terms = JobTerms.from_text(row.terms)
        if not self.known and wanted.gate is not None:
            terms = replace(terms, gate=wanted.gate)
        on_crash = wanted.on_crash or row.on_crash
        kept: dict[str, Any] = {}
        if self.keeps_policies and before is not None and before.task == row.task:
            kept = {name: getattr(before, name) for name in set(SCHEDULE_FIELDS) - {"task", "payload"}}
            terms = self.definition.handler.terms_of(row.payload, JobTerms.from_text(before.terms))
        said = {"on_crash": on_crash} | kept | {"terms": terms.to_text()}
        new = replace(row, owner="user", declared="", made=wanted.made, **said)
        return import_schedule(before, new, wanted.trigger, pause=wanted.pause, who=self.who, now=now)


class ImportRules(NamedTuple):
    """What the schedules of a file are checked by, and who asks for them."""

    tasks: Mapping[str, Handler] | None
    """What tasks and arguments must fit; `None` takes them as they are."""
    pace: TriggerPolicy
    who: str


async def import_schedules(
    store: Store, text: str, style: str, rules: ImportRules, *, source: str, dry_run: bool
) -> ScheduleImport:
    """Store the schedules of a file, all in one step, and tell what became of each; a dry run only tells.

    Raises `InvalidImport` with every problem there is.
    """
    checked: ImportFormat = check_choice(style, get_args(ImportFormat), what="format")
    by_line = checked in _CRONTABS
    now, stored = await store.now(), {schedule.name: schedule for schedule in await store.schedules()}
    try:
        document = _read_document(text, checked)
    except InvalidValue as error:
        raise InvalidImport([f"{source}: {error}"]) from None
    plans: dict[str, _PlannedSchedule] = {}
    changes: dict[str, ScheduleUpdate | None] = {}
    problems: list[str] = []
    for place, entry in document.found.items():
        try:
            plan = _plan(entry, rules, now=now, keeps_policies=by_line)
            name = plan.wanted.name
            changes[name] = rules.pace.checked(plan.decide(stored.get(name), now), now=now)
            plans[name] = plan
        except DuetimeError as error:
            problems.append(f"{source}{':' if by_line else ': '}{place}: {error}")
    if problems:
        raise InvalidImport(problems)
    if not dry_run:
        decisions = {name: plan.decide for name, plan in plans.items()}
        changes = {**await change_schedules(store, decisions, whole=True)}
    answers: dict[str, ChangeAnswer] = {name: answer_of(changes.get(name)) for name in plans}
    return ScheduleImport(schedules=answers, notes=tuple(document.notes))


def _plan(
    entry: Mapping[str, Any] | InvalidValue, rules: ImportRules, *, now: Instant, keeps_policies: bool
) -> _PlannedSchedule:
    if isinstance(entry, InvalidValue):
        raise entry
    wanted, tasks = read_schedule(entry), rules.tasks
    known = tasks is not None
    handler = _stand_in_handler(wanted.task) if tasks is None else find_task(tasks, wanted.task)
    trigger = rules.pace.check(wanted.trigger, name=wanted.name, now=now)
    payload = _payload(handler, wanted.arguments, known=known)
    definition = ScheduleDefinition(wanted.name, handler, trigger, payload, wanted.options)
    return _PlannedSchedule(wanted, definition, known, keeps_policies, rules.who)


def _payload(handler: Handler, arguments: Mapping[str, Any] | tuple[str, ...], *, known: bool) -> str:
    if not isinstance(arguments, tuple):
        text = _json_arguments(arguments, exact=not known)
        if not known:
            return text
        args, kwargs = handler.arguments.decode(text)
        return handler.arguments.encode(tuple(args), kwargs)
    call = read_arguments(handler, arguments)
    if known:
        return handler.arguments.encode(tuple(call.args), call.kwargs)
    if call.args:
        raise InvalidArguments("a list of arguments needs the code of the task; write name=value pairs")
    return _json_arguments(call.kwargs, exact=True)


def _json_arguments(arguments: Mapping[str, object], *, exact: bool) -> str:
    """Return arguments as JSON; raises `InvalidArguments` for what would silently become something else."""

    def other(value: object) -> object:
        if exact:
            raise InvalidArguments(f"JSON has no {type(value).__name__}; write {value} in quotes")
        return msgspec.to_builtins(value)

    try:
        json.dumps(arguments, allow_nan=False, default=other)
        raw = msgspec.json.encode(arguments)
    except InvalidArguments:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments cannot be written as JSON: {error}") from None
    # The object that names the arguments is no part of them.
    if (problem := beyond_bounds(raw, deepest=MAX_DEPTH + 1)) is not None:
        raise InvalidArguments(f"the arguments cannot be stored: {problem}")
    return raw.decode()


def _stand_in_handler(task: str) -> Handler:
    """Return what stands for a task that is not known here: it asks for nothing."""

    def nothing() -> None: ...

    arguments = Arguments(nothing, task=task)
    return Handler(name=task, function=nothing, is_async=False, options=TaskOptions(), arguments=arguments)
