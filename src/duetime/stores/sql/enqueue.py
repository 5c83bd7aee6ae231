"""Stores jobs, in a transaction of our own or in one that belongs to the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from duetime.errors import NotOpen, SchemaMismatch
from duetime.model.audit import AuditEntry
from duetime.model.job import JobId, NewJob, due_soon
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.base import Hint
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.sql.driver import AlreadyStored, CallerTransaction, Query, Script, SingleQueryScript
from duetime.stores.sql.keys import place
from duetime.stores.sql.schema import check_identity, identity
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    alike_jobs,
    encode_batch,
    encode_entries,
    encode_new_jobs,
    one_job_values,
)
from duetime.stores.sql.verbs import SqlSubject

_log = logging.getLogger("duetime.store")

_JOBS_HINT: Final = Hint("jobs")


class EnqueueResult(NamedTuple):
    """Where requests are stored, in their order, and which of them share a job with other arguments."""

    ids: list[JobId]
    now: Instant
    """The store's clock, where it is a server's."""
    clashes: Sequence[ArgumentsMismatch] = ()


class SqlEnqueue(SqlSubject):
    """Stores jobs, and knows which store this is, so that nothing is stored in another one."""

    _identity: str | None = None

    async def identity(self) -> str:
        """Return what tells this store from every other; asked once."""
        if self._identity is None:
            self._identity = await self._driver.read(lambda: identity(self._sql))
        if self._identity is None:
            raise SchemaMismatch("there are no tables yet: run `duetime migrate`")
        return self._identity

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers, or have the commit of `tx` hint them."""
        if not jobs:
            return []
        if tx is not None:
            borrowed = self._driver.borrow(tx)
            return _ids(await borrowed.run(self._storing(borrowed, jobs, await self.identity(), entries)))
        soon = self._soon(jobs)
        single = None if entries or soon is None else self._single(jobs)
        if single is not None:
            hint, rows, first = _JOBS_HINT if soon else None, len(jobs), single
            if self._dialect.slow_on_conflict and single.query.statement is self._sql.enqueue_alike:
                first = replace(single, query=single.query._replace(statement=self._sql.enqueue_fresh))
            try:
                return await self._driver.write(first, atomic=False, hint=hint, rows=rows, again=single)
            except AlreadyStored:
                # Ids are made for the call, so only a call that is made again finds some of them.
                return await self._driver.write(single, atomic=False, hint=hint, rows=rows, again=single)
        script = partial(enqueue, self._sql, jobs, entries=entries)
        atomic = bool(entries) or any(job.key is not None or job.schedule is not None for job in jobs)
        done = await self._driver.write(script, atomic=atomic, rows=len(jobs), again=script)
        return self._hinted(jobs, done)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, if it needs an event loop."""
        if not jobs:
            return []
        soon = self._soon(jobs)
        single = None if entries or soon is None else self._single(jobs)
        if single is not None:
            return self._driver.write_blocking(single, hint=_JOBS_HINT if soon else None)
        done = self._driver.write_blocking(partial(enqueue, self._sql, jobs, entries=entries))
        return None if done is None else self._hinted(jobs, done)

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """Store jobs in a blocking caller's transaction, in this thread."""
        if not jobs:
            return []
        if self._identity is None:
            raise NotOpen("the store has not been asked for its identity yet")
        borrowed = self._driver.borrow(tx)
        return _ids(borrowed.run_blocking(self._storing(borrowed, jobs, self._identity, ())))

    def _hinted(self, jobs: Sequence[NewJob], done: EnqueueResult) -> list[JobId]:
        """Wake workers for what was stored and is due soon, and return the ids."""
        if due_soon(jobs, self._now() or done.now):
            for hint in job_hints(jobs):
                self._driver.hint(hint)
        return _ids(done)

    def _soon(self, jobs: Sequence[NewJob]) -> bool | None:
        """Tell whether a job falls due soon, without the clock if possible; `None` if only a server can tell."""
        soon = due_soon(jobs, None)
        return due_soon(jobs, self._now()) if soon is None else soon

    def _now(self) -> Instant | None:
        """Return the store's clock where it is that of this host; a server tells its own with its answer."""
        return None if self._clock is None else self._clock.now()

    def _single(self, jobs: Sequence[NewJob]) -> SingleQueryScript[list[JobId]] | None:
        """Return a script of one statement, if that stores them: they have neither keys nor occurrences."""
        query = plain_insertion(self._sql, jobs)
        if query is None:
            if any(job.key is not None or job.schedule is not None for job in jobs):
                return None
            query = insertion(self._sql, jobs)
        return SingleQueryScript("enqueue", query, [job.id for job in jobs])

    def _storing(
        self,
        borrowed: CallerTransaction,
        jobs: Sequence[NewJob],
        identity: str,
        entries: Sequence[AuditEntry],
    ) -> Callable[[], Script[EnqueueResult]]:
        hint = self._driver.announcement(_JOBS_HINT) if borrowed.announces else None

        def script() -> Script[EnqueueResult]:
            # Each time: what a connection sees can change with every transaction, by its search path.
            yield from check_identity(self._sql, identity)
            done = yield from enqueue(self._sql, jobs, entries=entries)
            if hint is not None and due_soon(jobs, self._now() or done.now):
                yield hint
            return done

        return script


def job_hints(jobs: Iterable[NewJob]) -> list[Hint]:
    """Return the hints for jobs that schedules have made, which are nearly always due."""
    pending = [job for job in jobs if job.state is State.PENDING]
    hints = [_JOBS_HINT] if pending else []
    # Workers that know a task expect its limited jobs; those of a schedule come unexpected.
    if any(job.schedule is not None and job.terms.gate is not None for job in pending):
        hints.append(Hint("limits"))
    return hints


def _ids(done: EnqueueResult) -> list[JobId]:
    """Return under which ids requests are stored, and warn of those that are not stored as they were made."""
    for clash in done.clashes:
        _log.warning(
            "%s was enqueued under the key %r with other arguments than those of job %s, which stand",
            clash.job.task,
            clash.job.key and clash.job.key.value,
            clash.served_by,
        )
    return done.ids


def enqueue(
    sql: Statements, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
) -> Script[EnqueueResult]:
    """Store jobs, with what is noted of them, and tell the ids they are stored under."""
    if entries:
        yield Query(sql.add_entries, {"rows": encode_entries(entries)})
    keyed = [job for job in jobs if job.key is not None]
    free = [job for job in jobs if job.key is None] if keyed else jobs
    now = 0
    if free:
        told = yield insertion(sql, free)
        now = told[0][-1]
    occurrences = [(job.schedule, job.occurrence) for job in free if job.schedule is not None]
    if not keyed and not occurrences:
        return EnqueueResult([job.id for job in jobs], now)
    stored: dict[object, JobId] = {}
    if occurrences:
        found = yield Query(sql.occurrence_ids, {"rows": encode_batch(occurrences)})
        stored = {(schedule, occurrence): job_id for schedule, occurrence, job_id in found}
    if not keyed:
        return EnqueueResult([stored.get((job.schedule, job.occurrence), job.id) for job in jobs], now)
    placed = yield from place(sql, keyed)
    return EnqueueResult(
        [placed.ids.get(job.id) or stored.get((job.schedule, job.occurrence), job.id) for job in jobs],
        placed.now,
        placed.clashes,
    )


def insertion(sql: Statements, jobs: Sequence[NewJob]) -> Query:
    """Return the statement that stores jobs without keys."""
    return plain_insertion(sql, jobs) or Query(sql.enqueue, {"rows": encode_new_jobs(jobs)})


def plain_insertion(sql: Statements, jobs: Sequence[NewJob]) -> Query | None:
    """Return the quick statement for one job, or for jobs of one kind, that ask for nothing special."""
    if len(jobs) == 1:
        values = one_job_values(jobs[0])
        return None if values is None else Query(sql.enqueue_one, values)
    values = alike_jobs(jobs)
    return None if values is None else Query(sql.enqueue_alike, values)
