"""Schedules as entries of a file, written, read and imported, and as lines of a crontab."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final, NamedTuple, cast

from duetime.errors import InvalidName, InvalidOption, InvalidTime, InvalidTrigger, InvalidValue
from duetime.model.job import FOREVER, JobTerms, OnCrash, join_tags, split_tags
from duetime.model.schedule.actions import put
from duetime.model.schedule.occurrences import MOST_IN_A_SPAN
from duetime.model.schedule.options import ScheduleOptions, ScheduleOptionValues, schedule_options
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.secrets import MASK, check_secret, mask_arguments
from duetime.model.stored.audit import AuditEntry
from duetime.model.task import check_on_crash
from duetime.model.text import (
    MAX_DEPTH,
    MAX_NAME,
    TOO_DEEP,
    check_name,
    check_reason,
    check_text,
    check_whole,
    is_deeper,
    printable,
    short_list,
    shown,
)
from duetime.model.time import (
    LONGEST_DURATION,
    Instant,
    Micros,
    describe_duration,
    from_datetime,
    to_datetime,
)
from duetime.model.triggers.at import at
from duetime.model.triggers.base import Trigger, check_times
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from duetime.model.triggers.rrule import rrule
from duetime.model.triggers.specs import trigger_from_spec, trigger_from_text, trigger_to_text

_KINDS = ("cron", "every", "at", "rrule", "trigger")
TRIGGER_KEYS: Final = frozenset({*_KINDS, "tz", "start", "end", "times", "jitter"})

_GOES_WITH = {"cron": {"tz", "start"}, "every": {"tz", "start"}, "rrule": {"tz", "start"}}
_STEPS = re.compile(r"(?:(\d{1,4}) ?(?:years?|y))? ?(?:(\d{1,4}) ?(?:months?|mo))?")
_YEAR = 12
_EXAMPLE = "2030-01-31T09:00:00+01:00"


def written_trigger(trigger: Trigger, *, name: str) -> dict[str, Any]:
    """Return a trigger in words where there are some that say the same, else its spec under `trigger`."""
    spec = trigger.to_spec()
    words = _words(spec)
    try:
        same = read_trigger(words, name=name) == trigger.seeded(name)
    except InvalidValue:
        same = False
    return words if same and "trigger" not in words else {"trigger": spec}


def read_trigger(entry: Mapping[str, Any], *, name: str) -> Trigger:
    """Return the trigger of an entry; raises `InvalidTrigger`, with a caret under the bad part if possible."""
    given = [kind for kind in _KINDS if entry.get(kind) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise InvalidTrigger(f"a schedule has one of {', '.join(_KINDS)}; this has {found}")
    (kind,) = given
    for key in ("tz", "start"):
        if entry.get(key) is not None and key not in _GOES_WITH.get(kind, ()):
            raise InvalidTrigger(f"{key} does not go with {kind}")
    value, tz, times, jitter = (entry.get(key) for key in (kind, "tz", "times", "jitter"))
    start, end = (
        None if (moment := entry.get(key)) is None else to_datetime(read_moment(moment, what=key))
        for key in ("start", "end")
    )
    if kind == "every":
        trigger = _every(value, start=start, end=end, times=times, tz=tz)
    else:
        trigger = _read(kind, value, tz=tz, start=start)
        # A recurrence rule has its start already: it counts from there.
        start = None if kind == "rrule" else start
        if start is not None or end is not None:
            trigger = trigger.between(start, end)
        if times is not None:
            check_times(times, what="times")
            trigger = trigger.at_most(times)
    return (trigger if jitter is None else trigger.jitter(jitter)).seeded(name)


def read_moment(value: object, *, what: str) -> Instant:
    """Read a moment, as text in ISO 8601 or as what YAML makes of it; raises `InvalidTime`."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        said = value.isoformat() if isinstance(value, date) else shown(value)
        raise InvalidTime(f"{what} {said} is not a moment; write {_EXAMPLE}")
    if moment.utcoffset() is None:
        raise InvalidTime(f"{what} {moment.isoformat()} has no time zone; write {_EXAMPLE}")
    return from_datetime(moment, what=what)


def _words(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words for a spec, from the inside out; read together, they may mean something else."""
    inner: dict[str, Any] = _words(spec["trigger"]) if "trigger" in spec else {}
    bounds = {key: _iso(spec[key]) for key in ("start", "end") if key in spec}
    own: dict[str, Any]
    match spec["type"]:
        case "cron":
            own = {"cron": spec["expression"]} | ({} if spec["tz"] == "UTC" else {"tz": spec["tz"]})
        case "every":
            own = {"every": describe_duration(spec["interval"])}
        case "steps":
            months = spec["months"]
            own = {"every": f"{months} month{'s' * (months > 1)}", "tz": spec["tz"]}
        case "rrule":
            own = {"rrule": spec["rule"], "tz": spec["tz"]}
        case "at":
            own = {"at": [_iso(instant) for instant in spec["instants"]]}
        case "between":
            own = {}
        case "at_most":
            own = {"times": spec["most"]}
        case "jitter":
            own = {"jitter": describe_duration(spec["most"])}
        case _:
            return {"trigger": spec}
    return inner | own | bounds | ({"times": spec["times"]} if "times" in spec else {})


def _read(kind: str, value: Any, *, tz: Any, start: datetime | None) -> Trigger:
    match kind:
        case "cron":
            return cron(value, tz=tz or "UTC")
        case "rrule":
            if start is None:
                raise InvalidTrigger("rrule needs a start, from which it counts")
            return rrule(value, start=start, tz=tz)
        case "at":
            moments = cast("list[object]", value) if isinstance(value, list) else [value]
            return at([to_datetime(read_moment(moment, what="at")) for moment in moments])
        case _:
            return trigger_from_spec(value)


def _every(value: Any, *, start: datetime | None, end: datetime | None, times: Any, tz: Any) -> Trigger:
    """Return equal intervals, or steps on the calendar for months and years."""
    steps = _STEPS.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
    if steps is not None:
        months = int(steps[1] or 0) * _YEAR + int(steps[2] or 0)
        return every(months=months, start=start, end=end, times=times, tz=tz)
    if tz is not None:
        raise InvalidTrigger("tz goes with every where it counts months or years, e.g. every: 1 month")
    return every(value, start=start, end=end, times=times)


def _iso(instant: Instant) -> str:
    return to_datetime(instant).isoformat()


_FOREVER = "forever"
_TTLS = ("result_ttl", "failure_ttl")
_CALLBACKS = {"success", "failure", "cancel"}
_OPTIONS = ScheduleOptionValues.__optional_keys__ - {"on_success", "on_failure", "on_cancel"}
_OWN_KEYS = {"name", "task", "arguments", "on_crash", "callbacks", "gate", "paused", "made", "secret"}
_KEYS = _OWN_KEYS | TRIGGER_KEYS | _OPTIONS


class ScheduleDocument(NamedTuple):
    """What a file of schedules says."""

    found: Mapping[str, Mapping[str, Any] | InvalidValue]
    """By its place in the file: each schedule, or what is wrong with it."""
    notes: list[str]
    """What else the file says, and what is done with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPause:
    """A pause that moves with its schedule."""

    reason: str | None = None
    by: str | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSchedule:
    """A schedule as a file asks for it."""

    name: str
    task: str
    arguments: Mapping[str, Any] | tuple[str, ...]
    """By parameter name, as JSON values; or words as people write them, to be read by the task's signature."""
    trigger: Trigger
    options: ScheduleOptions
    on_crash: OnCrash | None = None
    gate: str | None = None
    """The limit that its jobs run under, as the task's own code had it."""
    pause: WrittenPause | None = None
    made: int = 0


def written_schedule(schedule: StoredSchedule) -> dict[str, Any]:
    """Return a schedule as JSON values for `read_schedule`, without those that leave the choice to the task."""
    terms = JobTerms.from_text(schedule.terms)
    trigger = trigger_from_text(schedule.trigger)
    # With `all` there is no window unless it is said.
    endless = schedule.misfire == "all" and schedule.misfire_window == LONGEST_DURATION
    entry: dict[str, Any] = {
        "name": schedule.name,
        **written_trigger(trigger, name=schedule.name),
        "task": schedule.task,
        "arguments": mask_arguments(json.loads(schedule.payload), terms.secret),
        "secret": list(split_tags(terms.secret)) or None,
        "queue": schedule.queue,
        "priority": schedule.priority,
        "on_crash": schedule.on_crash,
        "retries": schedule.retries,
        "timeout": _length(schedule.timeout),
        "overlap": schedule.overlap,
        "overlap_limit": schedule.overlap_limit,
        "misfire": schedule.misfire,
        "misfire_window": None if endless else _length(schedule.misfire_window),
        "misfire_limit": schedule.misfire_limit if schedule.misfire == "all" else None,
        "pause_after": schedule.pause_after,
        "tags": list(terms.tags) or None,
        "headers": None if terms.headers is None else json.loads(terms.headers),
        "expires": _length(terms.expires),
        "result_ttl": _length(terms.result_ttl),
        "failure_ttl": _length(terms.failure_ttl),
        "callbacks": None if terms.callbacks is None else json.loads(terms.callbacks),
        "gate": terms.gate,
        "paused": _written_pause(schedule),
        "made": (schedule.made or None) if trigger.times is not None else None,
    }
    return {key: value for key, value in entry.items() if value is not None and value != {}}


def read_schedule(entry: Mapping[str, Any]) -> WantedSchedule:
    """Check what a file has for one schedule; raises one of the errors for invalid values."""
    if unknown := sorted(set(entry) - _KEYS):
        raise InvalidOption(f"unknown key {unknown[0]!r}; a schedule has {', '.join(sorted(_KEYS))}")
    if missing := [key for key in ("name", "task") if key not in entry]:
        raise InvalidOption(f"{missing[0]} is missing")
    name = check_name(entry["name"], what="schedule name")
    on_crash, gate = entry.get("on_crash"), entry.get("gate")
    return WantedSchedule(
        name=name,
        task=check_name(entry["task"], what="task"),
        arguments=_read_arguments(entry.get("arguments", {})),
        trigger=read_trigger(entry, name=name),
        options=_options(entry),
        on_crash=None if on_crash is None else check_on_crash(on_crash),
        gate=None if gate is None else check_text(gate, what="gate"),
        pause=_read_pause(entry["paused"]) if entry.get("paused") is not None else None,
        made=check_whole(entry.get("made", 0), 0, MOST_IN_A_SPAN, what="made"),
    )


def _read_arguments(value: object) -> Mapping[str, Any] | tuple[str, ...]:
    if isinstance(value, tuple):
        return cast("tuple[str, ...]", value)
    if not isinstance(value, Mapping):
        raise InvalidOption(f"arguments must be an object by parameter name, not {shown(value)}")
    given = cast("Mapping[str, Any]", value)
    if masked := [key for key, one in given.items() if one == MASK]:
        raise InvalidOption(f"the argument {masked[0]!r} is masked; write its value in place of {MASK}")
    return given


def _written_pause(schedule: StoredSchedule) -> object:
    if schedule.paused_at is None:
        return None
    until = None if schedule.paused_until is None else _iso(schedule.paused_until)
    pause = {"reason": schedule.paused_reason, "by": schedule.paused_by, "until": until}
    return {key: value for key, value in pause.items() if value is not None} or True


def _read_pause(value: object) -> WrittenPause | None:
    if value in (True, False):
        return WrittenPause() if value else None
    given = _object(value, {"reason", "by", "until"}, what="paused")
    reason, by, until = given.get("reason"), given.get("by"), given.get("until")
    return WrittenPause(
        reason=None if reason is None else check_reason(reason),
        by=None if by is None else check_text(by, what="paused.by"),
        until=None if until is None else read_moment(until, what="paused.until"),
    )


def _options(entry: Mapping[str, Any]) -> ScheduleOptions:
    values = {key: entry[key] for key in sorted(_OPTIONS & entry.keys())}
    if not isinstance(values.get("tags", []), list):
        raise InvalidOption(f"tags must be a list, not {shown(values['tags'])}")
    for key in _TTLS:
        if values.get(key) == _FOREVER:
            values[key] = None
    options = schedule_options(cast("ScheduleOptionValues", values))
    if secret := join_tags(check_secret(entry.get("secret", ()))):
        terms = replace(options.job.terms, secret=secret)
        options = replace(options, job=replace(options.job, terms=terms))
    if entry.get("callbacks") is None:
        return options
    callbacks = _object(entry["callbacks"], _CALLBACKS, what="callbacks")
    try:
        text = json.dumps(callbacks, sort_keys=True)
    except RecursionError:
        text = ""
    if not text or is_deeper(text.encode(), MAX_DEPTH):
        raise InvalidOption(f"callbacks cannot be stored: {TOO_DEEP}")
    terms = replace(options.job.terms, callbacks=text)
    return replace(options, job=replace(options.job, terms=terms))


def _object(value: object, keys: set[str], *, what: str) -> Mapping[str, Any]:
    said = cast("Mapping[str, Any]", value)
    if not isinstance(value, Mapping) or set(said) - keys:
        raise InvalidOption(f"{what} must be an object with {', '.join(sorted(keys))}, not {shown(said)}")
    return said


def _length(micros: Micros | None) -> str | None:
    return None if micros is None else _FOREVER if micros == FOREVER else describe_duration(micros)


def import_schedule(
    before: StoredSchedule | None,
    new: StoredSchedule,
    trigger: Trigger,
    *,
    pause: WrittenPause | None,
    who: str,
    now: Instant,
) -> ScheduleUpdate | None:
    """Return what to write so that a schedule is as the file has it; `None` when it is so already.

    What is paused stays paused even if it runs where the file comes from, and counts of jobs made are taken over by
    schedules that are new here.
    """
    change = put(before, new, trigger, who=who, now=now)
    if change is not None and change.entry is not None:
        change = replace(change, entry=replace(change.entry, verb="import"))
    after = new if before is None else before if change is None else change.after
    if pause is None:
        return change
    since = after.paused_at or now
    paused = replace(
        after, paused_at=since, paused_reason=pause.reason, paused_by=pause.by, paused_until=pause.until
    )
    if change is not None:
        return replace(change, after=paused)
    if paused == before:
        return None
    detail = {"reason": pause.reason, "until": pause.until}
    entry = AuditEntry(verb="import", target=new.name, who=who, detail=detail)
    return ScheduleUpdate(before=before, after=paused, entry=entry, withdraw="schedule paused")


_ZONES: Final = ("CRON_TZ", "TZ")
_NAMED: Final = re.compile(r"#\s*name:\s*(.*)")
_SETTING: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_ZONE_PREFIX: Final = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.+)")
_SIXTH: Final = re.compile(r"(?:[\d*?LWH#,/()-]|(?i:SUN|MON|TUE|WED|THU|FRI|SAT))+")
"""What the sixth word looks like if it is a field and not a task."""
_YEARS: Final = re.compile(r"\*(?:/\d+)?|\d{4}(?:[-,/]\d+)*")
_FIELDS: Final = 5
_ARGUMENT: Final = re.compile(r"\w+=|[\[{]")
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}\$?")
_DIGEST_LENGTH: Final = 8
_HEAD: Final = "# Schedules of Duetime. After the time comes the task, then its arguments."
_BOUNDS: Final = frozenset({"start", "end", "times", "jitter"})
_SAID_BY_LINE: Final = frozenset({"name", "cron", "tz", "task", "arguments", "made"})
_PLAIN: Final = written_schedule(
    StoredSchedule(
        name="plain",
        task="plain",
        payload="{}",
        trigger=trigger_to_text(cron("@daily")),
        declared="",
        fired_through=0,
        next_at=None,
    )
)
"""A schedule of which a line says everything."""


def write_crontab(schedules: Iterable[StoredSchedule]) -> tuple[str, int, list[str]]:
    """Return a crontab, how many schedules it has, and what it cannot say; nothing in a row makes a line of its own."""
    lines, notes, zone, count = [_HEAD], list[str](), "UTC", 0
    for schedule in schedules:
        entry = written_schedule(schedule)
        # Cron reads a percent sign as the end of the line.
        arguments = json.dumps(entry["arguments"]).replace("%", r"\u0025") if "arguments" in entry else ""
        command = f"{entry['task']} {arguments}".rstrip()
        lines += ["", f"# name: {schedule.name}"]
        if (problem := _unsayable(schedule, entry)) is not None:
            lines.append(f"# {problem}: {command}")
            notes.append(f"{schedule.name}: {problem}; it is only a comment")
            continue
        if (wanted := entry.get("tz", "UTC")) != zone:
            lines.append(f"CRON_TZ={wanted}")
            zone = wanted
        if schedule.paused_at is not None:
            lines.append(f"# paused: {entry['cron']} {command}")
            notes.append(f"{schedule.name} is paused; it is only a comment")
            continue
        lines.append(f"{entry['cron']} {command}")
        count += 1
        if unsaid := [key for key in entry if key not in _SAID_BY_LINE and entry[key] != _PLAIN.get(key)]:
            notes.append(f"{schedule.name}: a crontab says nothing of its {', '.join(unsaid)}")
    return "\n".join(map(printable, lines)) + "\n", count, notes


def _unsayable(schedule: StoredSchedule, entry: Mapping[str, Any]) -> str | None:
    """Say why a schedule cannot be a line: by its rule, or by names that were edited by hand; `None` if it can."""
    try:
        check_name(schedule.name, what="schedule name")
        check_name(schedule.task, what="task")
    except InvalidName as error:
        return str(error)
    if "cron" in entry and not _BOUNDS & entry.keys():
        words = entry["cron"].split()
        count = _time_words([*words, schedule.task])
        # The weekday of six fields may be spelled out, and so may a task.
        return (
            None if count == len(words) else f"a crontab takes {words[count]} of {entry['cron']} for the task"
        )
    return f"no cron expression says all of this: {trigger_from_text(schedule.trigger).describe()}"


def read_crontab(text: str, *, has_users: bool = False) -> ScheduleDocument:
    """Read a crontab line by line; a bad line is reported, and the others are read.

    That of a system has a user before each command; no one else runs jobs than their worker, and the notes say so.
    A name is what `# name: ...` above the line says, else the task, and a hash of its arguments if there are any:
    the same command keeps its name when its time changes, or other lines do.
    """
    found: dict[str, Mapping[str, Any] | InvalidValue] = {}
    first: dict[str, int] = {}
    notes: list[str] = []
    users: set[str] = set()
    zone, name = "UTC", None
    # As in cron, only this character ends a line; otherwise a comment could hide a schedule.
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = raw.strip()
        named = _NAMED.fullmatch(line)
        if name is not None and (named or not line):
            notes.append(f"no schedule stands below the name {name!r}")
        if named or not line:
            name = named and named[1]
        elif line.startswith("#"):
            continue
        elif (setting := _SETTING.fullmatch(line)) and not _ZONE_PREFIX.fullmatch(line):
            if setting[1] in _ZONES:
                zone = setting[2].strip("\"'") or "UTC"
            else:
                notes.append(f"line {number}: {setting[1]} means nothing here and is left out")
        else:
            try:
                entry = _line_entry(line, zone=zone, name=name, users=users if has_users else None)
                own = entry["name"]
                if (before := first.setdefault(own, number)) != number:
                    raise InvalidTrigger(f"line {before} is {own!r} already; name this one: # name: {own}.2")
                found[str(number)] = entry
            except InvalidValue as error:
                found[str(number)] = error
            name = None
    if users:
        notes.append(
            f"the users mean nothing here, since jobs run as their worker: {short_list(sorted(users))}"
        )
    return ScheduleDocument(found, notes)


def _line_entry(line: str, *, zone: str, name: str | None, users: set[str] | None) -> Mapping[str, Any]:
    """Read a line; where it has a user, that is added to `users`."""
    if prefixed := _ZONE_PREFIX.fullmatch(line):
        zone, line = prefixed.groups()
    words = line.split()
    count = _time_words(words)
    command = line.split(maxsplit=count)[count:]
    if users is not None and command:
        user, *command = command[0].split(maxsplit=1)
        if not command or not _USER.fullmatch(user) or _ARGUMENT.match(command[0]):
            text = f'expected a user and a task after the time in "{line}"'
            raise InvalidTrigger(f"{text}; a crontab without users has the format crontab")
        users.add(user)
    if not command:
        raise InvalidTrigger(f'no task in "{line}"; write for example "0 3 * * * shop.tidy days=7"')
    task, *rest = command[0].split(maxsplit=1)
    own = _command_name(task, "".join(rest)) if name is None else name
    arguments = _words_or_object("".join(rest))
    if isinstance(arguments, tuple) and arguments and not _ARGUMENT.match(arguments[0]):
        text = f"after the task come name=value pairs or JSON, not {shown(arguments[0])}"
        raise InvalidTrigger(f"{text}; if {task!r} is a user, the format is system-crontab")
    return {"name": own, "task": task, "cron": " ".join(words[:count]), "tz": zone, "arguments": arguments}


def _time_words(words: list[str]) -> int:
    if words[0].startswith("@"):
        return 2 if words[0].lower() == "@every" else 1
    has_seconds = len(words) > _FIELDS + 1 and _SIXTH.fullmatch(words[_FIELDS])
    has_years = has_seconds and len(words) > _FIELDS + 2 and _YEARS.fullmatch(words[_FIELDS + 1])
    return _FIELDS + bool(has_seconds) + bool(has_years)


def _words_or_object(text: str) -> Mapping[str, Any] | tuple[str, ...]:
    """Read a JSON object, which names parameters as an export does, or split what people write into words."""
    if text.startswith("["):
        return (text,)
    try:
        return json.loads(text) if text.startswith("{") else tuple(shlex.split(text))
    except (ValueError, RecursionError) as error:
        raise InvalidTrigger(f"the arguments {shown(text)} cannot be read: {error}") from None


def _command_name(task: str, arguments: str) -> str:
    if not arguments:
        return task
    digest = hashlib.sha256(arguments.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{task[: MAX_NAME - _DIGEST_LENGTH - 1]}-{digest}"
