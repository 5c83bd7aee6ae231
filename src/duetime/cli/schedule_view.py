"""What `duetime schedules` shows of a schedule: as a row, as lines, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from duetime.cli.text import relative, say, say_table, shortened
from duetime.model import durations
from duetime.model.fleet import Fleet
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.records import JobRecord
from duetime.scheduler.schedule_records import ScheduleRecord

_REASON_WIDTH = 40
_NAME_WIDTH = 16


def lack(fleet: Fleet) -> str | None:
    """Say that nobody fires schedules, or that nobody runs their jobs, and what to start."""
    if not fleet.fires:
        return "no living worker fires schedules; start `duetime worker` or `duetime scheduler`"
    return None if fleet.queues else "no living worker runs jobs; start `duetime worker`"


def schedule_row(schedule: ScheduleRecord, fleet: Fleet, now: datetime) -> tuple[str, ...]:
    """Return the cells of a schedule in a list."""
    state = str(schedule.state)
    if schedule.paused and schedule.paused_reason:
        state += f": {shortened(schedule.paused_reason, _REASON_WIDTH)}"
    if fleet.knows(schedule.task) is False:
        state += ", unknown task"
    return schedule.name, state, _coming(schedule, now), schedule.task, schedule.description


def say_schedule(
    schedule: ScheduleRecord,
    fleet: Fleet,
    last: Sequence[JobRecord],
    upcoming: Sequence[Upcoming],
    *,
    now: datetime,
) -> None:
    """Print a schedule line by line, then its last records and its next times."""
    for name, text in _lines(schedule, fleet, now):
        say(f"{name:{_NAME_WIDTH}} {text}")
    if last:
        say("")
        zone = ZoneInfo(schedule.trigger.tz)
        say_table(("LAST", "STATE", "ID", "NOTE"), (_record_row(job, zone) for job in last))
    if upcoming:
        say("")
        say_table(("NEXT", "", "NOTE"), (upcoming_row(one, now) for one in upcoming))


def upcoming_row(one: Upcoming, now: datetime) -> tuple[str, ...]:
    """Return the cells of an occurrence to come."""
    due = None if one.due_at == one.at else f"due {one.due_at.astimezone(one.local.tzinfo):%H:%M:%S}"
    note = "; ".join(filter(None, (due, one.note)))
    return f"{one.local:%a} {one.local.isoformat(' ')}", relative(one.at, now), note


def upcoming_values(one: Upcoming) -> dict[str, str | None]:
    """Return an occurrence to come as JSON values."""
    moments = {"at": one.at, "local": one.local, "due_at": one.due_at}
    return {name: moment.isoformat() for name, moment in moments.items()} | {"note": one.note}


def schedule_values(schedule: ScheduleRecord, fleet: Fleet) -> dict[str, object]:
    """Return a schedule as JSON values, lengths of time in seconds."""
    values = {field.name: _value(getattr(schedule, field.name)) for field in fields(schedule)}
    values["trigger"] = schedule.trigger.to_spec()
    values["task_known"] = fleet.knows(schedule.task)
    return values


def told(moment: datetime, now: datetime) -> str:
    """Say when something is: in its own zone, and as seen from now."""
    return f"{moment.isoformat(' ', timespec='seconds')} ({relative(moment, now)})"


def _value(value: Any) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else msgspec.to_builtins(value, enc_hook=str)


def _lines(schedule: ScheduleRecord, fleet: Fleet, now: datetime) -> Iterator[tuple[str, str]]:
    yield "name", schedule.name
    yield "task", schedule.task + _unknown(schedule, fleet)
    yield "arguments", msgspec.json.encode(schedule.arguments).decode()
    yield "when", schedule.description
    yield "state", _state(schedule, now)
    if schedule.state == "active":
        yield "next", _coming(schedule, now)
        if (hint := lack(fleet)) is not None:
            yield "", hint
    yield "owner", "code" if schedule.owner == "code" else "user: it was put, no code declares it"
    yield "made", f"{schedule.made} job(s) by itself; {schedule.live} pending or running"
    yield "queue", f"{schedule.queue}, priority {schedule.priority}"
    yield "overlap", _overlap(schedule)
    yield "misfire", _misfire(schedule)
    optional: tuple[tuple[str, object], ...] = (
        ("pause after", schedule.pause_after and f"{schedule.pause_after} failure(s) in a row"),
        ("retries", schedule.retries),
        ("timeout", None if schedule.timeout is None else _length(schedule.timeout)),
        ("tags", ", ".join(schedule.tags) or None),
    )
    yield from ((name, str(value)) for name, value in optional if value is not None)
    yield "created", told(schedule.created_at, now)
    yield "changed", told(schedule.updated_at, now)


def _unknown(schedule: ScheduleRecord, fleet: Fleet) -> str:
    return ", which no living worker knows" if fleet.knows(schedule.task) is False else ""


def _state(schedule: ScheduleRecord, now: datetime) -> str:
    text = str(schedule.state)
    if schedule.parked_at is not None:
        text += f" {relative(schedule.parked_at, now)}: no code declares it any more"
    if schedule.paused_at is not None:
        paused = f"{relative(schedule.paused_at, now)} by {schedule.paused_by or 'somebody'}"
        text = f"paused {paused}" if schedule.state == "paused" else f"{text}; paused {paused}"
        text += f": {schedule.paused_reason}" if schedule.paused_reason else ""
        if schedule.paused_until is not None:
            text += f"; {_pause_end(schedule, now)}"
    return text


def _coming(schedule: ScheduleRecord, now: datetime) -> str:
    """Say when it runs next; of one that is paused, when the pause ends, if that is known."""
    if schedule.paused:
        return _pause_end(schedule, now)
    if schedule.searched_until is not None:
        return f"none found up to {told(schedule.searched_until, now)}"
    return "" if schedule.next_at is None else told(schedule.next_at, now)


def _pause_end(schedule: ScheduleRecord, now: datetime) -> str:
    if schedule.paused_until is None:
        return ""
    return f"until {told(schedule.paused_until.astimezone(ZoneInfo(schedule.trigger.tz)), now)}"


def _overlap(schedule: ScheduleRecord) -> str:
    limit = schedule.overlap_limit
    return schedule.overlap if limit is None else f"{schedule.overlap}, at most {limit} waiting"


def _misfire(schedule: ScheduleRecord) -> str:
    endless = schedule.misfire_window >= timedelta(microseconds=durations.LONGEST)
    late = "however late" if endless else f"at most {_length(schedule.misfire_window)} late"
    most = f", at most {schedule.misfire_limit} of them" if schedule.misfire == "all" else ""
    return f"{schedule.misfire}, {late}{most}"


def _length(length: timedelta) -> str:
    return durations.describe(length // timedelta(microseconds=1))


def _record_row(job: JobRecord, zone: ZoneInfo) -> tuple[str, ...]:
    when = job.due_at if job.occurrence is None else job.occurrence
    note = job.error or job.reason or ""
    if job.occurrences > 1:
        note = f"{job.occurrences} occurrences: {note}"
    if job.occurrence is None:
        note = f"by hand{': ' if note else ''}{note}"
    local = when.astimezone(zone)
    return f"{local:%a} {local.isoformat(' ', timespec='seconds')}", job.state, job.id, shortened(note, 60)
