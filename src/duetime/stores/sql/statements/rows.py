"""Values to rows and rows to values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from duetime.model.job import Claim, NewJob, join_tags
from duetime.model.limits import Gate
from duetime.model.outcome import Settlement
from duetime.model.reports import NewLogPart, Progress
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.stored.audit import AuditEntry, StoredAuditEntry, read_detail
from duetime.model.stored.jobs import checked_claim
from duetime.model.text import clean_text
from duetime.model.time import Instant, Micros
from duetime.model.worker import NewCommand
from duetime.stores.sql.driver import Row, Statement

_encode = msgspec.json.Encoder().encode
_decode_rows = msgspec.json.Decoder(list[Sequence[Any]]).decode
_decode_claims = msgspec.json.Decoder(list[Claim]).decode
_decode_starts = msgspec.json.Decoder(list[int]).decode
_NUL = b"\\u0000"

_new_job = attrgetter(
    "id", "task", "payload", "due_at", "delay", "queue", "priority", "on_crash", "retries", "timeout",
    "schedule", "occurrence", "state", "reason", "span_first", "span_count",
)  # fmt: skip
_terms = attrgetter("callbacks", "expires", "result_ttl", "failure_ttl", "gate", "headers", "secret")
_schedule = attrgetter(
    "name", "task", "payload", "trigger", "declared", "owner", "queue", "priority", "on_crash", "retries", "timeout",
    "terms", "overlap", "overlap_limit", "misfire", "misfire_window", "misfire_limit", "pause_after", "paused_at",
    "paused_reason", "paused_by", "paused_until", "parked_at", "fired_through", "next_at", "made", "streak_from",
)  # fmt: skip
_facts = attrgetter("state", "started_at", "finished_at", "due_at", "failures", "crashes", "blames", "worker")
_texts = attrgetter("result", "result_error", "error", "traceback", "error_type", "fingerprint", "reason")
_success = attrgetter("token", "started_at", "finished_at", "result", "result_error")


def encode_batch(rows: Iterable[Sequence[object]]) -> str:
    """Encode rows as the one JSON parameter that `{each ...}` reads."""
    listed = list(rows)
    try:
        data = _encode(listed)
    except UnicodeEncodeError:
        data = _NUL
    if _NUL in data:
        # A database could not keep them.
        data = _encode([[_clean(value) for value in row] for row in listed])
    return data.decode()


def encode_batch_for(statement: Statement, rows: Iterable[Sequence[object]]) -> str | list[Sequence[object]]:
    """Give rows the form that the statement takes: plain, for one that takes them one by one, or JSON."""
    return list(rows) if statement.columns else encode_batch(rows)


def unpack_claims(packed: str) -> list[Claim]:
    """Return the claims that came packed in one text, as JSON, each as long as what it asks for."""
    try:
        return _decode_claims(packed)
    except msgspec.ValidationError:
        # A row that was edited by hand is handed out, too, to fail alone.
        return [checked_claim(Claim(*row)) for row in _decode_rows(packed)]


def _clean(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


def encode_new_jobs(jobs: Iterable[NewJob]) -> str:
    """Encode jobs for `enqueue` and `replace_keyed`."""
    return encode_batch(map(_job_row, jobs))


def _job_row(job: NewJob) -> tuple[object, ...]:
    key = job.key
    held = (None, None, None) if key is None else (key.value, key.keep, key.period)
    special = (job.parent, join_tags(job.terms.tags), job.expires_at, *_terms(job.terms))
    return (*_new_job(job), *held, *special)


def encode_new_schedules(schedules: Iterable[StoredSchedule]) -> str:
    """Encode schedules for `add_schedules`."""
    return encode_batch(map(_schedule, schedules))


def encode_schedule_changes(changes: Iterable[ScheduleUpdate]) -> str:
    """Encode schedules for `change_schedules`, each with what it must still be."""
    return encode_batch(
        (*_schedule(c.after), c.before.rev, c.before.fired_through) for c in changes if c.before
    )


def encode_entries(noted: Iterable[AuditEntry]) -> str:
    """Encode what happened for `add_entries`."""
    return encode_batch((e.id, e.who, e.verb, e.target, _detail(e.detail)) for e in noted)


def _detail(values: Mapping[str, Any]) -> str:
    try:
        return _encode(values).decode()
    except UnicodeEncodeError:
        return clean_text(json.dumps(values, ensure_ascii=False))


def read_entry(row: Row) -> StoredAuditEntry:
    """Build a record from the columns of `entries`."""
    entry_id, at, who, verb, target, detail = row
    return StoredAuditEntry(id=entry_id, at=at, who=who, verb=verb, target=target, detail=read_detail(detail))


def settlement_row(change: Settlement) -> tuple[object, ...]:
    """Build the row of a change for `settle`."""
    return (*change.token, *_facts(change), *[text and clean_text(text) for text in _texts(change)])


def encode_successes(changes: Sequence[Settlement]) -> dict[str, object]:
    """Encode changes for `succeed`; most were claimed together, so that their claim is told once."""
    _, common_fence, common_claim = changes[0].token
    listed: list[tuple[object, ...]] = [
        (job_id, started_at, finished_at, result)
        if claim_id == common_claim and fence == common_fence and result_error is None
        else (job_id, started_at, finished_at, result, fence, claim_id, result_error)
        for (job_id, fence, claim_id), started_at, finished_at, result, result_error in map(_success, changes)
    ]
    return {"rows": encode_batch(listed), "fence": common_fence, "claim_id": common_claim}


def encode_progress(said: Iterable[Progress]) -> str:
    """Encode what runs said about how far they are, for `note_progress`."""
    return encode_batch((*token, fraction, note or None) for token, fraction, note in said)


def encode_log_parts(parts: Iterable[NewLogPart]) -> str:
    """Encode parts of logs for `add_logs`."""
    return encode_batch((*token, attempt, line, text) for token, attempt, line, text, _ in parts)


def read_claim(row: Row) -> Claim:
    """Build a claim from the columns of `claim_columns`, which stand in the order of its fields."""
    return Claim._make((*row, False, None))


def read_checked_claim(row: Row) -> Claim:
    """Do the same for a row of a database that takes any value in any column."""
    return checked_claim(read_claim(row))


def read_moment(value: object) -> Instant | None:
    """Read the first or last time of a table; `None` for one that is no number, which SQLite takes, too."""
    return value if isinstance(value, int) else None


def read_starts(text: str | None) -> list[Instant]:
    """Read the last starts at a gate or in a queue."""
    return [] if text is None else _decode_starts(text)


def read_gate(most: int | None, count: int | None, period: Micros | None) -> Gate:
    """Read the limit of a queue, or the rule of a gate."""
    return Gate(most, count, period or 0)


def read_schedule(row: Row) -> StoredSchedule:
    """Build a record from the columns of `schedule_columns`."""
    return StoredSchedule(**dict(zip(_SCHEDULE_FIELDS, row, strict=True)))


def command_row(new: NewCommand) -> tuple[object, ...]:
    """Build the row of a command for `send`."""
    return new.id, new.worker, new.kind, _encode([_clean(new.job), _clean(new.reason)]).decode()


_SCHEDULE_FIELDS = tuple(StoredSchedule.__dataclass_fields__)
