"""The verbs of a Redis store that store jobs."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from duetime.errors import InvalidArguments, InvalidTransaction, StoreUnavailable
from duetime.model.audit import AuditEntry
from duetime.model.durations import MINUTE
from duetime.model.instants import Micros
from duetime.model.job import JobId, NewJob
from duetime.model.states import State
from duetime.stores.base import Hint
from duetime.stores.redis import rows
from duetime.stores.redis.loan import NoLoan
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts

if TYPE_CHECKING:
    from duetime.stores.base import Loan
    from duetime.stores.redis.placing import Plan

log = logging.getLogger("duetime.store")

SOON: Final = MINUTE
"""Jobs that are due later than this from now wake nobody up; the workers look again before."""
_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_MOST: Final = 20_000
"""How many jobs are stored in one go: a second of the server, in which it serves nobody else."""
_NO_TRANSACTIONS: Final = (
    "Redis has no transactions that a job could be stored in; leave tx= out, or use a store on the database "
    "whose transaction it is"
)


class Enqueuing(Part):
    """A part of `RedisStore`."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers."""
        if tx is not None:
            raise InvalidTransaction(_NO_TRANSACTIONS)
        if not jobs:
            return []
        _check_number(jobs)
        noted = [rows.entry(entry) for entry in entries]
        if any(job.key is not None for job in jobs):
            return await self._place(jobs, noted)
        facts, _ = await self._calls.write("enqueue", FACTS, _asked(jobs, noted), hints=self._hints(jobs))
        return _ids(facts, jobs)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, where an event loop has to."""
        if not jobs:
            return []
        _check_number(jobs)
        if any(job.key is not None for job in jobs):
            return None
        asked = _asked(jobs, [rows.entry(entry) for entry in entries])
        answer = self._calls.write_blocking("enqueue", FACTS, asked, hints=self._hints(jobs))
        return None if answer is None else _ids(answer[0], jobs)

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:  # noqa: ARG002 - refused
        """Refuse: there are no transactions."""
        raise InvalidTransaction(_NO_TRANSACTIONS)

    def lend(self, *, timeout: Micros) -> Loan:  # noqa: ARG002 - there is nothing to wait for
        """Return what refuses to begin: there are no transactions."""
        return NoLoan()

    async def _place(self, jobs: Sequence[NewJob], noted: list[dict[str, object]]) -> list[JobId]:
        """Store jobs of which some have keys, first as if the keys were free."""
        from duetime.stores.redis.placing import Seen, plan, seen

        known = Seen(0, {})
        for attempt in range(_TRIES):
            made = plan(jobs, known)
            request = {"keys": made.keys, "steps": made.steps, "entries": noted}
            facts, found = await self._calls.write("place", FACTS, request, hints=self._hints(jobs))
            if facts["done"]:
                _warn(made)
                return made.stored(jobs, facts["ids"])
            known = seen(facts["now"], found)
            if attempt > 0:
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
        raise StoreUnavailable("too many others ask for the same keys at once")

    def _hints(self, jobs: Iterable[NewJob]) -> tuple[Hint, ...]:
        """Wake workers for what is due soon."""
        soon = self._clock.now() + SOON
        waking = [job for job in jobs if _wakes(job, soon)]
        if not waking:
            return ()
        # Jobs of limited tasks are expected by whoever knows the task; those of a schedule come out of the blue.
        limited = waking[0].schedule is not None and any(job.terms.gate is not None for job in waking)
        return (Hint("jobs"), Hint("limits")) if limited else (Hint("jobs"),)


def _check_number(jobs: Sequence[NewJob]) -> None:
    """Refuse what cannot be stored in one go; in several, an error in between would leave some of it stored."""
    if len(jobs) > _MOST:
        raise InvalidArguments(
            f"{len(jobs):,} jobs are too many for one call: Redis stores up to {_MOST:,} of them or none, and serves nobody "
            "else meanwhile; enqueue them in several calls"
        )


def _asked(jobs: Sequence[NewJob], noted: Sequence[object]) -> Facts | list[object]:
    if len(jobs) == 1 and not noted and (plain := rows.plain_job(jobs[0])) is not None:
        return plain
    if (alike := rows.alike_jobs(jobs)) is not None:
        return {"alike": alike, "entries": noted}
    return {"jobs": [rows.new_job(job) for job in jobs], "entries": noted}


def _ids(facts: Facts, jobs: Sequence[NewJob]) -> list[JobId]:
    """Return where jobs are stored: of those of one kind nothing is told, since each is stored under its own id."""
    ids: list[JobId] | None = facts.get("ids")
    return [job.id for job in jobs] if ids is None else ids


def _wakes(job: NewJob, soon: int) -> bool:
    """Whether a job falls due before the workers look again by themselves."""
    return job.state is State.PENDING and (job.delay <= SOON if job.due_at is None else job.due_at <= soon)


def _warn(made: Plan) -> None:
    """Tell of requests that are not stored as they were made."""
    for job, served_by in made.clashes:
        log.warning(
            "%s was enqueued under the key %r with other arguments than those of job %s, which stand",
            job.task,
            job.key and job.key.value,
            served_by,
        )
