from __future__ import annotations

from datetime import UTC, datetime, timedelta

from duetime.model.schedule.calendar import CalendarEntry, CalendarRecord
from duetime.web.ics import calendar_text

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


def text_of(schedule: str, note: str | None = None) -> str:
    entry = CalendarEntry(schedule=schedule, task="mail.send", queue="mail", at=NOON, local=NOON, note=note)
    return calendar_text(CalendarRecord(start=NOON, end=NOON + timedelta(days=1), entries=(entry,), cut=()))


def test_an_occurrence_is_an_event() -> None:
    lines = text_of("nightly").split("\r\n")
    assert lines[0] == "BEGIN:VCALENDAR"
    assert lines[-2:] == ["END:VCALENDAR", ""]
    assert "DTSTART:20300131T120000Z" in lines
    assert "SUMMARY:nightly" in lines
    assert "UID:nightly-20300131T120000Z@duetime" in lines
    assert "DESCRIPTION:task mail.send\\, queue mail" in lines


def test_what_would_end_a_line_or_a_value_is_escaped() -> None:
    text = text_of("nightly", note="a;b,c\\d\r\nBEGIN:VEVENT\x07")
    assert text.count("BEGIN:VEVENT\r\n") == 1
    assert "\x07" not in text
    unfolded = text.replace("\r\n ", "")
    assert "a\\;b\\,c\\\\d\\\\r\\\\nBEGIN:VEVENT" in unfolded


def test_long_lines_are_folded_between_characters() -> None:
    text = text_of("nightly", note="ü😀" * 60)
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert "ü😀" * 60 in text.replace("\r\n ", "")
