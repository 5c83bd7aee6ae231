"""The verbs of a Redis store that store jobs."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from duetime.errors import InvalidArguments, InvalidTransaction, StoreUnavailable
from duetime.model.audit import AuditEntry
from duetime.model.instants import Instant, Micros
from duetime.model.job import SOON, JobId, NewJob, due_soon
from duetime.model.states import State
from duetime.stores.base import Hint
from duetime.stores.redis import rows
from duetime.stores.redis.connect import FEW, LARGEST
from duetime.stores.redis.loan import NoLoan
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts

if TYPE_CHECKING:
    from duetime.stores.base import Loan
    from duetime.stores.redis.placing import Plan

log = logging.getLogger("duetime.store")

_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
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
        asked, (hints, since) = _asked(jobs, noted), _soon(jobs)
        facts, _ = await self._calls.write(
            "enqueue", FACTS, asked, hints=hints, since=since, rows=len(jobs), repeatable=True
        )
        return _ids(facts, jobs)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, where an event loop has to."""
        if not jobs:
            return []
        _check_number(jobs)
        if len(jobs) > FEW or any(job.key is not None for job in jobs):
            return None
        asked = _asked(jobs, [rows.entry(entry) for entry in entries])
        hints, since = _soon(jobs)
        answer = self._calls.write_blocking("enqueue", FACTS, asked, hints=hints, since=since)
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

        known, (hints, since) = Seen(0, {}), _soon(jobs)
        for attempt in range(_TRIES):
            made = plan(jobs, known)
            request = {"keys": made.keys, "steps": made.steps, "entries": noted}
            facts, found = await self._calls.write(
                "place", FACTS, request, hints=hints, since=since, rows=len(jobs), repeatable=True
            )
            if facts["done"]:
                _warn(made)
                return made.stored(jobs, facts["ids"])
            known = seen(facts["now"], found)
            if attempt > 0:
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
        raise StoreUnavailable("too many others ask for the same keys at once")


def _check_number(jobs: Sequence[NewJob]) -> None:
    """Refuse what cannot be stored in one go; in several, an error in between would leave some of it stored."""
    if len(jobs) > LARGEST:
        raise InvalidArguments(
            f"{len(jobs):,} jobs are too many for one call: Redis stores up to {LARGEST:,} of them or none, and serves nobody "
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


def hints_of(jobs: Iterable[NewJob]) -> tuple[Hint, ...]:
    """Return what wakes workers for new jobs."""
    pending = [job for job in jobs if job.state is State.PENDING]
    if not pending:
        return ()
    # Workers that know a limited task expect its jobs; those of a schedule come unannounced.
    limited = any(job.schedule is not None and job.terms.gate is not None for job in pending)
    return (Hint("jobs"), Hint("limits")) if limited else (Hint("jobs"),)


def _soon(jobs: Sequence[NewJob]) -> tuple[tuple[Hint, ...], Instant | None]:
    """Return what wakes workers for jobs that are due soon, and when that is, if only the server can tell."""
    soon = due_soon(jobs, None)
    if soon is False:
        return (), None
    first = min(job.due_at for job in jobs if job.due_at is not None) if soon is None else None
    return hints_of(jobs), None if first is None else first - SOON


def _warn(made: Plan) -> None:
    """Tell of requests that are not stored as they were made."""
    for job, served_by in made.clashes:
        log.warning(
            "%s was enqueued under the key %r with other arguments than those of job %s, which stand",
            job.task,
            job.key and job.key.value,
            served_by,
        )
