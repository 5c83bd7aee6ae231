"""Stores jobs, in a transaction of our own or in one that belongs to the caller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final

from duetime.errors import NotOpen, SchemaMismatch
from duetime.model.audit import AuditEntry
from duetime.model.clock import Clock
from duetime.model.durations import MINUTE
from duetime.model.job import JobId, NewJob
from duetime.model.states import State
from duetime.stores.base import Hint
from duetime.stores.sql import rows, scripts
from duetime.stores.sql.driver import Borrowed, Driver, Duplicate, Lone, Query, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts import jobs as on_jobs
from duetime.stores.sql.scripts.jobs import Enqueued

log = logging.getLogger("duetime.store")

SOON: Final = MINUTE
"""Jobs that are due later than this from now wake nobody up; the workers look again before."""
_JOBS: Final = Hint("jobs")
_looked_up = attrgetter("schedule", "key")


class Enqueuing:
    """Knows which store this is, so that nothing is stored in another one."""

    def __init__(self, driver: Driver, sql: Statements, clock: Clock, *, looks_first: bool) -> None:
        self._driver = driver
        self._looks_first = looks_first
        self._sql = sql
        self._clock = clock
        self._identity: str | None = None

    async def identity(self) -> str:
        """Return what tells this store from every other; asked once."""
        if self._identity is None:
            self._identity = await self._driver.read(lambda: scripts.identity.identity(self._sql))
        if self._identity is None:
            raise SchemaMismatch("there are no tables yet: run `duetime migrate`")
        return self._identity

    async def enqueue(self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()) -> list[JobId]:
        """Store jobs and hint the workers."""
        if not entries and (lone := self._lone(jobs)) is not None:
            return await self._driver.write(lone, atomic=False, hint=self._hint_of(jobs))
        if entries or not _is_single(jobs):
            done = await self._driver.write(lambda: on_jobs.enqueue(self._sql, jobs, entries=entries))
            self.hint(jobs)
            return _ids(done)
        hint = self._hint_of(jobs)
        if not self._looks_first:
            # Ids are made for the call, so that some are stored only where it is made again, its answer being lost.
            try:
                return await self._driver.write(self._single(jobs, fresh=True), atomic=False, hint=hint)
            except Duplicate:
                pass
        return await self._driver.write(self._single(jobs), atomic=False, hint=hint)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, where an event loop has to."""
        if not entries and (lone := self._lone(jobs)) is not None:
            return self._driver.write_blocking(lone, hint=self._hint_of(jobs))
        if not entries and _is_single(jobs):
            return self._driver.write_blocking(self._single(jobs), hint=self._hint_of(jobs))
        done = self._driver.write_blocking(lambda: on_jobs.enqueue(self._sql, jobs, entries=entries))
        if done is None:
            return None
        self.hint(jobs)
        return _ids(done)

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
        """Wake workers for what is due soon."""
        soon = self._due_soon(jobs)
        first = next(soon, None)
        if first is None:
            return
        self._driver.hint(_JOBS)
        # Jobs of limited tasks are expected by whoever knows the task; those of a schedule come out of the blue.
        if first.schedule is not None and any(job.terms.gate is not None for job in (first, *soon)):
            self._driver.hint(Hint("limits"))

    def _lone(self, jobs: Sequence[NewJob]) -> Lone[list[JobId]] | None:
        """Return what stores one job that asks for nothing special, in few steps: each of them is felt on SQLite."""
        if not self._looks_first or len(jobs) > 1 or (values := rows.one_job(job := jobs[0])) is None:
            return None
        return Lone("enqueue", Query(self._sql.enqueue_one, values), [job.id])

    def _single(self, jobs: Sequence[NewJob], *, fresh: bool = False) -> Lone[list[JobId]]:
        query = on_jobs.insertion(self._sql, jobs, fresh=fresh)
        return Lone("enqueue", query, [job.id for job in jobs])

    def _hint_of(self, jobs: Sequence[NewJob]) -> Hint | None:
        # Nearly always it is the first; to look for it would take a lone job longer than to see this.
        clock = self._clock
        return _JOBS if _wakes(jobs[0], clock) or any(_wakes(job, clock) for job in jobs) else None

    def _storing(
        self,
        borrowed: Borrowed,
        jobs: Sequence[NewJob],
        identity: str,
        *,
        entries: Sequence[AuditEntry] = (),
    ) -> Callable[[], Script[Enqueued]]:
        announced = borrowed.announces and any(self._due_soon(jobs))
        hint = self._driver.announcement(_JOBS) if announced else None

        def script() -> Script[Enqueued]:
            # Each time: what a connection sees can change with every transaction, by its search path.
            yield from scripts.identity.check(self._sql, identity)
            done = yield from on_jobs.enqueue(self._sql, jobs, entries=entries)
            if hint is not None:
                yield hint
            return done

        return script

    def _due_soon(self, jobs: Iterable[NewJob]) -> Iterator[NewJob]:
        return (job for job in jobs if _wakes(job, self._clock))


def _is_single(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement stores all: there is nothing to look up, neither who has a key nor an occurrence."""
    if len(jobs) == 1:
        return jobs[0].schedule is None and jobs[0].key is None
    return not any(chain.from_iterable(map(_looked_up, jobs)))


def _wakes(job: NewJob, clock: Clock) -> bool:
    """Whether a job falls due before the workers look again by themselves."""
    wait = job.delay if job.due_at is None else job.due_at - clock.now()
    return wait <= SOON and job.state is State.PENDING


def _ids(done: Enqueued) -> list[JobId]:
    """Return under which ids requests are stored, and warn of those that are not stored as they were made."""
    for clash in done.clashes:
        log.warning(
            "%s was enqueued under the key %r with other arguments than those of job %s, which stand",
            clash.job.task,
            clash.job.key and clash.job.key.value,
            clash.served_by,
        )
    return done.ids
