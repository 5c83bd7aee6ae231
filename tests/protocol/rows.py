"""The store of the model: its rows, and each statement as a function from store to store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Fence = Literal["id", "state", "worker", "integer", "full"]
Outcome = Literal["succeeded", "retry", "released", "lost"]
State = Literal["pending", "running", "succeeded", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The guards of the protocol; each can be weakened to see what it is for."""

    fence: Fence = "full"
    """What a write of a claim must match: the id alone, also the state, worker name, fence, claim id."""
    on_crash: Literal["retry", "fail"] = "retry"
    claim_needs_alive: bool = True
    pulse_needs_alive: bool = True
    rescue_takes_new_claim: bool = True
    rescue_looks_at_start: bool = True
    release_is_free: bool = True
    fail_claims_are_starts: bool = True
    fire_compares: bool = True
    occurrence_is_unique: bool = True
    lost_answers_looked_up: bool = True
    unknown_claims_returned: bool = True
    lost_session_is_death: bool = False
    """Whether a worker is marked dead because its connection is gone, though its lease is good."""


class Job(NamedTuple):
    """A job's row; the last three columns exist only for the invariants."""

    state: State = "pending"
    fence: int = 0
    claim: int = 0
    worker: str = ""
    started: bool = False
    failures: int = 0
    crashes: int = 0
    occurrence: int = 0
    pruned: bool = False
    runs: int = 0
    lapsed: bool = False
    """Whether the lease of its worker ran out, or its process was seen to be gone, during the claim."""
    settled: int = 0

    @property
    def terminal(self) -> bool:
        return self.state in ("succeeded", "failed")

    @property
    def recorded(self) -> tuple[object, ...]:
        """The columns that a real store has."""
        return self[:8]


GONE = Job(state="failed", pruned=True)


class Worker(NamedTuple):
    """A worker's row: its lease is here and nowhere else. A missing row counts as dead."""

    id: str
    alive: bool = True
    leased: bool = True


class Ask(NamedTuple):
    """A request to claim a job: now that it is due, ahead of that, or from a dead worker."""

    job: int
    claim: int
    worker: str
    purpose: Literal["due", "ahead", "rescue"]


class Settle(NamedTuple):
    """A request to record what a claim came to."""

    job: int
    fence: int
    claim: int
    worker: str
    outcome: Outcome


class Store(NamedTuple):
    """Everything that is written down."""

    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    fired_through: int = 0
    made: tuple[int, ...] = ()
    """How many jobs each occurrence ever got; only for the invariants."""

    def worker(self, worker_id: str) -> Worker | None:
        return next((row for row in self.workers if row.id == worker_id), None)

    def alive(self, worker_id: str) -> bool:
        row = self.worker(worker_id)
        return row is not None and row.alive

    def job(self, number: int) -> Job:
        """A job's row, or one that nothing can be done with when the store has lost it."""
        return self.jobs[number] if number < len(self.jobs) else GONE

    def with_job(self, number: int, job: Job) -> Store:
        return self._replace(jobs=(*self.jobs[:number], job, *self.jobs[number + 1 :]))

    def with_worker(self, row: Worker) -> Store:
        others = [other for other in self.workers if other.id != row.id]
        return self._replace(workers=tuple(sorted([*others, row])))


def claim(rules: Rules, store: Store, ask: Ask) -> Store | None:
    """Give a pending job to a worker; a claim that is not ahead of the due time is also the start."""
    job = store.job(ask.job)
    if job.state != "pending" or job.pruned:
        return None
    if rules.claim_needs_alive and not store.alive(ask.worker):
        return None
    row = store.worker(ask.worker)
    return store.with_job(
        ask.job,
        job._replace(
            state="running",
            fence=job.fence + 1,
            claim=ask.claim,
            worker=ask.worker,
            started=ask.purpose == "due",
            runs=job.runs + (ask.purpose == "due"),
            lapsed=row is not None and row.alive and not row.leased,
            settled=0,
        ),
    )


def take_over(rules: Rules, store: Store, ask: Ask) -> Store:
    """Move a lost job to its rescuer, under a claim that its old holder does not know."""
    job = store.job(ask.job)
    if rules.rescue_takes_new_claim:
        job = job._replace(fence=job.fence + 1, claim=ask.claim)
    return store.with_job(ask.job, job._replace(worker=ask.worker, settled=0))


def carries(rules: Rules, job: Job, request: Settle) -> bool:
    """True when the row matches all that the fence rule compares besides the state."""
    match rules.fence:
        case "id" | "state":
            return True
        case "worker":
            # The name comes back when the process does, as host:pid would; the number after it does not.
            return job.worker[:1] == request.worker[:1]
        case "integer":
            return job.fence == request.fence
        case "full":
            return (job.fence, job.claim) == (request.fence, request.claim)


def settle(rules: Rules, store: Store, request: Settle) -> Store | None:
    """Record an outcome, or None when the claim is no longer the job's."""
    job = store.job(request.job)
    if job.pruned or not carries(rules, job, request):
        return None
    if job.state == "running" or rules.fence == "id":
        return store.with_job(request.job, _settled(rules, job, request))
    # The same request again: the first answer was lost, so this one must be the same answer.
    return store if rules.fence in ("integer", "full") else None


def _settled(rules: Rules, job: Job, request: Settle) -> Job:
    crashed = job.started or not rules.rescue_looks_at_start
    done = job._replace(settled=request.claim, lapsed=False)
    match request.outcome:
        case "succeeded":
            return done._replace(state="succeeded", started=True)
        case "retry":
            return done._replace(state="pending", started=False, failures=job.failures + 1)
        case "released":
            return done._replace(
                state="pending", started=False, failures=job.failures + (not rules.release_is_free)
            )
        case "lost":
            failed = crashed and rules.on_crash == "fail"
            return done._replace(
                state="failed" if failed else "pending", started=failed, crashes=job.crashes + crashed
            )


def note_start(rules: Rules, store: Store, request: Settle) -> Store | None:
    """Write down that a job claimed ahead has begun, or None when the claim is lost."""
    job = store.job(request.job)
    if job.state != "running" or not carries(rules, job, request):
        return None
    return store.with_job(request.job, job._replace(started=True))


def pulse(rules: Rules, store: Store, worker_id: str) -> Store | None:
    """Extend a worker's lease, or None when the store no longer counts it as alive."""
    row = store.worker(worker_id)
    if row is None or (rules.pulse_needs_alive and not row.alive):
        return None
    return store.with_worker(Worker(worker_id))


def lapse(store: Store, worker_id: str) -> Store:
    """Let a worker's lease run out."""
    return _forsaken(store, worker_id).with_worker(Worker(worker_id, leased=False))


def bury(store: Store, row: Worker, *, gone: bool) -> Store:
    """Mark a worker dead, of which it may be seen that its process is gone."""
    return (_forsaken(store, row.id) if gone else store).with_worker(row._replace(alive=False))


def _forsaken(store: Store, worker_id: str) -> Store:
    jobs = tuple(
        job._replace(lapsed=True) if job.state == "running" and job.worker == worker_id else job
        for job in store.jobs
    )
    return store._replace(jobs=jobs)


def fire(rules: Rules, store: Store, seen: int) -> Store | None:
    """Make the job of the occurrence after `seen`, or None when somebody moved the schedule on."""
    if rules.fire_compares and store.fired_through != seen:
        return None
    occurrence = seen + 1
    kept = any(job.occurrence == occurrence and not job.pruned for job in store.jobs)
    store = store._replace(fired_through=occurrence)
    if rules.occurrence_is_unique and kept:
        return store
    made = list(store.made)
    made[occurrence - 1] += 1
    return store._replace(jobs=(*store.jobs, Job(occurrence=occurrence)), made=tuple(made))
