"""What the parts of the store share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from duetime.model.stored import StoredJob
from duetime.stores.redis import rows
from duetime.stores.redis.calls import Calls
from duetime.stores.redis.rows import FACTS, Facts


class Part:
    """A part of `RedisStore`: the verbs about one noun."""

    _calls: Calls

    async def _records(self, verb: str, asked: Facts, *, limit: int) -> list[StoredJob]:
        """Return the first jobs that a walk meets."""
        found: list[StoredJob] = []
        async for facts, some in self._walk(verb, asked):
            found += [rows.job(row, facts["now"]) for row in some]
            if len(found) >= limit:
                break
        return found[:limit]

    async def _walk(self, verb: str, asked: Facts) -> AsyncIterator[tuple[Facts, list[Any]]]:
        """Make a call again and again, each from where the last one has stopped, until there is no more."""
        after: Facts = {}
        while True:
            facts, found = await self._calls.read(verb, FACTS, asked | after)
            yield facts, found
            if "last" not in facts:
                return
            after = {"after": facts["last"]}
