"""The verbs of a Redis store about queues."""

from __future__ import annotations

from duetime.model.instants import Instant
from duetime.model.limit import UNLIMITED, Gate
from duetime.model.texts import clean_text
from duetime.stores.base import CancelAnswer, Hint
from duetime.stores.redis.operating import Operating
from duetime.stores.redis.rows import FACTS


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
        facts, _ = await self._calls.read(
            "purgeable", FACTS, {"queue": queue, "before": before, "limit": limit}
        )
        if not facts["ids"]:
            return 0
        answers = await self._cancel(facts["ids"], reason=reason, waiting_only=True)
        return list(answers.values()).count(CancelAnswer.CANCELLED)
