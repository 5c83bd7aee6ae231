"""Whole records for `duetime copy`: read as they are stored, and stored as they were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from duetime.model.store_copy import COLUMNS, RecordKind, RecordRow, WholeRecord
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read, write

_PROGRESS: Final = COLUMNS[RecordKind.JOBS].index("progress")
_DIGITS: Final = 6


def _as_it_is(columns: Sequence[Any]) -> RecordRow:
    return tuple(columns)


def _job_from_stored(columns: Sequence[Any]) -> RecordRow:
    progress = columns[_PROGRESS]
    if progress is None:
        return tuple(columns)
    # A database may keep it in four bytes.
    return (*columns[:_PROGRESS], round(progress, _DIGITS), *columns[_PROGRESS + 1 :])


def _limit_from_stored(columns: Sequence[Any]) -> RecordRow:
    """Read a queue or a gate; no starts to remember are as good as none ever noted."""
    return tuple(None if value == "[]" else value for value in columns)


def _command_from_stored(columns: Sequence[Any]) -> RecordRow:
    worker, command, kind, body, *rest = columns
    return (worker, command, kind, *msgspec.json.decode(body), *rest)


def _command_to_stored(row: RecordRow) -> RecordRow:
    worker, command, kind, job, reason, *rest = row
    return (worker, command, kind, msgspec.json.encode([job, reason]).decode(), *rest)


class _Table(NamedTuple):
    """How the rows of one table are read, stored and removed."""

    read: Statement
    put: Statement
    remove: Statement
    from_stored: Callable[[Sequence[Any]], RecordRow] = _as_it_is
    to_stored: Callable[[RecordRow], RecordRow] = _as_it_is


def _tables(sql: Statements, kind: RecordKind) -> tuple[_Table, ...]:
    """Return the table of a kind, and behind it those of its parts."""
    match kind:
        case RecordKind.QUEUES:
            return (_Table(sql.whole_queues, sql.put_queues, sql.remove_queues, _limit_from_stored),)
        case RecordKind.GATES:
            return (_Table(sql.whole_gates, sql.put_gates, sql.remove_gates, _limit_from_stored),)
        case RecordKind.WORKERS:
            told = _Table(sql.whole_commands, sql.put_commands, sql.remove_commands)
            return (
                _Table(sql.whole_workers, sql.put_workers, sql.remove_workers),
                told._replace(from_stored=_command_from_stored, to_stored=_command_to_stored),
            )
        case RecordKind.JOBS:
            return (
                _Table(sql.whole_jobs, sql.put_jobs, sql.remove_jobs, _job_from_stored),
                _Table(sql.whole_attempts, sql.put_attempts, sql.prune_attempts),
                _Table(sql.whole_logs, sql.put_logs, sql.prune_logs),
            )
        case RecordKind.SCHEDULES:
            return (_Table(sql.whole_schedules, sql.put_schedules, sql.remove_schedules),)
        case RecordKind.AUDIT:
            return (_Table(sql.whole_entries, sql.put_entries, sql.remove_entries),)


class SqlCopying(SqlSubject):
    """Whole records, and whether they are still where the work is."""

    moved: str | None = None

    @read(rows=None)
    def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> Script[list[WholeRecord]]:
        """Return records by key as they are stored, with their parts."""
        table, *others = _tables(self._sql, kind)
        found = yield Query(table.read, {"after": after, "until": until, "limit": limit})
        if not found:
            return []
        own = [table.from_stored(columns) for columns in found]
        parts: list[Mapping[object, list[RecordRow]]] = []
        for part in others:
            belonging = yield Query(part.read, {"after": after, "until": own[-1][0]})
            parts.append(_by_key(map(part.from_stored, belonging)))
        return [WholeRecord(row, tuple(tuple(part.get(row[0], ())) for part in parts)) for row in own]

    async def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> None:
        """Remove records with their parts, and store others as they are."""
        if gone or records:
            await self._exchange(kind, gone, records)

    @write(rows=None)
    def _exchange(
        self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]
    ) -> Script[None]:
        tables = _tables(self._sql, kind)
        for table in tables if gone else ():
            yield Query(table.remove, {"rows": encode_batch((key,) for key in gone)})
        for place, table in enumerate(tables):
            listed = [
                table.to_stored(row)
                for record in records
                for row in ((record.row,) if place == 0 else record.parts[place - 1])
            ]
            if listed:
                yield Query(table.put, {"rows": encode_batch(listed)})

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere, in place of what was noted before."""
        await self._set_moved(note)
        self.moved = note

    @write()
    def _set_moved(self, note: str | None) -> Script[None]:
        yield Query(self._sql.forget_moved, {})
        if note is not None:
            yield Query(self._sql.note_moved, {"note": note})


def _by_key(found: Iterable[RecordRow]) -> Mapping[object, list[RecordRow]]:
    listed: defaultdict[object, list[RecordRow]] = defaultdict(list)
    for row in found:
        listed[row[0]].append(row)
    return listed
