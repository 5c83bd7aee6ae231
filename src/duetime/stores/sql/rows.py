"""Values to rows and rows to values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from duetime.model.audit import AuditEntry, StoredEntry
from duetime.model.command import Command, NewCommand
from duetime.model.instants import Instant
from duetime.model.job import Claim, NewJob, StoredAttempt, StoredJob
from duetime.model.outcome import Settlement
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.retention import as_of
from duetime.model.schedule import Change, StoredSchedule
from duetime.model.states import State
from duetime.model.terms import join_tags
from duetime.model.texts import clean_text
from duetime.model.worker import StoredWorker, WorkerStats
from duetime.stores.sql.driver import Row, Statement

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[Sequence[Any]]).decode
_decode_claims = msgspec.json.Decoder(list[Claim]).decode
_decode_starts = msgspec.json.Decoder(list[int]).decode
_NUL = b"\\u0000"
_DIGITS = 6

_new_job = attrgetter(
    "id", "task", "payload", "due_at", "delay", "queue", "priority", "on_crash", "retries", "timeout",
    "schedule", "occurrence", "state", "reason", "span_first", "span_count",
)  # fmt: skip
_COMMON = NewJob._fields.index("delay")
_SPECIAL = NewJob._fields.index("schedule")
_KIND = ("task", *NewJob._fields[_COMMON:_SPECIAL])
_PLAIN = NewJob._fields[:_SPECIAL]
_NOTHING_SPECIAL = tuple(NewJob._field_defaults[name] for name in NewJob._fields[_SPECIAL:])
_terms = attrgetter("callbacks", "expires", "result_ttl", "failure_ttl", "gate")
_schedule = attrgetter(
    "name", "task", "payload", "trigger", "declared", "owner", "queue", "priority", "on_crash", "retries", "timeout",
    "terms", "overlap", "overlap_limit", "misfire", "misfire_window", "misfire_limit", "pause_after", "paused_at",
    "paused_reason", "paused_by", "paused_until", "parked_at", "fired_through", "next_at", "made", "streak_from",
)  # fmt: skip
_facts = attrgetter("state", "started_at", "finished_at", "due_at", "failures", "crashes", "blames", "worker")
_texts = attrgetter("result", "result_error", "error", "traceback", "reason")
_success = attrgetter("token", "started_at", "finished_at", "result", "result_error")


class Alike(NamedTuple):
    """Jobs that differ in nothing but id, arguments and due time."""

    values: dict[str, object]
    """For `enqueue_alike`, or if they are dated, for `enqueue_dated`."""
    dated: bool
    """Whether each has a due time of its own."""


def batch(rows: Iterable[Sequence[object]]) -> str:
    """Encode rows as the one JSON parameter that `{each ...}` reads."""
    listed = list(rows)
    return _storable(listed, lambda: [[_clean(value) for value in row] for row in listed])


def _storable(values: object, cleaned: Callable[[], object]) -> str:
    """Encode values, or the cleaned ones where a database could not keep them."""
    try:
        data = _encode(values)
    except UnicodeEncodeError:
        data = _encode(cleaned())
    else:
        if _NUL in data:
            data = _encode(cleaned())
    return data.decode()


def batch_for(statement: Statement, rows: Iterable[Sequence[object]]) -> str | list[Sequence[object]]:
    """Give rows the form that the statement takes: plain, for one that takes them one by one, or JSON."""
    return list(rows) if statement.columns else batch(rows)


def unpack_claims(packed: str) -> list[Claim]:
    """Return the claims that came packed in one text, as JSON, each as long as what it asks for."""
    try:
        return _decode_claims(packed)
    except msgspec.ValidationError:
        # A row that somebody has edited by hand is handed out as it is, to fail alone.
        return [Claim(*row) for row in _decode_rows(packed)]


def _clean(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


def one_job(job: NewJob) -> dict[str, object] | None:
    """Return a job for `enqueue_one`; None if it asks for something special."""
    if job[_SPECIAL:] != _NOTHING_SPECIAL:
        return None
    values: dict[str, object] = dict(zip(_PLAIN, job, strict=False))
    values["payload"] = clean_text(job.payload)
    return values


def alike_jobs(jobs: Sequence[NewJob], *, paired: bool = True) -> Alike | None:
    """Return jobs of one kind that ask for nothing special; None if that is not what they are.

    `paired`: arguments by id are wanted where they say it all.
    """
    if jobs[0][_SPECIAL:] != _NOTHING_SPECIAL:
        return None
    ids, tasks, payloads, due, *common = zip(*jobs, strict=True)
    if not all(map(_is_one, (tasks, *common))):
        return None
    kind = dict(zip(_KIND, (tasks[0], *jobs[0][_COMMON:_SPECIAL]), strict=True))
    pairs = dict(zip(ids, payloads, strict=True))
    if not paired or not _is_one(due) or len(pairs) < len(jobs):
        return Alike({**kind, "rows": batch(zip(ids, payloads, due, strict=True))}, dated=True)
    rows = _storable(pairs, lambda: {job_id: clean_text(payload) for job_id, payload in pairs.items()})
    return Alike({**kind, "due_at": due[0], "rows": rows}, dated=False)


def _is_one(column: Sequence[object]) -> bool:
    """Whether all values of a column are the same."""
    return column.count(column[0]) == len(column)


def new_jobs(jobs: Iterable[NewJob]) -> str:
    """Encode jobs for `enqueue`."""
    return batch(map(_new_job, jobs))


def rich_jobs(jobs: Iterable[NewJob]) -> str:
    """Encode jobs for `enqueue_rich`."""
    return batch(map(_rich_job, jobs))


def _rich_job(job: NewJob) -> tuple[object, ...]:
    key = job.key
    held = (None, None, None) if key is None else (clean_text(key.value), key.keep, key.period)
    special = (job.parent, join_tags(job.terms.tags), job.expires_at, *_terms(job.terms))
    return (*_new_job(job), *held, *special)


def new_schedules(schedules: Iterable[StoredSchedule]) -> str:
    """Encode schedules for `add_schedules`."""
    return batch(map(_schedule, schedules))


def schedule_changes(changes: Iterable[Change]) -> str:
    """Encode schedules for `change_schedules`, each with what it must still be."""
    return batch((*_schedule(c.after), c.before.rev, c.before.fired_through) for c in changes if c.before)


def entries(noted: Iterable[AuditEntry]) -> str:
    """Encode what happened for `add_entries`."""
    return batch((e.id, e.who, e.verb, e.target, _detail(e.detail)) for e in noted)


def _detail(values: Mapping[str, Any]) -> str:
    try:
        return _encode(values).decode()
    except UnicodeEncodeError:
        return clean_text(json.dumps(values, ensure_ascii=False))


def entry(row: Row) -> StoredEntry:
    """Build a record from the columns of `entries`."""
    entry_id, at, who, verb, target, detail = row
    return StoredEntry(
        id=entry_id, at=at, who=who, verb=verb, target=target, detail=msgspec.json.decode(detail or "{}")
    )


def settlement(change: Settlement) -> tuple[object, ...]:
    """Build the row of a change for `settle`."""
    return (*change.token, *_facts(change), *[text and clean_text(text) for text in _texts(change)])


def successes(changes: Sequence[Settlement]) -> dict[str, object]:
    """Encode changes for `succeed`; most were claimed together, so that their claim is told once."""
    _, common_fence, common_claim = changes[0].token
    listed: list[tuple[object, ...]] = [
        (job_id, started_at, finished_at, result)
        if claim_id == common_claim and fence == common_fence and result_error is None
        else (job_id, started_at, finished_at, result, fence, claim_id, result_error)
        for (job_id, fence, claim_id), started_at, finished_at, result, result_error in map(_success, changes)
    ]
    return {"rows": batch(listed), "fence": common_fence, "claim_id": common_claim}


def progress(said: Iterable[Progress]) -> str:
    """Encode what runs said about how far they are, for `note_progress`."""
    return batch((*token, fraction, note or None) for token, fraction, note in said)


def log_parts(parts: Iterable[NewLogPart]) -> str:
    """Encode parts of logs for `add_logs`."""
    return batch((*token, attempt, line, text) for token, attempt, line, text, _ in parts)


def claim(row: Row) -> Claim:
    """Build a claim from the columns of `claim_columns`, which stand in the order of its fields."""
    return Claim._make((*row, False))


def job(row: Row) -> StoredJob:
    """Build a record from the time and the columns of `job_columns`, without what is not to be seen any more."""
    now, *columns = row
    values: dict[str, Any] = dict(zip(_JOB_FIELDS, columns, strict=True))
    values["state"] = State(values["state"])
    if values["progress"] is not None:
        # A database may keep it in four bytes.
        values["progress"] = round(values["progress"], _DIGITS)
    return as_of(StoredJob(**values), now)


def starts(text: str | None) -> list[Instant]:
    """Read the last starts at a gate or in a queue."""
    return [] if text is None else _decode_starts(text)


def schedule(row: Row) -> StoredSchedule:
    """Build a record from the columns of `schedule_columns`."""
    return StoredSchedule(**dict(zip(_SCHEDULE_FIELDS, row, strict=True)))


def attempt(row: Row) -> StoredAttempt:
    """Build a record from the columns of `attempts`."""
    return StoredAttempt(**dict(zip(_ATTEMPT_FIELDS, row, strict=True)))


def log_part(row: Row) -> LogPart:
    """Build a record from the columns of `logs`."""
    job_id, fence, attempt, line, text = row
    return LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text)


def worker(row: Row) -> StoredWorker:
    """Build a record from the columns of `workers`."""
    of_itself, stats = row[: len(_WORKER_FIELDS)], row[len(_WORKER_FIELDS) :]
    values: dict[str, Any] = dict(zip(_WORKER_FIELDS, of_itself, strict=True))
    for name in ("queues", "tasks", "declares"):
        values[name] = (
            None if values[name] is None else tuple(msgspec.json.decode(values[name], type=list[str]))
        )
    values["fires"] = bool(values["fires"])
    return StoredWorker(**values, stats=WorkerStats(**dict(zip(_STATS_FIELDS, stats, strict=True))))


def new_command(new: NewCommand) -> tuple[object, ...]:
    """Build the row of a command for `send`."""
    return new.id, new.worker, new.kind, _encode([_clean(new.job), _clean(new.reason)]).decode()


def command(row: Row) -> Command:
    """Build a record from the columns of `command_columns`."""
    id_, worker_id, kind, body, created_at, taken_at, done_at, outcome, dropped = row
    job_id, reason = msgspec.json.decode(body, type=tuple[str | None, str | None])
    return Command(
        id=id_,
        worker=worker_id,
        kind=kind,
        job=job_id,
        reason=reason,
        created_at=created_at,
        taken_at=taken_at,
        done_at=done_at,
        outcome=outcome,
        dropped=bool(dropped),
    )


_JOB_FIELDS = tuple(StoredJob.__dataclass_fields__)
_SCHEDULE_FIELDS = tuple(StoredSchedule.__dataclass_fields__)
_ATTEMPT_FIELDS = tuple(StoredAttempt.__dataclass_fields__)
_WORKER_FIELDS = tuple(name for name in StoredWorker.__dataclass_fields__ if name != "stats")
_STATS_FIELDS = tuple(WorkerStats.__dataclass_fields__)
