"""Queues: pause, resume, limit, purge."""

from __future__ import annotations

from typing import Final

from duetime.model.limits import UNLIMITED, Gate
from duetime.model.text import clean_text
from duetime.model.time import Instant
from duetime.stores.base import CancelAnswer, Hint
from duetime.stores.redis.jobs import RedisJobControl
from duetime.stores.redis.rows import ANSWER_DECODER, NamedValues

_PURGE_LOOKS_AT: Final = 1_000
"""How many jobs one call of a purge looks at."""


class RedisQueues(RedisJobControl):
    """A part of `RedisStore`."""

    async def pause_queue(self, queue: str, *, reason: str | None) -> None:
        """Hand out nothing more from a queue."""
        text = None if reason is None else clean_text(reason)
        await self._calls.write("pause_queue", ANSWER_DECODER, {"queue": queue, "reason": text})

    async def resume_queue(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        await self._calls.write("resume_queue", ANSWER_DECODER, {"queue": queue}, hints=[Hint("jobs")])

    async def set_queue_limit(self, queue: str, limit: Gate | None) -> None:
        """Limit a queue, or no longer."""
        rule = limit or UNLIMITED
        period = None if rule.count is None else rule.period
        request = {"queue": queue, "most": rule.most, "rate_count": rule.count, "rate_period": period}
        await self._calls.write("set_queue_limit", ANSWER_DECODER, request, hints=[Hint("jobs")])

    async def purge(self, queue: str, *, before: Instant, reason: str, limit: int) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many."""
        asked: NamedValues = {
            "queue": queue,
            "before": before,
            "after": {},
            "limit": limit,
            "most": _PURGE_LOOKS_AT,
        }
        purged = 0
        async for facts, _ in self._walk("purgeable", asked):
            if some := facts["ids"][: limit - purged]:
                answers = await self._cancel(some, reason=reason, waiting_only=True)
                purged += list(answers.values()).count(CancelAnswer.CANCELLED)
            if purged >= limit:
                break
        return purged
