"""Rows between Python and the server: what functions are given and what they answer, as MessagePack."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from duetime.model.job import JobTerms, NewJob, Token, join_tags
from duetime.model.limits import Gate
from duetime.model.outcome import Settlement
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retention import Remains, as_of
from duetime.model.schedule.occurrences import SpanCut
from duetime.model.schedule.record import Firing, ScheduleUpdate, StoredSchedule
from duetime.model.states import State
from duetime.model.stored.announced import StoredTask
from duetime.model.stored.audit import ITSELF, AuditEntry, Noted, StoredAuditEntry, read_detail
from duetime.model.stored.jobs import StoredAttempt, StoredJob, StoredWorker
from duetime.model.text import clean_text
from duetime.model.time import Instant
from duetime.model.worker import Command, NewCommand, WorkerInfo
from duetime.stores.base import ClaimRequest
from duetime.stores.base.jobs import read_progress

NamedValues = dict[str, Any]
T = TypeVar("T", StoredJob, StoredSchedule, StoredAttempt, Command, StoredTask)

EXTRAS: Final = (
    "failures", "crashes", "blames", "on_crash", "retries", "timeout", "schedule", "occurrence", "cancel_requested_at",
    "unique_key", "tags", "parent", "callbacks", "expires_at", "result_ttl", "failure_ttl", "headers", "gate",
)  # fmt: skip
"""The columns of a job that share one field, in the order in which they end a claim."""


class ServerAnswer(NamedTuple):
    """What every function answers: facts by name, the time among them, and rows."""

    facts: NamedValues
    rows: list[Any]

    @property
    def now(self) -> Instant:
        """The server's clock at the call."""
        return int(self.facts["now"])


_ANSWER_DECODER: Final = msgspec.msgpack.Decoder(ServerAnswer)


def read_answer(packed: bytes) -> ServerAnswer:
    """Decode an answer; what is not UTF-8 in a text that was edited is replaced."""
    try:
        return _ANSWER_DECODER.decode(packed)
    except UnicodeDecodeError:
        return ServerAnswer(*_readable(packed))


_TEXT_HEADERS: Final = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""How many bytes stand before a text, by the first of them; before a short text it is one."""


def _readable(packed: bytes | msgspec.Raw) -> Any:
    """Decode what may hold text that is no UTF-8, part by part."""
    with contextlib.suppress(UnicodeDecodeError):
        return msgspec.msgpack.decode(packed)
    with contextlib.suppress(msgspec.ValidationError):
        return [_readable(each) for each in msgspec.msgpack.decode(packed, type=list[msgspec.Raw])]
    with contextlib.suppress(msgspec.ValidationError, UnicodeDecodeError):
        named = msgspec.msgpack.decode(packed, type=dict[str, msgspec.Raw])
        return {name: _readable(value) for name, value in named.items()}
    text = bytes(packed)
    return text[_TEXT_HEADERS.get(text[0], 1) :].decode(errors="replace")


_encode: Final = msgspec.msgpack.Encoder().encode


def pack(request: object) -> bytes:
    """Encode what a function is given; what is `None` is absent there."""
    try:
        return _encode(request)
    except UnicodeEncodeError:
        return _encode(json.loads(clean_text(json.dumps(request, ensure_ascii=False))))


def _cleaned(text: str | None) -> str | None:
    return text and clean_text(text)


def read_record(kind: type[T], row: Sequence[Any]) -> T:
    """Build a record from its columns, which come in the order of its fields."""
    names: Iterable[str] = kind.__dataclass_fields__
    return kind(**dict(zip(names, row, strict=True)))


_FIRST_SPECIAL: Final = NewJob._fields.index("terms")
_FIELD_DEFAULTS: Final = {
    name: None if name in {"queue", "priority", "state"} else NewJob._field_defaults.get(name)
    for name in NewJob._fields[:_FIRST_SPECIAL]
}
"""What a missing column stands for; the queue, the priority and the state are written all the same."""


_TERMS: Final = tuple(JobTerms.__dataclass_fields__)


def job_fields(job: NewJob) -> NamedValues:
    """Name what a request says, without what it leaves open."""
    said = zip(_FIELD_DEFAULTS.items(), job, strict=False)
    row: NamedValues = {name: value for (name, default), value in said if value != default}
    row["payload"] = clean_text(job.payload)
    if not job.plain:
        terms, key = job.terms, job.key
        row |= {name: getattr(terms, name) for name in _TERMS}
        row |= {"tags": join_tags(terms.tags), "parent": job.parent, "expires_at": job.expires_at}
        if key is not None:
            row |= {"unique_key": key.value, "keep_key": key.keep, "key_period": key.period}
    return row


def alike_jobs_fields(jobs: Sequence[NewJob]) -> NamedValues | None:
    """Name what jobs of one kind have in common, and the rest of each; None if they are not, or ask for something special."""
    first = jobs[0]
    if not first.plain or first.schedule is not None or first.state is not State.PENDING:
        return None
    if len(jobs) > 1:
        ids, tasks, _, _, *common = zip(*jobs, strict=True)
        if not all(map(_all_same, (tasks, *common))) or len(set(ids)) < len(ids):
            return None
    line, columns = _kind_fields(first.task, *first[_FIRST_SHARED:_FIRST_SPECIAL])
    return {
        "line": line,
        "delay": first.delay,
        "columns": columns,
        "rows": [
            word
            for job in jobs
            for word in (job.id, clean_text(job.payload), False if job.due_at is None else job.due_at)
        ],
    }


_FIRST_SHARED: Final = NewJob._fields.index("queue")
"""From here on, and in their task, jobs of one kind are the same."""
_NOT_SHARED: Final = frozenset({"id", "task", "payload", "due_at", "delay", "queue", "priority", "state"})


@lru_cache(maxsize=1024)
def _kind_fields(task: str, *common: Any) -> tuple[str, list[object]]:
    """Return the line of a kind of jobs, and what else their rows have in common, by field and value in turn."""
    job = NewJob("", task, "", None, 0, *common)
    columns = {name: value for name, value in job_fields(job).items() if name not in _NOT_SHARED}
    extras = {name: str(columns.pop(name)) for name in EXTRAS if name in columns}
    if extras:
        columns["extras"] = msgspec.json.encode(extras).decode()
    return f"{job.queue}|{job.priority}|{task}", [word for column in columns.items() for word in column]


def _all_same(column: Sequence[object]) -> bool:
    """Whether all values of a column are the same."""
    return column.count(column[0]) == len(column)


def entry_fields(noted: AuditEntry) -> NamedValues:
    """Name what an entry says."""
    detail = clean_text(json.dumps(noted.detail, ensure_ascii=False, separators=(",", ":")))
    return {"id": noted.id, "who": noted.who, "verb": noted.verb, "target": noted.target, "detail": detail}


def noted_fields(noted: Noted, ids: Iterable[str]) -> dict[str, NamedValues] | None:
    """Name what is to be noted of each of some things that is changed; `None` for nothing."""
    return {one: entry_fields(noted[one]) for one in ids if one in noted} or None


def read_entry(row: Sequence[Any]) -> StoredAuditEntry:
    """Build a record from the columns of an entry."""
    entry_id, at, who, verb, target, detail = row
    return StoredAuditEntry(id=entry_id, at=at, who=who, verb=verb, target=target, detail=read_detail(detail))


_SCHEDULE_FIELDS: Final = tuple(StoredSchedule.__dataclass_fields__)
_WRITTEN_SCHEDULE_FIELDS: Final = _SCHEDULE_FIELDS[: _SCHEDULE_FIELDS.index("rev")]


def change_fields(asked: ScheduleUpdate) -> NamedValues:
    """Name what a schedule is to be, and what it must still be."""
    before = asked.before
    withdraw = {"reason": asked.withdraw, "again": asked.again, "only": asked.only, "held": asked.held}
    return {
        "row": {name: getattr(asked.after, name) for name in _WRITTEN_SCHEDULE_FIELDS},
        "jobs": [job_fields(job) for job in asked.jobs],
        "was": before and {"rev": before.rev, "fired_through": before.fired_through},
        "entry": asked.entry and entry_fields(asked.entry),
        "withdraw": None if asked.withdraw is None else withdraw | {"drawn": asked.drawn},
    }


_MOVES: Final = "name", "rev", "expected", "fired_through", "next_at", "made", "cancels", "pause", "resumes"


def firing_fields(asked: Firing) -> NamedValues:
    """Name how a schedule moves on, and what it must still be."""
    moves = {name: getattr(asked, name) for name in _MOVES}
    jobs, entries = map(job_fields, asked.jobs), map(entry_fields, asked.entries())
    return moves | {"who": ITSELF, "jobs": list(jobs), "entries": list(entries)}


def cut_fields(asked: SpanCut) -> NamedValues:
    """Name what a record stands for, and what it goes on to stand for; `False`: nothing."""
    was, left = asked.was, asked.left
    rest = (was.first, False, was.count) if left is None else (left.first, left.last, left.count)
    return {"id": asked.id, "was": (was.first, was.last, was.count), "left": rest}


_DEMANDS: Final = "worker", "claim_id", "queues", "limit", "tasks", "ahead", "below_priority"


def demand_fields(asked: ClaimRequest) -> NamedValues:
    """Name what a worker can take on."""
    said = {name: getattr(asked, name) for name in _DEMANDS}
    return said | {"unstarted": asked.unstarted or asked.ahead > 0}


def gate_fields(rule: Gate) -> NamedValues:
    """Name what a limit is."""
    period = None if rule.count is None else rule.period
    return {"most": rule.most, "rate_count": rule.count, "rate_period": period}


def read_gate(found: NamedValues) -> Gate:
    """Build a limit from what is stored of it."""
    return Gate(found.get("most"), found.get("rate_count"), found.get("rate_period") or 0)


def token_fields(proof: Token) -> NamedValues:
    """Name the parts of a proof."""
    return {"id": proof.job_id, "fence": proof.fence, "claim_id": proof.claim_id}


def success_words(changes: Iterable[Settlement]) -> list[object]:
    """Name, one after the other, the claims of runs that went well, when they ran, and what they returned."""
    told: list[object] = []
    for change in changes:
        result = change.result is not None and clean_text(change.result)
        # Times as text, which is what they become there, and takes longer.
        told += (*change.token, str(change.started_at), str(change.finished_at), result)
    return told


_SETTLEMENT_FIELDS: Final = (
    "state", "started_at", "finished_at", "due_at", "failures", "crashes", "blames", "attempt", "ended_at", "worker",
)  # fmt: skip
_SETTLEMENT_TEXTS: Final = (
    "result",
    "result_error",
    "error",
    "traceback",
    "error_type",
    "fingerprint",
    "reason",
)


def settlement_fields(change: Settlement) -> NamedValues:
    """Name what a change says."""
    said = {name: getattr(change, name) for name in _SETTLEMENT_FIELDS}
    said |= {name: _cleaned(getattr(change, name)) for name in _SETTLEMENT_TEXTS}
    progress = change.progress and progress_fields(change.progress)
    return token_fields(change.token) | said | {"progress": progress, "logs": log_part_fields(change.logs)}


def progress_fields(said: Progress) -> NamedValues:
    """Name what a run said about how far it is."""
    return token_fields(said.token) | {"fraction": said.fraction, "note": clean_text(said.note) or None}


def log_part_fields(parts: Iterable[NewLogPart]) -> list[NamedValues]:
    """Name what parts of logs say."""
    return [
        token_fields(part.token)
        | {"attempt": part.attempt, "line": part.line, "text": clean_text(part.text)}
        | dict(zip(("first", "past"), part.drop or (), strict=False))
        for part in parts
    ]


def read_job(row: Sequence[Any], now: Instant) -> StoredJob:
    """Build a record from the columns of a job, without what is not to be seen any more."""
    job = read_record(StoredJob, row)
    return as_of(replace(job, state=State(job.state), progress=read_progress(job.progress)), now)


class JobWithClaim(NamedTuple):
    """A job, why its end was asked for, if it was, and its last claim."""

    job: StoredJob
    cancel_reason: str | None
    claim_id: str | None
    now: Instant


def read_job_with_claim(row: Sequence[Any], now: Instant) -> JobWithClaim:
    """Build it from the columns of a job and what comes with them."""
    *columns, reason, claim_id = row
    return JobWithClaim(read_job(columns, now), reason, claim_id, now)


def read_remains(row: Sequence[Any]) -> Remains:
    """Build what decides how long an ended job stays."""
    job_id, state, *rest, has_more = row
    return Remains._make((job_id, State(state), *rest, bool(has_more)))


def worker_fields(worker: WorkerInfo) -> NamedValues:
    """Name what a worker says of itself."""
    lists = ("queues", "tasks", "declares")
    said = {name: msgspec.json.encode(getattr(worker, name)).decode() for name in lists}
    return asdict(worker) | said | {"host": clean_text(worker.host), "fires": int(worker.fires)}


def read_worker(fields: dict[str, str], now: Instant) -> StoredWorker | None:
    """Build a record from the fields of a worker; one whose lease is over is dead, even if it was not marked yet.

    `None` for one that was edited by hand.
    """
    said: dict[str, Any] = {"host_key": None, "pid_started": None, "name": None, **fields}
    try:
        for name in ("queues", "tasks", "declares"):
            said[name] = msgspec.json.decode(fields.get(name, "null"))
        if fields["state"] == "alive" and int(fields["lease_until"]) < now:
            said["state"] = "dead"
        return msgspec.convert(said | {"stats": said}, StoredWorker, strict=False)
    except (ValueError, KeyError, RecursionError):
        return None


def command_fields(new: NewCommand) -> NamedValues:
    """Name what a worker is to be told."""
    return asdict(new) | {"job": _cleaned(new.job), "reason": _cleaned(new.reason)}
