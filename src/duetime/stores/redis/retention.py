"""Removes jobs and results whose time is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from duetime.model.job import JobId
from duetime.model.retention import Remains, Retention, is_latest, note_on, outlived
from duetime.model.time import DAY, Instant
from duetime.stores.base import PruneResult
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import ANSWER_DECODER, read_remains

_JOBS_PER_CALL: Final = 1_000
"""How many jobs a prune looks at, and removes at the most."""


class RedisRetention(RedisStorePart):
    """A part of `RedisStore`."""

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at a stretch of jobs behind one, oldest first, and remove what is old."""
        facts, found = await self._calls.read(
            "prunable", ANSWER_DECODER, {"after": after, "most": _JOBS_PER_CALL}
        )
        now, last = facts["now"], facts.get("last")
        ended = [read_remains(row) for row in found]
        old = [job for job in ended if retention.covers(job, now=now)]
        firsts = await self._first_latest(old, keep=retention.keep_per_schedule)
        gone = [job.id for job in old if not is_latest(job, firsts)]
        if dry_run:
            return PruneResult(len(gone), last)
        if retention.before is not None and not after:
            await self._prune_rest(before=retention.before - DAY)
        spent = outlived(ended, going=frozenset(gone), now=now)
        if not gone and not spent:
            return PruneResult(0, last)
        emptied = [{"id": job.id, "note": note_on(job.state, job.ttl)} for job in spent]
        request = {"gone": gone, "outlived": emptied}
        facts, _ = await self._calls.write("prune", ANSWER_DECODER, request, rows=len(gone) + len(emptied))
        return PruneResult(facts["gone"], last)

    async def _prune_rest(self, *, before: Instant) -> None:
        """Forget workers that have been gone for long, and what they were told and schedules went through that long ago."""
        more = True
        while more:
            facts, _ = await self._calls.write(
                "prune_rest", ANSWER_DECODER, {"before": before, "most": _JOBS_PER_CALL}
            )
            more = facts["more"]

    async def _first_latest(self, old: Iterable[Remains], *, keep: int) -> Mapping[str, Instant | None]:
        schedules = sorted({job.schedule for job in old if job.schedule is not None})
        if not keep or not schedules:
            return {}
        _, found = await self._calls.read(
            "first_latest", ANSWER_DECODER, {"schedules": schedules, "keep": keep}
        )
        return {name: first for name, first in found}  # noqa: C416 - `dict` would not know the types
