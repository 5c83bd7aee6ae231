"""Whole records to what the server keeps of them, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from duetime.model.whole import COLUMNS, PARTS, Kind, Row, Whole
from duetime.stores.redis.rows import Facts

_NAMED: Final = frozenset({Kind.WORKERS, Kind.SCHEDULES})
"""What has its key in a field, too."""
_TEXTS: Final = frozenset({
    "name", "task", "paused_reason", "id", "state", "host", "host_key", "pid_started", "version", "queues", "tasks",
    "declares", "last_error", "payload", "trigger", "declared", "owner", "queue", "on_crash", "terms", "overlap",
    "misfire", "paused_by", "who", "verb", "target", "detail", "worker", "kind", "job", "reason", "outcome",
})  # fmt: skip
"""The columns, of all kinds but jobs, that are text."""
_ABSENT: Final[Mapping[str, object]] = {
    "running": 0, "done": 0, "failed": 0, "loop_lag": 0, "dropped": 0,
    "fence": 0, "failures": 0, "crashes": 0, "blames": 0, "span_count": 1, "key_held": 1,
}  # fmt: skip
"""What a missing field stands for, where that is not nothing."""
_DIGITS: Final = 6
_JOB: Final = tuple({"key": "unique_key"}.get(name, name) for name in COLUMNS[Kind.JOBS])
_PROGRESS: Final = _JOB.index("progress")
(_COMMAND,) = PARTS[Kind.WORKERS]


def question(kind: Kind) -> Facts:
    """Say which fields are asked for."""
    if kind is Kind.JOBS:
        return {"kind": kind, "columns": _JOB}
    told = {"told": _COMMAND} if kind is Kind.WORKERS else {}
    return {"kind": kind, "columns": COLUMNS[kind][1:], **told}


def record(kind: Kind, packed: Sequence[Any]) -> Whole:
    """Build a record: a job with its tries and logs, any other from its key, its fields, and what it was told."""
    if kind is Kind.JOBS:
        return _job(*packed)
    key, fields, told = packed
    row = (key, *map(_value, COLUMNS[kind][1:], fields))
    parts = (_sorted(map(_value, _COMMAND, each) for each in told),) if kind is Kind.WORKERS else ()
    return Whole(row, parts)


def request(kind: Kind, whole: Whole) -> Facts:
    """Name what is to be stored."""
    if kind is Kind.JOBS:
        tries, logs = whole.parts
        row = _said(_JOB, whole.row)
        return {"key": whole.key, "row": row, "tries": tries, "logs": [log[1:] for log in logs]}
    first = 0 if kind in _NAMED else 1
    told = [_said(_COMMAND, each) for part in whole.parts for each in part]
    return {"key": whole.key, "row": _said(COLUMNS[kind][first:], whole.row[first:]), "told": told}


def _job(columns: list[Any], tries: list[Any], logs: list[Any]) -> Whole:
    if columns[_PROGRESS] is not None:
        columns[_PROGRESS] = round(float(columns[_PROGRESS]), _DIGITS)
    parts = ((columns[0], fence, line, *rest) for fence, line, rest in logs)
    return Whole(tuple(columns), (_sorted(tries), _sorted(parts)))


def _sorted(rows: Iterable[Iterable[Any]]) -> tuple[Row, ...]:
    """Put parts in order; where the second column does not decide, the third does, and neither is ever nothing."""
    listed: list[tuple[Any, ...]] = [tuple(row) for row in rows]
    return tuple(sorted(listed, key=lambda row: row[1:3]))


def _value(name: str, text: str | None) -> str | int | None:
    if text is None:
        return 0 if name in _ABSENT else None
    if name == "starts":
        return f"[{text}]"
    return text if name in _TEXTS else int(text)


def _said(columns: Sequence[str], values: Row) -> Facts:
    """Name what there is; what a missing field stands for need not be said."""
    row: Facts = {
        name: value
        for name, value in zip(columns, values, strict=True)
        if value is not None and value != _ABSENT.get(name)
    }
    if "starts" in row:
        row["starts"] = row["starts"][1:-1]
    return row
