"""The verbs of a Redis store about queues."""

from __future__ import annotations

from typing import Final

from duetime.model.instants import Instant
from duetime.model.limit import UNLIMITED, Gate
from duetime.model.texts import clean_text
from duetime.stores.base import CancelAnswer, Hint
from duetime.stores.redis.operating import Operating
from duetime.stores.redis.rows import FACTS, Facts

_LOOKED_AT: Final = 1_000
"""How many jobs one call of a purge looks at."""


class Queueing(Operating):
    """A part of `RedisStore`."""

    async def pause_queue(self, queue: str, *, reason: str | None) -> None:
        """Hand out nothing more from a queue."""
        text = None if reason is None else clean_text(reason)
        await self._calls.write("pause_queue", FACTS, {"queue": queue, "reason": text})

    async def resume_queue(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        await self._calls.write("resume_queue", FACTS, {"queue": queue}, hints=[Hint("jobs")])

    async def set_queue_limit(self, queue: str, limit: Gate | None) -> None:
        """Limit a queue, or no longer."""
        rule = limit or UNLIMITED
        period = None if rule.count is None else rule.period
        request = {"queue": queue, "most": rule.most, "rate_count": rule.count, "rate_period": period}
        await self._calls.write("set_queue_limit", FACTS, request, hints=[Hint("jobs")])

    async def purge(self, queue: str, *, before: Instant, reason: str, limit: int) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many."""
        asked: Facts = {"queue": queue, "before": before, "after": {}, "limit": limit, "most": _LOOKED_AT}
        purged = 0
        async for facts, _ in self._walk("purgeable", asked):
            if some := facts["ids"][: limit - purged]:
                answers = await self._cancel(some, reason=reason, waiting_only=True)
                purged += list(answers.values()).count(CancelAnswer.CANCELLED)
            if purged >= limit:
                break
        return purged
