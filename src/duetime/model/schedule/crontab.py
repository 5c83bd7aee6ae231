"""Schedules as lines of a crontab: the time, the task in place of a command, and its arguments."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from duetime.errors import InvalidName, InvalidTrigger, InvalidValue
from duetime.model.schedule.files import ScheduleDocument, written_schedule
from duetime.model.schedule.record import StoredSchedule
from duetime.model.text import MAX_NAME, check_name, printable, shown
from duetime.model.triggers.cron import cron
from duetime.model.triggers.specs import trigger_from_text, trigger_to_text

_ZONES: Final = ("CRON_TZ", "TZ")
_NAMED: Final = re.compile(r"#\s*name:\s*(.*)")
_SETTING: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_ZONE_PREFIX: Final = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.+)")
_SIXTH: Final = re.compile(r"(?:[\d*?LWH#,/()-]|(?i:SUN|MON|TUE|WED|THU|FRI|SAT))+")
"""What the sixth word looks like when it is a field and not a task."""
_FIELDS: Final = 5
_HASH: Final = 8
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
    """Return the text of a crontab, how many schedules it has, and what a crontab cannot say.

    Nothing in a row makes a line of its own.
    """
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
        if unsaid := [
            key for key, value in entry.items() if key not in _SAID_BY_LINE and value != _PLAIN.get(key)
        ]:
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
        return None
    return f"no cron expression says all of this: {trigger_from_text(schedule.trigger).describe()}"


def read_crontab(text: str) -> ScheduleDocument:
    """Read a crontab line by line; a bad line is told, and the others are read all the same.

    A name is what `# name: ...` above the line says, else the task, and a hash of its arguments if there are any:
    the same command keeps its name when its time changes, or other lines do.
    """
    found: dict[str, Mapping[str, Any] | InvalidValue] = {}
    first: dict[str, int] = {}
    notes: list[str] = []
    zone, name = "UTC", None
    # As cron does: other characters that may end a line are a part of it, or a comment could hide a schedule.
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
                entry = _entry(line, zone=zone, name=name)
                own = entry["name"]
                if (before := first.setdefault(own, number)) != number:
                    raise InvalidTrigger(
                        f"line {before} is {own!r} already; write another name above this one: # name: {own}.2"
                    )
                found[str(number)] = entry
            except InvalidValue as error:
                found[str(number)] = error
            name = None
    return ScheduleDocument(found, notes)


def _entry(line: str, *, zone: str, name: str | None) -> Mapping[str, Any]:
    if prefixed := _ZONE_PREFIX.fullmatch(line):
        zone, line = prefixed.groups()
    words = line.split()
    count = _time_words(words)
    if len(words) <= count:
        raise InvalidTrigger(
            f'no task in "{line}"; write a time, a task and its arguments, e.g. "0 3 * * * shop.tidy days=7"'
        )
    *_, rest = line.split(maxsplit=count)
    task, _, arguments = rest.partition(" ")
    entry = {
        "name": _name(task, arguments.strip()) if name is None else name,
        "task": task,
        "cron": " ".join(words[:count]),
        "tz": zone,
    }
    return entry | {"arguments": _words_or_object(arguments.strip())}


def _time_words(words: list[str]) -> int:
    if words[0].startswith("@"):
        return 2 if words[0].lower() == "@every" else 1
    has_seconds = len(words) > _FIELDS + 1 and _SIXTH.fullmatch(words[_FIELDS])
    return _FIELDS + 1 if has_seconds else _FIELDS


def _words_or_object(text: str) -> Mapping[str, Any] | tuple[str, ...]:
    """Read a JSON object, which names parameters as an export does, or split what people write into words."""
    if text.startswith("["):
        return (text,)
    try:
        return json.loads(text) if text.startswith("{") else tuple(shlex.split(text))
    except (ValueError, RecursionError) as error:
        raise InvalidTrigger(f"the arguments {shown(text)} cannot be read: {error}") from None


def _name(task: str, arguments: str) -> str:
    if not arguments:
        return task
    digest = hashlib.sha256(arguments.encode()).hexdigest()[:_HASH]
    return f"{task[: MAX_NAME - _HASH - 1]}-{digest}"
