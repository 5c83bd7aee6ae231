"""The verbs of a Redis store that change single jobs from outside: cancel, put off, take back."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.job import JobId, StoredJob
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS


class Operating(Part):
    """A part of `RedisStore`."""

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        facts, found = await self._calls.read("get", FACTS, {"ids": ids})
        return [rows.job(row, facts["now"]) for row in found]
