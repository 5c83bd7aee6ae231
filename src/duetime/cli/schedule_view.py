"""What `duetime schedules` shows of a schedule: as a row, as lines, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from duetime.cli.output import relative_time, shortened, table_lines
from duetime.model.stored import LiveWorkers
from duetime.model.time import LONGEST_DURATION, describe_duration
from duetime.model.triggers.preview import Upcoming
from duetime.scheduler.records import JobRecord, ScheduleRecord

_REASON_WIDTH = 40
_NAME_WIDTH = 16


def missing_workers(fleet: LiveWorkers) -> str | None:
    """Say that no worker fires schedules, or that none runs their jobs, and what to start."""
    if not fleet.fires:
        return "no living worker fires schedules; start `duetime worker` or `duetime scheduler`"
    return None if fleet.queues else "no living worker runs jobs; start `duetime worker`"


def schedule_row(schedule: ScheduleRecord, fleet: LiveWorkers, now: datetime) -> tuple[str, ...]:
    """Return the cells of a schedule in a list."""
    state = str(schedule.state)
    if schedule.paused and schedule.paused_reason:
        state += f": {shortened(schedule.paused_reason, _REASON_WIDTH)}"
    if fleet.knows(schedule.task) is False:
        state += ", unknown task"
    return schedule.name, state, _next_text(schedule, now), schedule.task, schedule.description


def schedule_lines(
    schedule: ScheduleRecord,
    fleet: LiveWorkers,
    last: Sequence[JobRecord],
    upcoming: Sequence[Upcoming],
    *,
    now: datetime,
) -> Iterator[str]:
    """Yield a schedule line by line, then its last records and its next times."""
    for name, text in _lines(schedule, fleet, now):
        yield f"{name:{_NAME_WIDTH}} {text}"
    if last:
        yield ""
        zone = ZoneInfo(schedule.trigger.tz)
        yield from table_lines(("LAST", "STATE", "ID", "NOTE"), (_record_row(job, zone) for job in last))
    if upcoming:
        yield ""
        yield from table_lines(("NEXT", "", "NOTE"), (upcoming_row(one, now) for one in upcoming))


def upcoming_row(one: Upcoming, now: datetime) -> tuple[str, ...]:
    """Return the cells of an occurrence to come."""
    due = None if one.due_at == one.at else f"due {one.due_at.astimezone(one.local.tzinfo):%H:%M:%S}"
    note = "; ".join(filter(None, (due, one.note)))
    return f"{one.local:%a} {one.local.isoformat(' ')}", relative_time(one.at, now), note


def upcoming_values(one: Upcoming) -> dict[str, str | None]:
    """Return an occurrence to come as JSON values."""
    moments = {"at": one.at, "local": one.local, "due_at": one.due_at}
    return {name: moment.isoformat() for name, moment in moments.items()} | {"note": one.note}


def record_values(job: JobRecord) -> dict[str, object]:
    """Return a job of a schedule as JSON values."""
    occurrence = None if job.occurrence is None else job.occurrence.isoformat()
    return {
        "id": job.id,
        "state": job.state,
        "occurrence": occurrence,
        "occurrences": job.occurrences,
        "reason": job.reason,
        "error": job.error,
    }


def schedule_values(schedule: ScheduleRecord, fleet: LiveWorkers) -> dict[str, object]:
    """Return a schedule as JSON values, lengths of time in seconds."""
    values = {field.name: _json_value(getattr(schedule, field.name)) for field in fields(schedule)}
    values["trigger"] = schedule.trigger.to_spec()
    values["task_known"] = fleet.knows(schedule.task)
    return values


def moment_text(moment: datetime, now: datetime) -> str:
    """Say when something is: in its own zone, and as seen from now."""
    return f"{moment.isoformat(' ', timespec='seconds')} ({relative_time(moment, now)})"


def _json_value(value: Any) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else msgspec.to_builtins(value, enc_hook=str)


def _lines(schedule: ScheduleRecord, fleet: LiveWorkers, now: datetime) -> Iterator[tuple[str, str]]:
    yield "name", schedule.name
    yield "task", schedule.task + _unknown_task_note(schedule, fleet)
    yield "arguments", msgspec.json.encode(schedule.arguments).decode()
    yield "when", schedule.description
    yield "state", _state_text(schedule, now)
    if schedule.state == "active":
        yield "next", _next_text(schedule, now)
        if (hint := missing_workers(fleet)) is not None:
            yield "", hint
    yield "owner", "code" if schedule.owner == "code" else "user: it was put, no code declares it"
    yield "made", f"{schedule.made} job(s) by itself; {schedule.live} pending or running"
    yield "queue", f"{schedule.queue}, priority {schedule.priority}"
    yield "overlap", _overlap_text(schedule)
    yield "misfire", _misfire_text(schedule)
    optional: tuple[tuple[str, object], ...] = (
        ("pause after", schedule.pause_after and f"{schedule.pause_after} failure(s) in a row"),
        ("retries", schedule.retries),
        ("timeout", None if schedule.timeout is None else _length_text(schedule.timeout)),
        ("tags", ", ".join(schedule.tags) or None),
    )
    yield from ((name, str(value)) for name, value in optional if value is not None)
    yield "created", moment_text(schedule.created_at, now)
    yield "changed", moment_text(schedule.updated_at, now)


def _unknown_task_note(schedule: ScheduleRecord, fleet: LiveWorkers) -> str:
    return ", which no living worker knows" if fleet.knows(schedule.task) is False else ""


def _state_text(schedule: ScheduleRecord, now: datetime) -> str:
    text = str(schedule.state)
    if schedule.parked_at is not None:
        text += f" {relative_time(schedule.parked_at, now)}: no code declares it any more"
    if schedule.paused_at is not None:
        paused = f"{relative_time(schedule.paused_at, now)} by {schedule.paused_by or 'someone'}"
        text = f"paused {paused}" if schedule.state == "paused" else f"{text}; paused {paused}"
        text += f": {schedule.paused_reason}" if schedule.paused_reason else ""
        if schedule.paused_until is not None:
            text += f"; {_pause_end_text(schedule, now)}"
    return text


def _next_text(schedule: ScheduleRecord, now: datetime) -> str:
    """Say when it runs next; of one that is paused, when the pause ends, if that is known."""
    if schedule.paused:
        return _pause_end_text(schedule, now)
    if schedule.searched_until is not None:
        return f"none found up to {moment_text(schedule.searched_until, now)}"
    return "" if schedule.next_at is None else moment_text(schedule.next_at, now)


def _pause_end_text(schedule: ScheduleRecord, now: datetime) -> str:
    if schedule.paused_until is None:
        return ""
    return f"until {moment_text(schedule.paused_until.astimezone(ZoneInfo(schedule.trigger.tz)), now)}"


def _overlap_text(schedule: ScheduleRecord) -> str:
    limit = schedule.overlap_limit
    return schedule.overlap if limit is None else f"{schedule.overlap}, at most {limit} waiting"


def _misfire_text(schedule: ScheduleRecord) -> str:
    endless = schedule.misfire_window >= timedelta(microseconds=LONGEST_DURATION)
    late = "however late" if endless else f"at most {_length_text(schedule.misfire_window)} late"
    most = f", at most {schedule.misfire_limit} of them" if schedule.misfire == "all" else ""
    return f"{schedule.misfire}, {late}{most}"


def _length_text(length: timedelta) -> str:
    return describe_duration(length // timedelta(microseconds=1))


def _record_row(job: JobRecord, zone: ZoneInfo) -> tuple[str, ...]:
    when = job.due_at if job.occurrence is None else job.occurrence
    note = job.error or job.reason or ""
    if job.occurrences > 1:
        note = f"{job.occurrences} occurrences: {note}"
    if job.occurrence is None:
        note = f"by hand{': ' if note else ''}{note}"
    local = when.astimezone(zone)
    return f"{local:%a} {local.isoformat(' ', timespec='seconds')}", job.state, job.id, shortened(note, 60)
