"""Whole records for `duetime copy`: read as they are stored, and stored as they were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from string import Template
from typing import Any, Final, NamedTuple

import msgspec

from duetime.model.stored.copy import COLUMNS, RecordKind, RecordRow, WholeRecord
from duetime.stores.base.jobs import read_progress
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.loader import FOLDER, Dialect, Statements, build, parse
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read, write

_PROGRESS: Final = COLUMNS[RecordKind.JOBS].index("progress")
_NO_LIMIT: Final = 2**62


def _job_from_stored(columns: Sequence[Any]) -> RecordRow:
    return (*columns[:_PROGRESS], read_progress(columns[_PROGRESS]), *columns[_PROGRESS + 1 :])


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
    """How the rows of one table are read and stored."""

    name: str
    order: str
    """What they are sorted by; the first of it is the key of the record that they belong to."""
    from_stored: Callable[[Sequence[Any]], RecordRow] = tuple
    to_stored: Callable[[RecordRow], RecordRow] = tuple


_TABLES: Final[Mapping[RecordKind, tuple[_Table, ...]]] = {
    RecordKind.QUEUES: (_Table("queues", "name", _limit_from_stored),),
    RecordKind.GATES: (_Table("gates", "name", _limit_from_stored),),
    RecordKind.WORKERS: (
        _Table("workers", "id"),
        _Table("commands", "worker, id", _command_from_stored, _command_to_stored),
    ),
    RecordKind.JOBS: (
        _Table("jobs", "id", _job_from_stored),
        _Table("attempts", "job_id, fence"),
        _Table("logs", "job_id, fence, line"),
    ),
    RecordKind.SCHEDULES: (_Table("schedules", "name"),),
    RecordKind.AUDIT: (_Table("audit", "id"),),
    RecordKind.STATISTICS: (_Table("statistics", "id"),),
}
"""The table of each kind, and behind it those of its parts."""


@cache
def _statements(dialect: Dialect, namespace: str, table: _Table) -> Statements:
    """Return the statements `read`, `put` and `remove` of a table."""
    blocks = parse(FOLDER.joinpath("copying.sql").read_text("utf-8"))
    words = {"table": table.name, "order": table.order, "key": table.order.partition(",")[0]}
    for verb in ("read", "put", "remove"):
        blocks["name", verb] = Template(blocks["fragment", f"{verb}_whole"]).substitute(words)
    return build(blocks, dialect, namespace)


class SqlCopying(SqlSubject):
    """Whole records, and whether they are still where the work is."""

    moved: str | None = None

    @read(rows=None)
    def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> Script[list[WholeRecord]]:
        """Return records by key as they are stored, with their parts."""
        table, *others = _TABLES[kind]
        own = yield from self._read(table, after=after, until=until, limit=limit)
        if not own:
            return []
        parts: dict[tuple[int, object], list[RecordRow]] = defaultdict(list)
        for place, part in enumerate(others):
            for row in (yield from self._read(part, after=after, until=str(own[-1][0]), limit=_NO_LIMIT)):
                parts[place, row[0]].append(row)
        places = range(len(others))
        return [WholeRecord(row, tuple(tuple(parts[place, row[0]]) for place in places)) for row in own]

    @write(rows=None)
    def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> Script[None]:
        """Remove records with their parts, and store others as they are."""
        for place, table in enumerate(_TABLES[kind]):
            if gone:
                yield Query(self._of(table).remove, {"rows": encode_batch((key,) for key in gone)})
            rows = [row for record in records for row in ((record.row,), *record.parts)[place]]
            if listed := [table.to_stored(row) for row in rows]:
                yield Query(self._of(table).put, {"rows": encode_batch(listed)})

    def _read(self, table: _Table, *, after: str, until: str, limit: int) -> Script[list[RecordRow]]:
        found = yield Query(self._of(table).read, {"after": after, "until": until, "limit": limit})
        return [table.from_stored(columns) for columns in found]

    def _of(self, table: _Table) -> Statements:
        return _statements(self._dialect, self._namespace, table)

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere, in place of what was noted before."""
        await self._set_moved(note)
        self.moved = note

    @write()
    def _set_moved(self, note: str | None) -> Script[None]:
        yield Query(self._sql.forget_moved, {})
        if note is not None:
            yield Query(self._sql.note_moved, {"note": note})
