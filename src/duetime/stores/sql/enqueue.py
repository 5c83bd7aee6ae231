"""Stores jobs, in a transaction of our own or in one that belongs to the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from duetime.errors import NotOpen, SchemaMismatch
from duetime.model.audit import AuditEntry
from duetime.model.job import JobId, NewJob, due_soon
from duetime.model.states import State
from duetime.model.time import Clock, Instant
from duetime.stores.base import Hint
from duetime.stores.sql.driver import (
    AlreadyStored,
    CallerTransaction,
    Driver,
    Query,
    Script,
    SingleQueryScript,
)
from duetime.stores.sql.schema import check_identity, identity
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    alike_jobs,
    encode_batch,
    encode_entries,
    encode_new_jobs,
    encode_rich_jobs,
    one_job_values,
)

if TYPE_CHECKING:
    from duetime.stores.base.values import ArgumentsMismatch


_log = logging.getLogger("duetime.store")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_JOBS_HINT: Final = Hint("jobs")
_looked_up = attrgetter("schedule", "key")


class _FreshScriptMaker(Protocol[T_co]):
    """Makes a script of one statement; `fresh`: the database may refuse it if something of it is stored already."""

    def __call__(self, *, fresh: bool) -> Callable[[], Script[T_co]]: ...


class SqlEnqueuing:
    """Knows which store this is, so that nothing is stored in another one."""

    def __init__(self, driver: Driver, sql: Statements, clock: Clock | None, *, looks_first: bool) -> None:
        """`clock`: the store's, where it has none of its own."""
        self._driver = driver
        self._looks_first = looks_first
        self._sql = sql
        self._clock = clock
        self._identity: str | None = None

    async def identity(self) -> str:
        """Return what tells this store from every other; asked once."""
        if self._identity is None:
            self._identity = await self._driver.read(lambda: identity(self._sql))
        if self._identity is None:
            raise SchemaMismatch("there are no tables yet: run `duetime migrate`")
        return self._identity

    async def enqueue(self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()) -> list[JobId]:
        """Store jobs and hint the workers."""
        if entries or not _is_single(jobs):
            script = partial(enqueue, self._sql, jobs, entries=entries)
            return self._hinted(jobs, await self._driver.write(script, rows=len(jobs), again=script))
        soon = self._soon(jobs)
        if soon is None:
            asking = partial(self._asking, jobs)
            return self._hinted(jobs, await self._fresh_first(asking, rows=len(jobs)))
        hint = _JOBS_HINT if soon else None
        if (lone := self._lone(jobs)) is not None:
            return await self._driver.write(lone, atomic=False, hint=hint, again=lone)
        return await self._fresh_first(partial(self._single, jobs), rows=len(jobs), hint=hint)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, where an event loop has to."""
        soon = self._soon(jobs)
        if soon is not None and not entries and _is_single(jobs):
            script = self._lone(jobs) or self._single(jobs)
            return self._driver.write_blocking(script, hint=_JOBS_HINT if soon else None)
        done = self._driver.write_blocking(lambda: enqueue(self._sql, jobs, entries=entries))
        return None if done is None else self._hinted(jobs, done)

    async def _fresh_first(self, script: _FreshScriptMaker[T], *, rows: int, hint: Hint | None = None) -> T:
        """Store jobs by one statement; where that is quicker, at first as if none of them could be there."""

        def again() -> Script[T]:
            return script(fresh=False)()

        write = partial(self._driver.write, atomic=False, hint=hint, rows=rows, again=again)
        if not self._looks_first:
            # Ids are made for the call, so that some are stored only where it is made again, its answer being lost.
            with suppress(AlreadyStored):
                return await write(script(fresh=True))
        return await write(script(fresh=False))

    async def enqueue_in(
        self, tx: object, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store jobs in a caller's transaction; workers are hinted by its commit."""
        borrowed = self._driver.borrow(tx)
        script = self._storing(borrowed, jobs, await self.identity(), entries=entries)
        return _ids(await borrowed.run(script))

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """Do the same in this thread."""
        if self._identity is None:
            raise NotOpen("the store has not been asked for its identity yet")
        borrowed = self._driver.borrow(tx)
        return _ids(borrowed.run_blocking(self._storing(borrowed, jobs, self._identity)))

    def hint(self, jobs: Iterable[NewJob]) -> None:
        """Wake workers for what schedules have made, which is nearly always due."""
        pending = [job for job in jobs if job.state is State.PENDING]
        if pending:
            self._driver.hint(_JOBS_HINT)
        # Jobs of limited tasks are expected by whoever knows the task; those of a schedule come out of the blue.
        if any(job.schedule is not None and job.terms.gate is not None for job in pending):
            self._driver.hint(Hint("limits"))

    def _hinted(self, jobs: Sequence[NewJob], done: EnqueueResult) -> list[JobId]:
        """Wake workers for what was stored and is due soon, and return the ids."""
        if due_soon(jobs, self._now() or done.now):
            self.hint(jobs)
        return _ids(done)

    def _soon(self, jobs: Sequence[NewJob]) -> bool | None:
        """Tell whether a job falls due soon, without the clock where it is not needed; `None` if only a server can tell."""
        soon = due_soon(jobs, None)
        return due_soon(jobs, self._now()) if soon is None else soon

    def _now(self) -> Instant | None:
        """Return the store's clock where it is that of this host; a server tells its own with its answer."""
        return None if self._clock is None else self._clock.now()

    def _lone(self, jobs: Sequence[NewJob]) -> SingleQueryScript[list[JobId]] | None:
        """Return what stores one job that asks for nothing special, in few steps: each of them is felt on SQLite."""
        if not self._looks_first or len(jobs) > 1 or (values := one_job_values(job := jobs[0])) is None:
            return None
        return SingleQueryScript("enqueue", Query(self._sql.enqueue_one, values), [job.id])

    def _single(self, jobs: Sequence[NewJob], *, fresh: bool = False) -> SingleQueryScript[list[JobId]]:
        query = insertion(self._sql, jobs, fresh=fresh)
        return SingleQueryScript("enqueue", query, [job.id for job in jobs])

    def _asking(self, jobs: Sequence[NewJob], *, fresh: bool) -> Callable[[], Script[EnqueueResult]]:
        return lambda: enqueue(self._sql, jobs, fresh=fresh)

    def _storing(
        self,
        borrowed: CallerTransaction,
        jobs: Sequence[NewJob],
        identity: str,
        *,
        entries: Sequence[AuditEntry] = (),
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


def _is_single(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement stores all: there is nothing to look up, neither who has a key nor an occurrence."""
    if len(jobs) == 1:
        return jobs[0].schedule is None and jobs[0].key is None
    return not any(chain.from_iterable(map(_looked_up, jobs)))


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


class EnqueueResult(NamedTuple):
    """Where requests are stored, in their order, and which of them share a job with other arguments."""

    ids: list[JobId]
    now: Instant
    """The store's clock, where it is a server's."""
    clashes: Sequence[ArgumentsMismatch] = ()


def enqueue(
    sql: Statements, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = (), fresh: bool = False
) -> Script[EnqueueResult]:
    """Store jobs, with what is noted of them, and tell the ids they are stored under.

    `fresh`: the database may refuse them all where one is stored already.
    """
    if entries:
        yield Query(sql.add_entries, {"rows": encode_entries(entries)})
    keyed = [job for job in jobs if job.key is not None]
    free = [job for job in jobs if job.key is None] if keyed else jobs
    now = 0
    if free:
        told = yield insertion(sql, free, fresh=fresh)
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
    from duetime.stores.sql import keys

    placed = yield from keys.place(sql, keyed)
    return EnqueueResult(
        [placed.ids.get(job.id) or stored.get((job.schedule, job.occurrence), job.id) for job in jobs],
        placed.now,
        placed.clashes,
    )


def insertion(sql: Statements, jobs: Sequence[NewJob], *, fresh: bool = False) -> Query:
    """Return the statement that stores jobs without keys, the narrowest that has room for what they ask for.

    `fresh`: the database may refuse them all where one is stored already.
    """
    if len(jobs) == 1:
        if (values := one_job_values(jobs[0])) is not None:
            return Query(sql.enqueue_one_fresh if fresh else sql.enqueue_one, values)
    elif (alike := alike_jobs(jobs, paired=sql.is_paired())) is not None:
        if alike.dated:
            return Query(sql.enqueue_dated_fresh if fresh else sql.enqueue_dated, alike.values)
        return Query(sql.enqueue_fresh if fresh else sql.enqueue_alike, alike.values)
    if all(job.plain for job in jobs):
        return Query(sql.enqueue, {"rows": encode_new_jobs(jobs)})
    return Query(sql.enqueue_rich, {"rows": encode_rich_jobs(jobs)})
