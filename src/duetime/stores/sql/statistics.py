"""Figures over time: parts that workers have written, and the rows that these are merged into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from duetime.model.statistics import (
    StatisticsParts,
    StatisticsRow,
    StoredStatistics,
    statistics_end,
)
from duetime.model.time import Instant
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import SqlSubject, read, write

_NO_LIMIT: Final = 2**31


class SqlStatistics(SqlSubject):
    """What workers have counted."""

    @write(atomic=False, rows=len)
    def add_statistics(self, parts: Sequence[StatisticsRow]) -> Script[None]:
        """Keep what a worker has counted."""
        yield Query(self._sql.add_statistics, {"rows": encode_batch(parts)})

    @read(rows=None)
    def statistics_parts(self, *, limit: int) -> Script[StatisticsParts]:
        """Return the oldest parts that are not merged yet."""
        folds = yield from self._folds()
        found = yield Query(self._sql.statistics_parts, {"limit": limit})
        return StatisticsParts(folds, {part: body for part, body in found})  # noqa: C416 - `dict` would not know the types

    @read(rows=len)
    def statistics_rows(self, ids: Sequence[str]) -> Script[Mapping[str, str]]:
        """Return the bodies of the rows that exist."""
        found = yield Query(self._sql.statistics_rows, {"rows": encode_batch((one,) for one in ids)})
        return {row: body for row, body in found}  # noqa: C416 - `dict` would not know the types

    @write(rows=None)
    def fold_statistics(
        self, folds: int, parts: Sequence[str], rows: Sequence[StatisticsRow]
    ) -> Script[bool]:
        """Put rows in the place of parts, unless anyone has done so since or does it now."""
        if not folds:
            yield Query(self._sql.begin_folds, {})
        if not (yield Query(self._sql.lock_folds, {"folds": folds})):
            return False
        yield Query(self._sql.note_fold, {})
        yield Query(self._sql.empty_parts, {"rows": encode_batch((part,) for part in parts)})
        yield Query(self._sql.put_statistics, {"rows": encode_batch(rows)})
        return True

    @read(rows=None)
    def statistics(self, ranges: Sequence[tuple[str, str]]) -> Script[StoredStatistics]:
        """Return the rows in ranges, and what is not merged yet; read again if parts were merged meanwhile."""
        while True:
            folds = yield from self._folds()
            rows: list[tuple[str, str]] = []
            for first, past in ranges:
                found = yield Query(self._sql.statistics_between, {"first": first, "past": past})
                rows += [(row, body) for row, body in found]
            parts = yield Query(self._sql.statistics_parts, {"limit": _NO_LIMIT})
            if folds == (yield from self._folds()):
                return StoredStatistics(rows, [body for _, body in parts])

    @write(rows=None)
    def prune_statistics(self, now: Instant) -> Script[None]:
        """Remove what was kept long enough."""
        for grain, before in statistics_end(now).items():
            yield Query(self._sql.prune_statistics, {"grain": grain, "before": before})

    def _folds(self) -> Script[int]:
        """Tell how often parts were merged."""
        found = yield Query(self._sql.folds, {})
        return found[0][0] if found else 0
