"""A store as simple as can be: plain values in memory, each verb a few lines that can be checked by eye.

It is what real stores are compared with, step by step, in `duetime.testing.machine`. Schedules are in
`duetime.testing.schedule_model`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from duetime.errors import KeyTaken
from duetime.model.job import (
    JobEdit,
    JobId,
    Key,
    KeyDecision,
    KeyHolder,
    NewJob,
    Token,
    decide_key,
    join_tags,
)
from duetime.model.outcome import CrashSuspect, Settlement, blamed_job, cancel_beats
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Clock, Instant, Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer, ClaimRequest, DeleteAnswer

TOLD_OF_ERRORS = ("error", "traceback", "error_type", "fingerprint")
UNTOUCHED: dict[str, Any] = {
    **dict.fromkeys(("fence", "failures", "crashes", "blames"), 0),
    **dict.fromkeys(("started_at", "worker", "cancel_requested_at", "result", "result_error"), None),
    **dict.fromkeys(TOLD_OF_ERRORS, None),
}
"""The columns of a job that nobody has claimed."""


@dataclass(slots=True)
class Job:
    """A job, with what only the store sees."""

    record: StoredJob
    claim_id: str = ""
    cancel_reason: str | None = None
    has_key: bool = False
    keep_key: Micros | None = None
    key_until: Instant | None = None

    @property
    def token(self) -> Token:
        """The proof of its last claim."""
        return Token(self.record.id, self.record.fence, self.claim_id)

    @property
    def holder(self) -> KeyHolder:
        """The job as the holder of its key."""
        record = self.record
        return KeyHolder(
            record.id, record.state, record.payload, record.finished_at, self.keep_key, self.key_until
        )

    def change(self, **values: Any) -> None:
        """Write columns."""
        self.record = replace(self.record, **values)


@dataclass(slots=True)
class Lease:
    """A worker."""

    state: str
    until: Instant


@dataclass(slots=True)
class JobModel:
    """The verbs of a store about jobs and workers, without a database."""

    clock: Clock
    jobs: dict[JobId, Job] = field(default_factory=dict[JobId, Job])
    tries: list[tuple[JobId, int, str]] = field(default_factory=list[tuple[JobId, int, str]])
    workers: dict[WorkerId, Lease] = field(default_factory=dict[WorkerId, Lease])
    paused: set[str] = field(default_factory=set[str])

    def enqueue(self, jobs: Iterable[NewJob]) -> list[JobId]:
        """Store what is not stored yet, by id, by occurrence and by key."""
        return [self._enqueue(new) for new in jobs]

    def claim(self, demand: ClaimRequest) -> list[Token]:
        """Hand out jobs in order."""
        now, taken = self.clock.now(), list[Job]()
        for queue, most in demand.queues if self.alive(demand.worker) else ():
            fit = sorted(
                (job for job in self.jobs.values() if job.record.queue == queue and self._fits(job, demand)),
                key=lambda job: (job.record.priority, job.record.due_at, job.record.id),
            )
            taken += fit[: max(0, min(most, demand.limit - len(taken)))]
        for job in taken:
            self._hand_over(job, demand.worker, demand.claim_id)
            job.change(state=State.RUNNING, started_at=None if demand.ahead or demand.unstarted else now)
        return [job.token for job in taken]

    def mark_started(self, tokens: Iterable[Token], started_at: Instant) -> None:
        """Note the start of what is still held."""
        for token in tokens:
            if self.holds(token):
                self.jobs[token.job_id].change(started_at=started_at)

    def settle(self, settlements: Iterable[Settlement]) -> frozenset[Token]:
        """Write what is still held; accept what this claim had written before."""
        accepted = set[Token]()
        for sent in settlements:
            job = self.jobs.get(sent.token.job_id)
            if self.holds(sent.token):
                self._settle(self.jobs[sent.token.job_id], sent)
                accepted.add(sent.token)
            elif job and job.token == sent.token and job.record.state is not State.RUNNING:
                accepted.add(sent.token)
        return frozenset(accepted)

    def cancel(self, ids: Iterable[JobId], *, reason: str) -> Mapping[JobId, CancelAnswer]:
        """Cancel what waits, flag what is held."""
        return {job_id: self._cancel(self.jobs.get(job_id), reason) for job_id in ids}

    def delete(self, job_id: JobId) -> DeleteAnswer:
        """Forget what nobody holds."""
        if (job := self.jobs.get(job_id)) is None:
            return DeleteAnswer.UNKNOWN
        if job.record.state is State.RUNNING:
            return DeleteAnswer.RUNNING
        del self.jobs[job_id]
        self.tries = [tried for tried in self.tries if tried[0] != job_id]
        return DeleteAnswer.DELETED

    def edit(self, job_id: JobId, change: JobEdit) -> bool:
        """Change what waits."""
        job, now = self.jobs[job_id], self.clock.now()
        if job.record.state is not State.PENDING or change.if_due_at not in (None, job.record.due_at):
            return False
        plain = ("queue", "priority", "retries", "timeout", "payload", "due_at", "expires_at")
        job.change(**{name: value for name in plain if (value := getattr(change, name)) is not None})
        if change.delay is not None:
            job.change(due_at=now + change.delay)
        if change.postpone is not None:
            job.change(due_at=max(job.record.due_at, now) + change.postpone)
        if change.expires is not None:
            job.change(expires_at=job.record.due_at + change.expires)
        if change.payload is not None:
            job.change(gate=change.gate)
        return True

    def release(self, job_id: JobId, *, force: bool) -> bool:
        """Take a claim away: as an interruption by force, otherwise as if it had not been."""
        job, now = self.jobs[job_id], self.clock.now()
        record, started = job.record, job.record.started_at is not None
        if record.state is not State.RUNNING or (started and not force):
            return False
        self._hand_over(job, record.worker or "", "by hand")
        ends = started and record.on_crash == "fail"
        sent = Settlement(
            token=job.token,
            state=State.CANCELLED if ends else State.PENDING,
            started_at=record.started_at,
            finished_at=now if ends else None,
            due_at=now if started and not ends else None,
            **{column: getattr(record, column) for column in ("failures", "crashes", "blames")},
            reason="released by force" if started else None,
            attempt="interrupted" if started and not ends else None,
        )
        self._settle(job, sent)
        return True

    def register(self, worker: WorkerId, *, lease: Micros) -> None:
        """Add a living worker."""
        self.workers.setdefault(worker, Lease("alive", self.clock.now() + lease))

    def pulse(self, worker: WorkerId, *, lease: Micros) -> bool:
        """Renew a living worker's lease."""
        if self.alive(worker):
            self.workers[worker].until = self.clock.now() + lease
        return self.alive(worker)

    def end(self, workers: Iterable[WorkerId], state: str) -> None:
        """Mark living workers as stopped or dead."""
        for worker in filter(self.alive, workers):
            self.workers[worker].state = state

    def rescue(self, worker: WorkerId, claim_id: str) -> dict[Token, tuple[WorkerId, bool]]:
        """Take over what the dead hold; tell from whom, and who is blamed."""
        now = self.clock.now()
        self.end([name for name, lease in self.workers.items() if lease.until < now], "dead")
        orphans = (
            [job for job in self.running() if not self.alive(job.record.worker)] if self.alive(worker) else []
        )
        started = [
            job.record for job in orphans if job.record.started_at is not None or job.record.due_at <= now
        ]
        suspects = {
            blamed_job(CrashSuspect(record.id, record.crashes) for record in started if record.worker == dead)
            for dead in {record.worker for record in started}
        }
        rescued = dict[Token, tuple[WorkerId, bool]]()
        for job in orphans:
            before = job.record.worker or ""
            self._hand_over(job, worker, claim_id)
            rescued[job.token] = (before, job.record.id in suspects)
        return rescued

    def alive(self, worker: WorkerId | None) -> bool:
        """Whether a worker lives."""
        return worker in self.workers and self.workers[worker].state == "alive"

    def holds(self, token: Token) -> bool:
        """Whether a claim still stands."""
        job = self.jobs.get(token.job_id)
        return job is not None and job.token == token and job.record.state is State.RUNNING

    def running(self, worker: WorkerId | None = None) -> list[Job]:
        """What is held, by all or by one."""
        held = [job for job in self.jobs.values() if job.record.state is State.RUNNING]
        return held if worker is None else [job for job in held if job.record.worker == worker]

    def next_due(self, queues: Collection[str], tasks: Collection[str]) -> Instant | None:
        """When the next job falls due that a worker could take."""
        waiting = (job.record for job in self.jobs.values() if job.record.state is State.PENDING)
        fit = (
            r.due_at for r in waiting if r.queue in queues and r.queue not in self.paused and r.task in tasks
        )
        return min(fit, default=None)

    def counts(self) -> Mapping[tuple[str, State], int]:
        """How many jobs each queue has in each state."""
        return Counter((job.record.queue, job.record.state) for job in self.jobs.values())

    def _enqueue(self, new: NewJob) -> JobId:
        now = self.clock.now()
        same = (new.schedule, new.occurrence)
        for job in self.jobs.values():
            if job.record.id == new.id or (
                None not in same and (job.record.schedule, job.record.occurrence) == same
            ):
                return job.record.id
        if new.key is not None and (served := self._ask_holder(new, new.key)) is not None:
            return served
        ended = now if new.state.terminal else None
        record = StoredJob(**UNTOUCHED | self._asked(new), id=new.id, created_at=now, finished_at=ended)
        self.jobs[new.id] = Job(record)
        self._give_key(self.jobs[new.id], new.key)
        return new.id

    def _asked(self, new: NewJob) -> dict[str, Any]:
        """The columns that a request fills."""
        special = ("id", "delay", "terms", "key", "expires_at")
        asked = {name: getattr(new, name) for name in new._fields if name not in special}
        now = self.clock.now()
        asked["due_at"] = due_at = now + new.delay if new.due_at is None else new.due_at
        kept = ("callbacks", "gate", "result_ttl", "failure_ttl", "headers", "secret")
        asked |= {name: getattr(new.terms, name) for name in kept}
        asked["tags"] = join_tags(new.terms.tags)
        asked["key"] = new.key and new.key.value
        late = None if new.terms.expires is None else due_at + new.terms.expires
        asked["expires_at"] = late if new.expires_at is None else new.expires_at
        return asked

    def _give_key(self, job: Job, key: Key | None) -> None:
        job.has_key = key is not None
        job.keep_key = None if key is None else key.keep
        job.key_until = None if key is None or key.period is None else self.clock.now() + key.period

    def _ask_holder(self, new: NewJob, key: Key) -> JobId | None:
        """The job that serves a request, if whoever has its key does; else the key is free afterwards."""
        now = self.clock.now()
        for job in self.jobs.values():
            if not job.has_key or (job.record.task, job.record.key) != (new.task, key.value):
                continue
            match decide_key(key, job.holder, now=now):
                case KeyDecision.REFUSE:
                    raise KeyTaken(key.value, key=key.value, job_id=job.record.id)
                case KeyDecision.TAKE_OVER:
                    job.has_key = False
                case KeyDecision.JOIN:
                    return job.record.id
                case KeyDecision.REPLACE:
                    unblamed = dict.fromkeys(("failures", "crashes", "blames"), 0)
                    job.change(**self._asked(new) | unblamed | dict.fromkeys(TOLD_OF_ERRORS))
                    self._give_key(job, key)
                    return job.record.id
        return None

    def _fits(self, job: Job, demand: ClaimRequest) -> bool:
        record, now = job.record, self.clock.now()
        if (
            record.state is not State.PENDING
            or record.queue in self.paused
            or record.task not in demand.tasks
        ):
            return False
        if record.priority >= demand.below_priority:
            return False
        safe = record.on_crash == "retry" and record.crashes == 0
        if (demand.ahead or demand.unstarted) and not safe:
            return False
        if demand.ahead and record.key is not None:
            return False
        return now < record.due_at <= now + demand.ahead if demand.ahead else record.due_at <= now

    def _hand_over(self, job: Job, worker: WorkerId, claim_id: str) -> None:
        job.claim_id = claim_id
        job.change(fence=job.record.fence + 1, worker=worker)

    def _settle(self, job: Job, sent: Settlement) -> None:
        if sent.attempt is not None:
            self.tries.append((job.record.id, job.record.fence, sent.attempt))
        stopped = sent.state is State.PENDING and job.record.cancel_requested_at is not None
        back = sent.state is State.PENDING and not stopped
        asked = job.record.cancel_requested_at is not None and cancel_beats(sent.state)
        columns = ("failures", "crashes", "blames", "result", "result_error", *TOLD_OF_ERRORS)
        job.change(
            state=State.CANCELLED if stopped else sent.state,
            reason=job.cancel_reason if asked else sent.reason,
            started_at=None if back else sent.started_at,
            finished_at=self.clock.now() if stopped else sent.finished_at,
            worker=None if back else sent.worker or job.record.worker,
            due_at=job.record.due_at if sent.due_at is None else sent.due_at,
            **{column: getattr(sent, column) for column in columns},
        )
        self.enqueue(sent.new_jobs)

    def _cancel(self, job: Job | None, reason: str) -> CancelAnswer:
        if job is None:
            return CancelAnswer.UNKNOWN
        if job.record.state.terminal:
            return CancelAnswer.FINISHED
        if job.record.cancel_requested_at is None:
            job.cancel_reason = reason
            job.change(cancel_requested_at=self.clock.now())
        if job.record.state is State.RUNNING:
            return CancelAnswer.REQUESTED
        job.change(state=State.CANCELLED, finished_at=self.clock.now(), reason=reason)
        return CancelAnswer.CANCELLED
