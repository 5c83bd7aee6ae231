"""Files of schedules as text: JSON, YAML, or a crontab."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec

from duetime.errors import InvalidOption, InvalidValue, MissingDriver
from duetime.model.bounds import MAX_DEPTH, is_deeper
from duetime.model.crontab import read_crontab, write_crontab
from duetime.model.portable import Text, written
from duetime.model.schedule import StoredSchedule
from duetime.model.shown import shown

Format: TypeAlias = Literal["json", "yaml", "crontab"]

VERSION = 1
MOST_SCHEDULES = 10_000
LONGEST = 10_000_000
"""How many characters a file may have."""
MOST_VALUES = 500_000
"""How many values a YAML file may have: its reader takes about a kilobyte for each."""
DEEPEST = MAX_DEPTH + 10
"""How deep values may be nested in a file: as deep as those of arguments, and what is around them."""

_TOO_DEEP = f"values are nested more than {DEEPEST} deep"
_FOREIGN = re.compile(r"[^\n -~]")
_MISSING = 'YAML needs a library: pip install "duetime[yaml]"'


class Found(NamedTuple):
    """One schedule of a file, or what is wrong with it."""

    place: str
    entry: Mapping[str, Any] | InvalidValue


class Document(NamedTuple):
    """What a file says."""

    found: list[Found]
    notes: list[str]


def check_format(value: str) -> Format:
    """Return the format, or raise `InvalidOption`."""
    if value not in get_args(Format):
        text = f"format must be one of {', '.join(get_args(Format))}, not {shown(value)}"
        raise InvalidOption(text)
    return cast("Format", value)


def write_document(schedules: Sequence[StoredSchedule], style: Format) -> Text:
    """Return a file of schedules, and what this kind of file cannot say."""
    if style == "crontab":
        return write_crontab(schedules)
    values = {"duetime": VERSION, "schedules": [written(schedule) for schedule in schedules]}
    if style == "json":
        text = json.dumps(values, indent=2, ensure_ascii=False)
        return Text(_FOREIGN.sub(_escaped, text) + "\n", len(schedules), [])
    try:
        return Text(msgspec.yaml.encode(values).decode().rstrip("\n") + "\n", len(schedules), [])
    except ImportError as error:
        raise MissingDriver(_MISSING) from error


def read_document(text: str, style: Format) -> Document:
    """Read a file as far as it can be read; raises `InvalidValue` when it is none of its kind at all."""
    if len(text) > LONGEST:
        raise InvalidOption(f"the file has more than {LONGEST:,} characters; split it")
    # Some editors begin a file with this mark, which is no part of what it says.
    text = text.removeprefix("\ufeff")
    if style == "crontab":
        crontab = read_crontab(text)
        return Document([Found(str(line.number), line.entry) for line in crontab.lines], crontab.notes)
    schedules = _schedules(_decoded(text, style))
    found: list[Found] = []
    seen: set[object] = set()
    for number, entry in enumerate(schedules, 1):
        if not isinstance(entry, Mapping):
            problem = InvalidOption(
                f"a schedule is an object with a name, a task and a trigger, not {shown(entry)}"
            )
            found.append(Found(f"schedule {number}", problem))
            continue
        said = cast("Mapping[str, Any]", entry)
        name = said.get("name")
        place = name if isinstance(name, str) else f"schedule {number}"
        twice = isinstance(name, str) and name in seen
        seen |= {place}
        found.append(Found(place, InvalidOption("there are two schedules of this name") if twice else said))
    return Document(found, [])


def _escaped(found: re.Match[str]) -> str:
    """Leave letters as they are, and escape what a terminal might obey."""
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def _decoded(text: str, style: Format) -> object:
    if style == "json" and is_deeper(text.encode(errors="replace"), DEEPEST):
        raise InvalidOption(_TOO_DEEP)
    try:
        if style == "json":
            return msgspec.json.decode(text)
        _check_yaml(text)
        return msgspec.yaml.decode(text)
    except ImportError as error:
        raise MissingDriver(_MISSING) from error
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
            if depth > DEEPEST:
                raise InvalidOption(f"line {line}: {_TOO_DEEP}")
            if values > MOST_VALUES:
                raise InvalidOption(
                    f"line {line}: there are more than {MOST_VALUES:,} values; split the file"
                )
    except yaml.YAMLError as error:
        raise InvalidOption(f"this is no YAML: {error}") from None


def _schedules(values: object) -> list[object]:
    said = cast("Mapping[str, Any]", values)
    if not isinstance(values, Mapping) or not isinstance(said.get("schedules"), list):
        text = f"a file of schedules is an object with a list of 'schedules', not {shown(said)}"
        raise InvalidOption(text)
    if (version := said.get("duetime", VERSION)) != VERSION:
        text = f"the file says 'duetime': {shown(version)}; this code reads {VERSION}"
        raise InvalidOption(text)
    entries: list[object] = said["schedules"]
    if len(entries) > MOST_SCHEDULES:
        text = f"the file has {len(entries):,} schedules; at most {MOST_SCHEDULES:,} are taken at once"
        raise InvalidOption(text)
    return entries
