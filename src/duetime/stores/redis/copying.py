"""Whole records, for a copy to another store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from duetime.errors import StoreError
from duetime.model.stored.copy import COLUMNS, PART_COLUMNS, RecordKind, RecordRow, WholeRecord
from duetime.stores.base.jobs import read_progress
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.messages import NamedValues

_RECORDS_PER_CALL: Final = 500
"""How many records a call reads at the most."""
_KEYS_SHOWN: Final = 5
_KEY_IN_A_FIELD: Final = frozenset({RecordKind.WORKERS, RecordKind.SCHEDULES})
"""What has its key in a field, too."""
_TEXT_COLUMNS: Final = frozenset({
    "name", "task", "paused_reason", "id", "state", "host", "host_key", "pid_started", "version", "queues", "tasks",
    "declares", "last_error", "payload", "trigger", "declared", "owner", "queue", "on_crash", "terms", "overlap",
    "misfire", "paused_by", "who", "verb", "target", "detail", "worker", "kind", "job", "reason", "outcome", "grain", "body",
})  # fmt: skip
"""The columns, of all kinds but jobs, that are text."""
_COLUMN_DEFAULTS: Final[Mapping[str, object]] = {
    "running": 0, "done": 0, "failed": 0, "loop_lag": 0, "dropped": 0,
    "fence": 0, "failures": 0, "crashes": 0, "blames": 0, "span_count": 1, "key_held": 1,
}  # fmt: skip
"""What a missing field stands for, where that is not nothing."""
_JOB_COLUMNS: Final = tuple({"key": "unique_key"}.get(name, name) for name in COLUMNS[RecordKind.JOBS])
_PROGRESS: Final = _JOB_COLUMNS.index("progress")
(_COMMAND_COLUMNS,) = PART_COLUMNS[RecordKind.WORKERS]


class RedisCopying(RedisStorePart):
    """A part of `RedisStore`."""

    moved: str | None

    async def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> list[WholeRecord]:
        """Return records by key as they are stored."""
        found: list[WholeRecord] = []
        bounds = {"after": after, "till": until, "most": min(limit, _RECORDS_PER_CALL)}
        async for facts, some in self._walk("stretch", record_columns(kind) | bounds):
            if facts["broken"]:
                raise StoreError(
                    f"{self._calls.address}: {kind} {', '.join(facts['broken'][:_KEYS_SHOWN])} cannot be read, because "
                    "they were edited by hand; mend or delete them"
                )
            found += [read_whole_record(kind, packed) for packed in some]
            if len(found) >= limit:
                break
        return found[:limit]

    async def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> None:
        """Remove records and store others as they are."""
        if gone or records:
            stored = [record_fields(kind, record) for record in records]
            request = {"kind": kind, "gone": gone, "records": stored}
            await self._calls.write("exchange", request, rows=len(gone) + len(records))

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere."""
        await self._calls.write("set_moved", {"note": note})
        self.moved = note


def record_columns(kind: RecordKind) -> NamedValues:
    """Say which fields are asked for."""
    columns = _JOB_COLUMNS if kind is RecordKind.JOBS else COLUMNS[kind][1:]
    told = _COMMAND_COLUMNS if kind is RecordKind.WORKERS else None
    return {"kind": kind, "columns": columns, "told": told}


def read_whole_record(kind: RecordKind, packed: Sequence[Any]) -> WholeRecord:
    """Build a record: a job with its tries and logs, any other from its key, its fields, and what it was told."""
    if kind is RecordKind.JOBS:
        columns, tries, logs = packed
        columns[_PROGRESS] = read_progress(columns[_PROGRESS])
        parts = ((columns[0], fence, line, *rest) for fence, line, rest in logs)
        return WholeRecord(tuple(columns), (_sorted(tries), _sorted(parts)))
    key, fields, told = packed
    row = (key, *map(_read_value, COLUMNS[kind][1:], fields))
    commands = (map(_read_value, _COMMAND_COLUMNS, each) for each in told)
    return WholeRecord(row, (_sorted(commands),) if kind is RecordKind.WORKERS else ())


def record_fields(kind: RecordKind, whole: WholeRecord) -> NamedValues:
    """Name what is to be stored."""
    if kind is RecordKind.JOBS:
        tries, logs = whole.parts
        row = _named_columns(_JOB_COLUMNS, whole.row)
        return {"key": whole.key, "row": row, "tries": tries, "logs": [log[1:] for log in logs]}
    first = 0 if kind in _KEY_IN_A_FIELD else 1
    told = [_named_columns(_COMMAND_COLUMNS, each) for part in whole.parts for each in part]
    return {"key": whole.key, "row": _named_columns(COLUMNS[kind][first:], whole.row[first:]), "told": told}


def _sorted(rows: Iterable[Iterable[Any]]) -> tuple[RecordRow, ...]:
    """Put parts in order; where the second column does not decide, the third does, and neither is ever nothing."""
    return tuple(sorted(map(tuple[Any, ...], rows), key=lambda row: row[1:3]))


def _read_value(name: str, text: str | None) -> str | int | None:
    if text is None:
        return 0 if name in _COLUMN_DEFAULTS else None
    if name == "starts":
        return f"[{text}]"
    return text if name in _TEXT_COLUMNS else int(text)


def _named_columns(columns: Sequence[str], values: RecordRow) -> NamedValues:
    """Name what there is; what a missing field stands for need not be said."""
    told = [(name, value) for name, value in zip(columns, values, strict=True) if value is not None]
    row: NamedValues = {name: value for name, value in told if value != _COLUMN_DEFAULTS.get(name)}
    if "starts" in row:
        row["starts"] = row["starts"][1:-1]
    return row
