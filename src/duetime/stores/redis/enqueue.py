"""Stores new jobs; those with unique keys as it was decided who has each key."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from duetime.errors import InvalidArguments, InvalidTransaction, StoreUnavailable
from duetime.model.job import SOON, JobId, Key, KeyDecision, KeyHolder, NewJob, decide_key, due_soon
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import Instant, Micros
from duetime.stores.base import HandlerTransaction, Hint
from duetime.stores.base.jobs import NoTransaction, job_hints, key_taken, warn_of_mismatches
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.redis.address import MOST_JOBS
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.messages import alike_jobs_fields, entry_fields, job_fields

_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_NO_TRANSACTIONS: Final = (
    "Redis has no transactions that a job could be stored in; leave tx= out, or use a store on the database "
    "whose transaction it is"
)


class RedisEnqueuing(RedisStorePart):
    """A part of `RedisStore`."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers."""
        if tx is not None:
            raise InvalidTransaction(_NO_TRANSACTIONS)
        if len(jobs) > MOST_JOBS:
            # In several calls, an error in between would leave some of them stored.
            raise InvalidArguments(
                f"{len(jobs):,} jobs are too many for one call: Redis stores up to {MOST_JOBS:,} of them or none, and serves "
                "no one else meanwhile; enqueue them in several calls"
            )
        if not jobs and not entries:
            return []
        hints, since = _hints_if_due_soon(jobs)
        write = partial(
            self._calls.write, "enqueue", hints=hints, since=since, rows=len(jobs), repeatable=True
        )
        noted = [entry_fields(entry) for entry in entries]
        if jobs and (alike := alike_jobs_fields(jobs)) is not None:
            await write({"alike": alike, "entries": noted})
            return [job.id for job in jobs]
        now, holders = 0, dict[JobId, KeyHolder]()
        for attempt in range(_TRIES):
            # First as if all keys were free.
            plan = EnqueuePlan(now, holders)
            for job in jobs:
                plan.consider(job)
            facts, found = await write({"keys": plan.keys, "steps": plan.steps, "entries": noted})
            if facts["done"]:
                return plan.stored_ids(jobs, facts["ids"])
            now = facts["now"]
            holders = {asked: KeyHolder(id_, State(state), *rest) for asked, id_, state, *rest in found}
            if attempt > 0:
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
        raise StoreUnavailable("too many others ask for the same keys at once")

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

    def lend(self, *, timeout: Micros, tx: object = None) -> HandlerTransaction:  # noqa: ARG002 - there is nothing to wait for
        """Return what refuses to begin: there are no transactions."""
        return NoTransaction("Redis has no transactions to lend to a handler; use a SQL store for that")


def _hints_if_due_soon(jobs: Sequence[NewJob]) -> tuple[list[Hint], Instant | None]:
    """Return what wakes workers for jobs that are due soon, and when that is, if only the server can tell."""
    soon = due_soon(jobs, None)
    if soon is False:
        return [], None
    first = min(job.due_at for job in jobs if job.due_at is not None) if soon is None else None
    return job_hints(jobs), None if first is None else first - SOON


@dataclass(slots=True)
class EnqueuePlan:
    """What to do about a batch of requests, as if they came one after another."""

    now: Instant
    holders: dict[JobId, KeyHolder]
    """The jobs that have the keys of requests, by the id made for the request, as last seen."""
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Which jobs must still have the keys."""
    _ids: dict[JobId, JobId] = field(default_factory=dict[str, str])
    """The ids of jobs that serve other requests, by the id made for the request."""
    _mismatches: list[ArgumentsMismatch] = field(default_factory=list[ArgumentsMismatch])
    _planned: dict[tuple[str, str], KeyHolder] = field(default_factory=dict[tuple[str, str], KeyHolder])
    """The jobs that will have keys by task and key, because of requests before."""

    def consider(self, job: NewJob) -> None:
        """Decide about the next request; raises `KeyTaken` for one that insists on its own job."""
        if job.key is None or self._gets_key(job, job.key):
            self.steps.append({"verb": "add", "id": job.id, "job": job_fields(job)})

    def _gets_key(self, job: NewJob, key: Key) -> bool:
        """Whether a request is to be stored under its key; otherwise another job serves it."""
        seen = self.holders.get(job.id)
        expected = {} if seen is None else {"holder": seen.id, "state": seen.state}
        self.keys.append({"id": job.id, "task": job.task, "unique_key": key.value, **expected})
        holder = self._planned.get((job.task, key.value), seen)
        if job.id in {seen and seen.id, holder and holder.id}:
            # It is stored already, by a call whose answer was lost, or comes twice.
            self._ids[job.id] = job.id
            return False
        if holder is not None:
            match decide_key(key, holder, now=self.now):
                case KeyDecision.REFUSE:
                    raise key_taken(job, key, holder)
                case KeyDecision.JOIN:
                    self._ids[job.id] = holder.id
                    if job.payload != holder.payload:
                        self._mismatches.append(ArgumentsMismatch(job, holder.id))
                    return False
                case KeyDecision.REPLACE:
                    self._ids[job.id] = holder.id
                    self.steps.append({"verb": "replace", "id": holder.id, "job": job_fields(job)})
                    self._planned[job.task, key.value] = holder._replace(payload=job.payload)
                    return False
                case KeyDecision.TAKE_OVER:
                    self.steps.append({"verb": "free", "id": holder.id})
        self._planned[job.task, key.value] = KeyHolder(job.id, job.state, job.payload, None, key.keep, None)
        return True

    def stored_ids(self, jobs: Sequence[NewJob], ids: Sequence[JobId]) -> list[JobId]:
        """Return where requests are stored, given what came of the steps; log those that are not stored as they were made."""
        warn_of_mismatches(self._mismatches)
        stored = {step["id"]: job_id for step, job_id in zip(self.steps, ids, strict=True)} | self._ids
        return [stored[job.id] for job in jobs]
