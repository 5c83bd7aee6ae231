"""For those who watch: outlines of jobs, and what workers note of them meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.watched import JobOutline, WatchedWorker
from duetime.model.time import Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import Hint
from duetime.stores.redis.connection import RedisStorePart


class RedisWatching(RedisStorePart):
    """A part of `RedisStore`."""

    async def glance(self, ids: Sequence[JobId], *, newest: int) -> list[JobOutline]:
        """Return outlines of the jobs that exist, and of the newest ones."""
        _, found = await self._calls.read("glance", {"ids": ids, "newest": newest})
        return [JobOutline._make((*row[:3], State(row[3]), *row[4:])) for row in found]

    async def watch(self, known: Sequence[WorkerId], *, lease: Micros) -> list[WatchedWorker]:
        """Have living workers note what they do, and return what they and `known` ones have noted."""
        _, found = await self._calls.read("watched", {"known": known, "lease": lease})
        if unaware := [row[0] for row in found if row[-1]]:
            hints = [Hint("worker", worker) for worker in unaware]
            await self._calls.write("watch", {"workers": unaware, "lease": lease}, hints=hints)
        return [WatchedWorker(*row[:-1]) for row in found]

    async def write_journal(self, worker: WorkerId, journal: str) -> None:
        """Write what a worker has noted in place of what it had noted before, and hint those who watch."""
        request = {"worker": worker, "journal": journal}
        await self._calls.write("write_journal", request, hints=[Hint("journal")])
