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
from duetime.stores.redis.connection import RedisStorePart

_ROWS_PER_CALL: Final = 500


class RedisStatistics(RedisStorePart):
    """A part of `RedisStore`."""

    async def add_statistics(self, parts: Sequence[StatisticsRow]) -> None:
        """Keep what a worker has counted."""
        if parts:
            await self._calls.write("add_statistics", {"rows": [part._asdict() for part in parts]})

    async def statistics_parts(self, *, limit: int) -> StatisticsParts:
        """Return the oldest parts that are not merged yet."""
        facts, found = await self._calls.read("statistics_parts", {"limit": limit})
        return StatisticsParts(facts["folds"], {part: body for part, body in found})  # noqa: C416 - `dict` would not know the types

    async def statistics_rows(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the bodies of the rows that exist."""
        found = (await self._calls.read("statistics_rows", {"ids": ids})).rows if ids else []
        return {row: body for row, body in found}  # noqa: C416 - `dict` would not know the types

    async def fold_statistics(self, folds: int, parts: Sequence[str], rows: Sequence[StatisticsRow]) -> bool:
        """Put rows in the place of parts, unless anyone has done so since."""
        request = {"folds": folds, "parts": parts, "rows": [row._asdict() for row in rows]}
        facts, _ = await self._calls.write("fold_statistics", request, rows=len(parts) + len(rows))
        return bool(facts["done"])

    async def statistics(self, ranges: Sequence[tuple[str, str]]) -> StoredStatistics:
        """Return the rows in ranges, and what is not merged yet."""
        facts, found = await self._calls.read("statistics", {"ranges": ranges})
        rows = [(row, body) for row, body in found]
        return StoredStatistics(rows[facts["parts"] :], [body for _, body in rows[: facts["parts"]]])

    async def prune_statistics(self, now: Instant) -> None:
        """Remove what was kept long enough."""
        more = True
        while more:
            request = {"ends": statistics_end(now), "most": _ROWS_PER_CALL}
            more = (await self._calls.write("prune_statistics", request)).facts["more"]
