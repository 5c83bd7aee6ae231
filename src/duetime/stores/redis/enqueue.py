"""Stores new jobs; those with unique keys as it was decided who has each key."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from duetime.errors import (
    InvalidArguments,
    InvalidTransaction,
    KeyTaken,
    StoreUnavailable,
    TransactionMisused,
    Unsupported,
)
from duetime.model.audit import AuditEntry
from duetime.model.job import SOON, JobId, Key, KeyDecision, KeyHolder, NewJob, decide_key, due_soon
from duetime.model.outcome import Settlement
from duetime.model.states import State
from duetime.model.time import Instant, Micros
from duetime.stores.base import HandlerTransaction, Hint
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.redis.address import MOST_JOBS
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import (
    NamedValues,
    alike_jobs_fields,
    entry_fields,
    job_fields,
)

log = logging.getLogger("duetime.store")
_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_NO_TRANSACTIONS: Final = (
    "Redis has no transactions that a job could be stored in; leave tx= out, or use a store on the database "
    "whose transaction it is"
)


class NoTransaction:
    """A transaction that cannot begin."""

    blocking = False
    expired = False

    def keeps_out(self, store: object) -> bool:  # noqa: ARG002 - there is no transaction
        """Never: there is none."""
        return False

    async def begin(self) -> NoReturn:
        """Refuse."""
        raise Unsupported("Redis has no transactions to lend to a handler; use a SQL store for that")

    async def complete(self, settlement: Settlement) -> NoReturn:  # noqa: ARG002 - refused
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to commit")

    async def abandon(self, error: BaseException) -> NoReturn:
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to roll back") from error


class RedisEnqueuing(RedisStorePart):
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
        noted = [entry_fields(entry) for entry in entries]
        if any(job.key is not None for job in jobs):
            return await self._place(jobs, noted)
        asked, (hints, since) = _enqueue_request(jobs, noted), _hints_if_due_soon(jobs)
        facts, _ = await self._calls.write(
            "enqueue", asked, hints=hints, since=since, rows=len(jobs), repeatable=True
        )
        return _stored_ids(facts, jobs)

    def enqueue_blocking(
        self,
        jobs: Sequence[NewJob],
        *,
        entries: Sequence[AuditEntry] = (),  # noqa: ARG002 - left to the loop
    ) -> list[JobId] | None:
        """Store nothing: connections belong to an event loop."""
        return None if jobs else []

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:  # noqa: ARG002 - refused
        """Refuse: there are no transactions."""
        raise InvalidTransaction(_NO_TRANSACTIONS)

    def lend(self, *, timeout: Micros) -> HandlerTransaction:  # noqa: ARG002 - there is nothing to wait for
        """Return what refuses to begin: there are no transactions."""
        return NoTransaction()

    async def _place(self, jobs: Sequence[NewJob], noted: list[dict[str, object]]) -> list[JobId]:
        """Store jobs of which some have keys, first as if the keys were free."""
        known, (hints, since) = KeyHolders(0, {}), _hints_if_due_soon(jobs)
        for attempt in range(_TRIES):
            made = plan_enqueue(jobs, known)
            request = {"keys": made.keys, "steps": made.steps, "entries": noted}
            facts, found = await self._calls.write(
                "place", request, hints=hints, since=since, rows=len(jobs), repeatable=True
            )
            if facts["done"]:
                _warn_of_mismatches(made)
                return made.stored(jobs, facts["ids"])
            known = read_key_holders(facts["now"], found)
            if attempt > 0:
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
        raise StoreUnavailable("too many others ask for the same keys at once")


def _check_number(jobs: Sequence[NewJob]) -> None:
    """Refuse what cannot be stored in one go; in several, an error in between would leave some of it stored."""
    if len(jobs) > MOST_JOBS:
        raise InvalidArguments(
            f"{len(jobs):,} jobs are too many for one call: Redis stores up to {MOST_JOBS:,} of them or none, and serves nobody "
            "else meanwhile; enqueue them in several calls"
        )


def _enqueue_request(jobs: Sequence[NewJob], noted: Sequence[object]) -> NamedValues:
    if (alike := alike_jobs_fields(jobs)) is not None:
        return {"alike": alike, "entries": noted}
    return {"jobs": [job_fields(job) for job in jobs], "entries": noted}


def _stored_ids(facts: NamedValues, jobs: Sequence[NewJob]) -> list[JobId]:
    """Return where jobs are stored: of those of one kind nothing is told, since each is stored under its own id."""
    ids: list[JobId] | None = facts.get("ids")
    return [job.id for job in jobs] if ids is None else ids


def hints_for_jobs(jobs: Iterable[NewJob]) -> tuple[Hint, ...]:
    """Return what wakes workers for new jobs."""
    pending = [job for job in jobs if job.state is State.PENDING]
    if not pending:
        return ()
    # Workers that know a limited task expect its jobs; those of a schedule come unannounced.
    limited = any(job.schedule is not None and job.terms.gate is not None for job in pending)
    return (Hint("jobs"), Hint("limits")) if limited else (Hint("jobs"),)


def _hints_if_due_soon(jobs: Sequence[NewJob]) -> tuple[tuple[Hint, ...], Instant | None]:
    """Return what wakes workers for jobs that are due soon, and when that is, if only the server can tell."""
    soon = due_soon(jobs, None)
    if soon is False:
        return (), None
    first = min(job.due_at for job in jobs if job.due_at is not None) if soon is None else None
    return hints_for_jobs(jobs), None if first is None else first - SOON


def _warn_of_mismatches(made: EnqueuePlan) -> None:
    """Tell of requests that are not stored as they were made."""
    for job, served_by in made.clashes:
        log.warning(
            "%s was enqueued under the key %r with other arguments than those of job %s, which stand",
            job.task,
            job.key and job.key.value,
            served_by,
        )


class KeyHolders(NamedTuple):
    """What was found: the time, and the job that stands for a request, where there is one."""

    now: Instant
    holders: Mapping[JobId, KeyHolder]


@dataclass(slots=True)
class EnqueuePlan:
    """What to do about a batch of requests, as if they came one after another."""

    ids: dict[JobId, JobId] = field(default_factory=dict[str, str])
    """The id of each request's job, by the id that was made for it."""
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Who must still have the keys."""
    clashes: list[ArgumentsMismatch] = field(default_factory=list[ArgumentsMismatch])
    _held: dict[tuple[str, str], KeyHolder] = field(default_factory=dict[tuple[str, str], KeyHolder])

    def consider(self, job: NewJob, seen: KeyHolders) -> None:
        """Decide about the next request; raises `KeyTaken` for one that insists on its own job."""
        key = job.key
        if key is None:
            self._add(job)
            return
        found = seen.holders.get(job.id)
        self.keys.append(_expected_holder(job, key, found))
        if found is not None and found.id == job.id:
            self.ids[job.id] = job.id
            return
        holder = self._held.get((job.task, key.value), found)
        verdict = None if holder is None else decide_key(key, holder, now=seen.now)
        if holder is None or verdict is None:
            self._hold(job, key)
        elif verdict is KeyDecision.REFUSE:
            raise _key_taken(job, key, holder)
        elif verdict is KeyDecision.JOIN:
            self.ids[job.id] = holder.id
            if job.payload != holder.payload:
                self.clashes.append(ArgumentsMismatch(job, holder.id))
        elif verdict is KeyDecision.REPLACE:
            self.steps.append({"verb": "replace", "id": holder.id, "job": job_fields(job)})
            self.ids[job.id] = holder.id
            self._held[job.task, key.value] = holder._replace(payload=job.payload)
        else:
            self.steps.append({"verb": "free", "id": holder.id})
            self._hold(job, key)

    def stored(self, jobs: Sequence[NewJob], ids: Sequence[JobId]) -> list[JobId]:
        """Return where requests are stored, given what came of the steps."""
        placed = {step["id"]: job_id for step, job_id in zip(self.steps, ids, strict=True)} | self.ids
        return [placed[job.id] for job in jobs]

    def _hold(self, job: NewJob, key: Key) -> None:
        self._add(job)
        self._held[job.task, key.value] = KeyHolder(job.id, job.state, job.payload, None, key.keep, None)

    def _add(self, job: NewJob) -> None:
        self.steps.append({"verb": "add", "id": job.id, "job": job_fields(job)})


def plan_enqueue(jobs: Sequence[NewJob], seen: KeyHolders) -> EnqueuePlan:
    """Decide about requests in their order."""
    made = EnqueuePlan()
    for job in {job.id: job for job in jobs}.values():
        made.consider(job, seen)
    return made


def read_key_holders(now: Instant, found: Sequence[Sequence[Any]]) -> KeyHolders:
    """Read what a look has found."""
    return KeyHolders(now, {asked: KeyHolder(id_, State(state), *rest) for asked, id_, state, *rest in found})


def _expected_holder(job: NewJob, key: Key, holder: KeyHolder | None) -> dict[str, Any]:
    asked = {"id": job.id, "task": job.task, "unique_key": key.value}
    return asked if holder is None else asked | {"holder": holder.id, "state": holder.state}


def _key_taken(job: NewJob, key: Key, holder: KeyHolder) -> KeyTaken:
    text = f"{job.task} has the job {holder.id} ({holder.state}) under the key {key.value!r} already"
    return KeyTaken(text, key=key.value, job_id=holder.id)
