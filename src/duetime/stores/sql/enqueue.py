"""Stores jobs, in a transaction of our own or in one that belongs to the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from duetime.errors import NotOpen
from duetime.model.job import JobId, NewJob, due_soon
from duetime.model.stored.audit import AuditEntry
from duetime.model.text import clean_text
from duetime.model.time import Instant
from duetime.stores.base import Hint
from duetime.stores.base.jobs import job_hints, warn_of_mismatches
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.sql.driver import AlreadyStored, CallerTransaction, Query, Script, SingleQueryScript
from duetime.stores.sql.schema import check_identity
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, encode_entries, encode_new_jobs
from duetime.stores.sql.unique_keys import place
from duetime.stores.sql.verbs import SqlSubject

_JOBS_HINT: Final = Hint("jobs")
_job_id = attrgetter("id")
_FIRST_SPECIAL: Final = NewJob._fields.index("schedule")
_NOTHING_SPECIAL: Final = tuple(NewJob._field_defaults[name] for name in NewJob._fields[_FIRST_SPECIAL:])


class EnqueueResult(NamedTuple):
    """Where requests are stored, in their order, and which of them share a job with other arguments."""

    ids: list[JobId]
    now: Instant
    """The store's clock, where it is a server's."""
    clashes: Sequence[ArgumentsMismatch] = ()


class SqlEnqueue(SqlSubject):
    """Stores jobs."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers, or have the commit of `tx` hint them."""
        if not jobs and not entries:
            return []
        if tx is not None:
            borrowed = self._driver.borrow(tx)
            return _ids(await borrowed.run(self._storing(borrowed, jobs, await self.identity(), entries)))
        single, hint = self._plain(jobs, entries)
        if single is not None:
            first, rows = single, len(jobs)
            if self._dialect.slow_on_conflict:
                fresh = self._sql.enqueue_one_fresh if rows == 1 else self._sql.enqueue_alike_fresh
                first = replace(single, query=single.query._replace(statement=fresh))
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
        single, hint = self._plain(jobs, entries)
        if single is not None:
            return self._driver.write_blocking(single, hint=hint)
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

    def _plain(
        self, jobs: Sequence[NewJob], entries: Sequence[AuditEntry]
    ) -> tuple[SingleQueryScript[list[JobId]] | None, Hint | None]:
        """Return a script of one statement, if that stores the jobs, and the hint that belongs to it."""
        soon = due_soon(jobs, self._now())
        # Without a clock of this host, only the server can tell of some jobs whether to hint.
        query = None if entries or soon is None else plain_insertion(self._sql, jobs)
        single = None
        if query is not None:
            ids = list(map(_job_id, jobs))
            single = SingleQueryScript("enqueue", query, lambda _: ids)
        return single, _JOBS_HINT if soon else None

    def _now(self) -> Instant | None:
        """Return the store's clock where it is that of this host; a server tells its own with its answer."""
        return None if self._clock is None else self._clock.now()

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


def _ids(done: EnqueueResult) -> list[JobId]:
    """Return under which ids requests are stored, and warn of those that are not stored as they were made."""
    warn_of_mismatches(done.clashes)
    return done.ids


def enqueue(
    sql: Statements, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
) -> Script[EnqueueResult]:
    """Store jobs, with what is noted of them, and tell the ids they are stored under."""
    yield from note(sql, entries)
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
    ids = [placed.ids.get(job.id) or stored.get((job.schedule, job.occurrence), job.id) for job in jobs]
    return EnqueueResult(ids, placed.now, placed.clashes)


def note(sql: Statements, entries: Iterable[AuditEntry | None]) -> Script[None]:
    """Keep who did what."""
    if given := [entry for entry in entries if entry is not None]:
        yield Query(sql.add_entries, {"rows": encode_entries(given)})


def insertion(sql: Statements, jobs: Sequence[NewJob]) -> Query:
    """Return the statement that stores jobs without keys."""
    return plain_insertion(sql, jobs) or Query(sql.enqueue, {"rows": encode_new_jobs(jobs)})


def plain_insertion(sql: Statements, jobs: Sequence[NewJob]) -> Query | None:
    """Return the quick statement for one job, or for jobs that differ only in id, arguments and due time.

    None if they are not alike, or ask for something special.
    """
    first = jobs[0]
    if first[_FIRST_SPECIAL:] != _NOTHING_SPECIAL:
        return None
    values: dict[str, object] = dict(zip(NewJob._fields, first[:_FIRST_SPECIAL], strict=False))
    if len(jobs) == 1:
        values["payload"] = clean_text(first.payload)
        return Query(sql.enqueue_one, values)
    ids, tasks, payloads, due, *common = zip(*jobs, strict=True)
    if any(column.count(column[0]) < len(column) for column in (tasks, *common)):
        return None
    values["rows"] = encode_batch(zip(ids, payloads, due, strict=True))
    return Query(sql.enqueue_alike, values)
