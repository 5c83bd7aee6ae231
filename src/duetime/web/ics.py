"""A calendar as the text of an `.ics` file (RFC 5545)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from duetime.model.schedule.calendar import CalendarEntry, CalendarRecord
from duetime.model.text import printable

_MOST_OCTETS: Final = 75
_ESCAPED: Final = re.compile(r"([\\;,])")


def calendar_text(calendar: CalendarRecord) -> str:
    """Return the text; each line ends with CR and LF and is folded where it is too long."""
    return "".join(f"{part}\r\n" for line in _lines(calendar) for part in _folded(line))


def _lines(calendar: CalendarRecord) -> Iterator[str]:
    yield from ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//duetime//schedules//EN", "NAME:Duetime")
    for entry in calendar.entries:
        yield from _event(entry, calendar.start)
    yield "END:VCALENDAR"


def _event(entry: CalendarEntry, stamp: datetime) -> Iterator[str]:
    name = _escaped(entry.schedule)
    said = [f"task {entry.task}, queue {entry.queue}", *([entry.note] if entry.note else [])]
    yield from (
        "BEGIN:VEVENT",
        f"UID:{name}-{_time(entry.at)}@duetime",
        f"DTSTAMP:{_time(stamp)}",
        f"DTSTART:{_time(entry.at)}",
        # An event without an end would take the whole day in some programs.
        f"DTEND:{_time(entry.at + timedelta(minutes=1))}",
        f"SUMMARY:{name}",
        f"DESCRIPTION:{_escaped('; '.join(said))}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _escaped(text: str) -> str:
    return _ESCAPED.sub(r"\\\1", printable(text))


def _folded(line: str) -> Iterator[str]:
    """Yield a line in parts of at most 75 octets, without cutting a character; those that go on begin with a space."""
    part, size = "", 0
    for character in line:
        octets = len(character.encode())
        if size + octets > _MOST_OCTETS:
            yield part
            part, size = " ", 1
        part, size = part + character, size + octets
    yield part
