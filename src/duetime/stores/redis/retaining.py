"""The verbs of a Redis store that forget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from duetime.model.durations import DAY
from duetime.model.instants import Instant
from duetime.model.job import JobId
from duetime.model.retention import Remains, Retention, is_latest, note_on, outlived
from duetime.stores.base import Pruned
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

_STRETCH: Final = 1_000
"""How many jobs a prune looks at, and removes at the most."""


class Retaining(Part):
    """A part of `RedisStore`."""

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> Pruned:
        """Look at a stretch of jobs behind one, oldest first, and remove what is old."""
        facts, found = await self._calls.read("prunable", FACTS, {"after": after, "most": _STRETCH})
        now, last = facts["now"], facts.get("last")
        ended = [rows.remains(row) for row in found]
        old = [job for job in ended if retention.covers(job, now=now)]
        firsts = await self._first_latest(old, keep=retention.keep_per_schedule)
        gone = [job.id for job in old if not is_latest(job, firsts)]
        if dry_run:
            return Pruned(len(gone), last)
        if retention.before is not None and not after:
            await self._prune_rest(before=retention.before - DAY)
        spent = outlived(ended, going=frozenset(gone), now=now)
        if not gone and not spent:
            return Pruned(0, last)
        emptied = [{"id": job.id, "note": note_on(job.state, job.ttl)} for job in spent]
        request = {"gone": gone, "outlived": emptied}
        facts, _ = await self._calls.write("prune", FACTS, request, rows=len(gone) + len(emptied))
        return Pruned(facts["gone"], last)

    async def _prune_rest(self, *, before: Instant) -> None:
        """Forget workers that have been gone for long, and what they were told and schedules went through that long ago."""
        more = True
        while more:
            facts, _ = await self._calls.write("prune_rest", FACTS, {"before": before, "most": _STRETCH})
            more = facts["more"]

    async def _first_latest(self, old: Iterable[Remains], *, keep: int) -> Mapping[str, Instant | None]:
        schedules = sorted({job.schedule for job in old if job.schedule is not None})
        if not keep or not schedules:
            return {}
        _, found = await self._calls.read("first_latest", FACTS, {"schedules": schedules, "keep": keep})
        return {name: first for name, first in found}  # noqa: C416 - `dict` would not know the types
