"""Single jobs: stores them, and changes them from outside: cancel, snooze, release."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from duetime.errors import (
    InvalidArguments,
    InvalidTransaction,
    StoreUnavailable,
    TransactionMisused,
    Unsupported,
)
from duetime.model.audit import AuditEntry
from duetime.model.ids import new_token
from duetime.model.job import SOON, JobId, NewJob, due_soon
from duetime.model.outcome import Settlement, decide, recalled
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.text import clean_text
from duetime.model.time import LATEST, Instant, Micros
from duetime.stores.base import CancelAnswer, Hint, ReleaseAnswer, SnoozeAnswer
from duetime.stores.redis.address import MOST_JOBS, MOST_JOBS_BLOCKING
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import (
    ANSWER_DECODER,
    JobWithClaim,
    NamedValues,
    alike_jobs_fields,
    entry_fields,
    job_fields,
    plain_job_words,
    read_job,
    read_job_with_claim,
)
from duetime.stores.redis.settling import callbacks_of_cancelled, claim_that_takes_over, settlement_request

if TYPE_CHECKING:
    from duetime.stores.base import HandlerTransaction
    from duetime.stores.redis.unique_keys import EnqueuePlan


class NoTransaction:
    """A transaction that cannot begin."""

    blocking = False
    expired = False

    def keeps_out(self, store: object) -> bool:  # noqa: ARG002 - it keeps out nobody
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


log = logging.getLogger("duetime.store")

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
        if not jobs:
            return []
        _check_number(jobs)
        noted = [entry_fields(entry) for entry in entries]
        if any(job.key is not None for job in jobs):
            return await self._place(jobs, noted)
        asked, (hints, since) = _enqueue_request(jobs, noted), _hints_if_due_soon(jobs)
        facts, _ = await self._calls.write(
            "enqueue", ANSWER_DECODER, asked, hints=hints, since=since, rows=len(jobs), repeatable=True
        )
        return _stored_ids(facts, jobs)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do the same for a thread that may wait; None, and nothing is stored, where an event loop has to."""
        if not jobs:
            return []
        _check_number(jobs)
        if len(jobs) > MOST_JOBS_BLOCKING or any(job.key is not None for job in jobs):
            return None
        asked = _enqueue_request(jobs, [entry_fields(entry) for entry in entries])
        hints, since = _hints_if_due_soon(jobs)
        answer = self._calls.write_blocking("enqueue", ANSWER_DECODER, asked, hints=hints, since=since)
        return None if answer is None else _stored_ids(answer[0], jobs)

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:  # noqa: ARG002 - refused
        """Refuse: there are no transactions."""
        raise InvalidTransaction(_NO_TRANSACTIONS)

    def lend(self, *, timeout: Micros) -> HandlerTransaction:  # noqa: ARG002 - there is nothing to wait for
        """Return what refuses to begin: there are no transactions."""
        return NoTransaction()

    async def _place(self, jobs: Sequence[NewJob], noted: list[dict[str, object]]) -> list[JobId]:
        """Store jobs of which some have keys, first as if the keys were free."""
        from duetime.stores.redis.unique_keys import KeyHolders, plan_enqueue, read_key_holders

        known, (hints, since) = KeyHolders(0, {}), _hints_if_due_soon(jobs)
        for attempt in range(_TRIES):
            made = plan_enqueue(jobs, known)
            request = {"keys": made.keys, "steps": made.steps, "entries": noted}
            facts, found = await self._calls.write(
                "place", ANSWER_DECODER, request, hints=hints, since=since, rows=len(jobs), repeatable=True
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


def _enqueue_request(jobs: Sequence[NewJob], noted: Sequence[object]) -> NamedValues | list[object]:
    if len(jobs) == 1 and not noted and (plain := plain_job_words(jobs[0])) is not None:
        return plain
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


_JOBS_PER_CALL: Final = 1_000
"""How many jobs one call reads or changes."""
_UNDECIDED: Final = "undecided"
_UNTOUCHED: Final = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}


class RedisJobControl(RedisStorePart):
    """A part of `RedisStore`."""

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        records: list[StoredJob] = []
        for some in _in_pieces(ids):
            facts, found = await self._calls.read("get", ANSWER_DECODER, {"ids": some}, rows=len(some))
            records += [read_job(row, facts["now"]) for row in found]
        return records

    async def cancel(self, ids: Sequence[JobId], *, reason: str) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        answers: dict[JobId, CancelAnswer] = {}
        for some in _in_pieces(_without_duplicates(ids)):
            answers |= await self._cancel(some, reason=reason)
        return answers

    async def snooze(self, ids: Sequence[JobId], *, delay: Micros) -> Mapping[JobId, SnoozeAnswer]:
        """Put pending jobs off."""
        answers: dict[JobId, SnoozeAnswer] = {}
        for some in _in_pieces(_without_duplicates(ids)):
            request = {"ids": some, "delay": delay, "latest": LATEST}
            facts, _ = await self._calls.write("snooze", ANSWER_DECODER, request)
            answers |= zip(some, map(SnoozeAnswer, facts["answers"]), strict=True)
        return answers

    async def release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers and hint those."""
        answers: dict[JobId, ReleaseAnswer] = {}
        for some in _in_pieces(_without_duplicates(ids)):
            answers |= await self._release(some, force=force)
        return answers

    async def _release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take jobs away that are as they were when it was decided what becomes of them."""
        answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
        waiting = list(answers)
        for _ in range(_TRIES):
            found = {standing.job.id: standing for standing in await self._standing(waiting)}
            answers |= {
                job_id: _UNTOUCHED.get(standing.job.state, ReleaseAnswer.FINISHED)
                for job_id, standing in found.items()
            }
            held = [standing for standing in found.values() if _may_be_released(standing.job, force=force)]
            if not held:
                return answers
            request = {"changes": [_release_request(standing) for standing in held], "force": force}
            facts, _ = await self._calls.write("release", ANSWER_DECODER, request, hints=[Hint("jobs")])
            moved: list[int] = facts["moved"]
            waiting = [held[place - 1].job.id for place in moved]
            for job in (standing.job for standing in held if standing.job.id not in waiting):
                answers[job.id] = ReleaseAnswer.RELEASED
                self._calls.subscribers.notify(Hint("worker", job.worker or ""))
            if not waiting:
                return answers
        raise StoreUnavailable("jobs that were to be released changed hands again and again")

    async def _cancel(
        self, ids: Sequence[JobId], *, reason: str, waiting_only: bool = False
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs; those that call others back when it is known whom, which takes a second call."""
        answers: dict[JobId, str] = dict.fromkeys(ids, _UNDECIDED)
        called: dict[JobId, list[dict[str, object]]] = {}
        reason = clean_text(reason)
        for _ in range(_TRIES):
            asked = [job_id for job_id, answer in answers.items() if answer == _UNDECIDED]
            request = {"ids": asked, "reason": reason, "called": called, "waiting_only": waiting_only}
            hints = [Hint("jobs")] if called else []
            facts, undecided = await self._calls.write("cancel", ANSWER_DECODER, request, hints=hints)
            answers |= zip(asked, facts["answers"], strict=True)
            for worker in facts["workers"]:
                self._calls.subscribers.notify(Hint("worker", worker))
            if not undecided:
                return {job_id: CancelAnswer(answer) for job_id, answer in answers.items()}
            for standing in (read_job_with_claim(row, facts["now"]) for row in undecided):
                called[standing.job.id] = callbacks_of_cancelled(standing, reason=reason)
        raise StoreUnavailable("jobs that were to be cancelled changed again and again")

    async def _standing(self, ids: Sequence[JobId]) -> list[JobWithClaim]:
        facts, found = await self._calls.read("standing", ANSWER_DECODER, {"ids": ids})
        return [read_job_with_claim(row, facts["now"]) for row in found]


def _without_duplicates(ids: Iterable[JobId]) -> list[JobId]:
    return list(dict.fromkeys(ids))


def _in_pieces(ids: Sequence[JobId]) -> Iterator[Sequence[JobId]]:
    """Yield a list in parts, since one call for all of it might keep the server from everybody else."""
    return (ids[first : first + _JOBS_PER_CALL] for first in range(0, len(ids), _JOBS_PER_CALL))


def _may_be_released(job: StoredJob, *, force: bool) -> bool:
    return job.state is State.RUNNING and (force or job.started_at is None)


def _release_request(standing: JobWithClaim) -> dict[str, Any]:
    """Return what to write for a job that is taken away, with the claim that must still hold."""
    job = standing.job
    change = decide(
        claim_that_takes_over(standing, claim_id=new_token()),
        recalled(started=job.started_at is not None),
        policy=NO_RETRIES,
        started_at=job.started_at,
        now=standing.now,
        rng=random.Random(),
    )
    return settlement_request(change, standing) | {"old_fence": job.fence, "old_claim_id": standing.claim_id}
