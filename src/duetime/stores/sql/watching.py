"""For those who watch: outlines of jobs, and what workers note of them meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.watched import JobOutline, WatchedWorker
from duetime.model.time import Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.rows import encode_batch
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write


class SqlWatching(SqlSubject):
    """What is read and written while someone watches."""

    @read(rows=None)
    def glance(self, ids: Sequence[JobId], *, newest: int) -> Script[list[JobOutline]]:
        """Return outlines of the jobs that exist, and of the newest ones."""
        values = {"rows": encode_batch((job_id,) for job_id in ids), "newest": newest}
        found = yield Query(self._sql.glance, values)
        outlines = {row[0]: JobOutline._make((*row[:3], State(row[3]), *row[4:])) for row in found}
        return list(outlines.values())

    async def watch(self, known: Sequence[WorkerId], *, lease: Micros) -> list[WatchedWorker]:
        """Have living workers note what they do, and return what they and `known` ones have noted."""
        found = await self._watched(known, lease=lease)
        if unaware := [worker.id for worker, aware in found if not aware]:
            await self._watch(unaware, lease=lease)
        return [worker for worker, _ in found]

    @read(rows=None)
    def _watched(
        self, known: Sequence[WorkerId], *, lease: Micros
    ) -> Script[list[tuple[WatchedWorker, bool]]]:
        values = {"rows": encode_batch((worker,) for worker in known), "lease": lease}
        found = yield Query(self._sql.watched, values)
        return [
            (WatchedWorker(id_, name, state, paused_at is not None, journal), not unaware)
            for id_, name, state, paused_at, journal, unaware in found
        ]

    @write(atomic=False)
    def _watch(self, workers: Sequence[WorkerId], *, lease: Micros) -> HintingScript[None]:
        rows = encode_batch((worker,) for worker in sorted(workers))
        yield Query(self._sql.watch, {"rows": rows, "lease": lease})
        for worker in workers:
            yield Hint("worker", worker)

    @write(atomic=False)
    def write_journal(self, worker: WorkerId, journal: str) -> HintingScript[None]:
        """Write what a worker has noted in place of what it had noted before, and hint those who watch."""
        yield Query(self._sql.write_journal, {"worker": worker, "journal": journal})
        yield Hint("journal")
