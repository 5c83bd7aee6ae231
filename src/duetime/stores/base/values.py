"""What stores are asked and what they answer, apart from the values of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Self

from duetime.errors import StoreError
from duetime.model.explain.facts import LimitFacts
from duetime.model.job import Claim, JobId, JobKind, NewJob, Token
from duetime.model.limits import Gate
from duetime.model.queues import LIVE, Registry
from duetime.model.schedule.record import StoredSchedule
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Instant, Micros
from duetime.model.worker import WorkerId

_UNSUCCESSFUL: Final = frozenset({Registry.FAILED, Registry.CANCELLED, Registry.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store can do that not every store can; the rest it refuses with a typed error."""

    transactions: bool = True
    """Whether jobs can be stored in a caller's transaction."""
    loans: bool = True
    """Whether the handler of any job can be lent a transaction, by which its job is settled."""
    one_order: bool = True
    """Whether the jobs of a queue are handed out in one order; else each part of the store has an order of its own."""
    persistent: bool = True
    """Whether jobs survive a restart of the server, as far as an open store knows; for one in memory, of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """What a worker can take on now; limits are an input to the claim, never a filter after it."""

    worker: WorkerId
    claim_id: str
    """Made by the caller before the call, so that a lost answer can be looked up."""
    queues: tuple[tuple[str, int], ...]
    """Queues in the order they are looked at, each with the most jobs to take from it."""
    limit: int
    """The most jobs to take in all."""
    tasks: tuple[str, ...]
    """The tasks the worker knows; others are left alone."""
    ahead: Micros = 0
    """0: what is due. Otherwise: only what falls due within this time from now, to be held unstarted."""
    unstarted: bool = False
    """Whether what is due is to be held unstarted, too."""
    below_priority: int = 10
    """Only jobs whose priority number is smaller, that is, more urgent ones."""
    limits: Mapping[str, Gate] = field(default_factory=dict[str, Gate])
    """For `claim_limited`: the limits of tasks, as this worker's code has them; others have none."""

    @property
    def pointless(self) -> bool:
        """Whether nothing can be claimed for it."""
        return self.limit <= 0 or not self.queues or not self.tasks

    @property
    def wanted(self) -> dict[str, int]:
        """The queues to take jobs from, with the most from each."""
        return {queue: most for queue, most in self.queues if most > 0}


class NextDue(NamedTuple):
    """The store's clock and the earliest due time of a pending job, if there is one."""

    now: Instant
    due_at: Instant | None
    """Of jobs that no limit applies to."""
    limited_at: Instant | None = None
    """Of the others, the earliest in the future; or, behind very many for other workers, when to ask again."""
    limited: bool = False
    """Whether a queue is limited or a job waits at a gate, so that `claim_limited` is worth asking."""


class LimitedClaims(NamedTuple):
    """What limits let through."""

    claims: list[Claim]
    again_at: Instant | None
    """When to ask again, if nothing happens before; `None` when only the end of a job can change the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseQuery:
    """What a heartbeat is to look for on its way, so that it needs no query of its own."""

    queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    """Jobs of these queues and tasks; none where either is empty."""
    schedules: bool = False
    orphans: bool = False


class PulseFindings(NamedTuple):
    """What a heartbeat has seen of what it was to look for."""

    due_at: Instant | None
    """When the next job falls due that no limit applies to, or sooner, behind many of other tasks; it may have passed."""
    fires_at: Instant | None
    """When the next schedule comes up; it may have passed."""
    resumes_at: Instant | None
    """When the next schedule goes on that is paused until a time; it may have passed."""
    orphans: bool
    """Whether there is anything to rescue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The answer to a heartbeat."""

    alive: bool
    """False: this worker was declared dead; it must drop everything and register under a new id."""
    now: Instant
    held: frozenset[Token] = frozenset()
    """The claims the store has under this worker; what is missing here is lost."""
    cancelling: frozenset[JobId] = frozenset()
    """Jobs under this worker whose cancellation is requested."""
    commands: bool = False
    """Whether the worker has been told something that it has not answered."""
    limited: bool = False
    """Whether limits are in use; `attend` does not look."""
    workers: int = 0
    """How many workers live, this one among them; `attend` does not count them."""
    newest: Instant = 0
    """When the last of them was started: another one in the place of one that went is not seen from their number."""
    lease_ends: Instant | None = None
    """When the first lease of the others ends unless it is renewed; it may have passed. `attend` does not look."""
    watched_until: Instant | None = None
    """Until when it is to note what it does, because someone watches; it may have passed."""
    sight: PulseFindings | None = None
    """What it has seen, if it was to look for something; `attend` does not look."""


class PeerWorker(NamedTuple):
    """Another living worker that may be found dead: by its process, if that is on the same host, or by its lease."""

    id: WorkerId
    pid: int
    pid_started: str | None
    same_host: bool
    lease_left: Micros
    """How long its lease lasts; negative once that is over."""


class OrphanedJob(NamedTuple):
    """A job taken over from a dead worker, under a new fence."""

    claim: Claim
    worker: WorkerId
    started_at: Instant | None
    blamed: bool
    """Whether it was the only suspect in its worker."""
    suspected: bool = False
    """Whether it may have been started without a note of that: it is due."""


class RescueResult(NamedTuple):
    """What a look for dead workers came to."""

    dead: list[WorkerId]
    """The workers that it has marked dead, because their lease is over; each is returned to one rescuer only."""
    orphans: list[OrphanedJob]


class QueueOutlook(NamedTuple):
    """What the queue and the limits of a job say about it now."""

    now: Instant
    paused_at: Instant | None
    paused_reason: str | None
    limits: tuple[LimitFacts, ...] = ()


class DueSchedules(NamedTuple):
    """The store's clock, schedules to fire or to let go on, and when to look for the others."""

    now: Instant
    schedules: list[StoredSchedule]
    next_at: Instant | None
    """The earliest next time among the others."""
    resumes_at: Instant | None = None
    """When the next schedule goes on that is paused until a time."""

    def up_to(self, limit: int) -> DueSchedules:
        """Return at most `limit` schedules; those that resume come first."""
        next_at, resumes_at = self.next_at, self.resumes_at
        for left in reversed(self.schedules[limit:]):
            if left.paused_at is None:
                next_at = left.next_at
            else:
                resumes_at = left.paused_until
        return DueSchedules(self.now, self.schedules[:limit], next_at, resumes_at)


class PruneResult(NamedTuple):
    """How many records a prune has removed, and where to go on."""

    jobs: int
    last: JobId | None
    """The last job it has looked at; `None` when none is left behind it."""


class CancelAnswer(StrEnum):
    """What became of a request to cancel."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    UNKNOWN = "unknown"


class DeleteAnswer(StrEnum):
    """What became of a request to delete a job."""

    DELETED = "deleted"
    RUNNING = "running"
    UNKNOWN = "unknown"


class EditAnswer(StrEnum):
    """What became of a request to change a job that waits."""

    CHANGED = "changed"
    RUNNING = "running"
    FINISHED = "finished"
    UNKNOWN = "unknown"
    DIFFERENT = "different"
    """It waits, but is not as it was said to be."""


class ReleaseAnswer(StrEnum):
    """What became of a request to take a job away from its worker."""

    RELEASED = "released"
    WAITING = "waiting"
    STARTED = "started"
    FINISHED = "finished"
    UNKNOWN = "unknown"


ENDED_OTHERWISE: Final = frozenset({State.FAILED, State.CANCELLED, State.SKIPPED})
"""The ends that are no success."""
BEHIND_ALL_IDS: Final = "\N{TILDE}"
"""What comes after every id, and after an id's beginning, after all ids that begin so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list; newest first."""

    task: str | None = None
    states: frozenset[State] = frozenset()
    """Only jobs in one of these; empty: in any."""
    registry: Registry | None = None
    queue: str | None = None
    schedule: str | None = None
    kind: JobKind | None = None
    key: str | None = None
    tag: str | None = None
    since: Instant | None = None
    """Only jobs that were enqueued then or later."""
    until: Instant | None = None
    """Only jobs that were enqueued before."""
    before: JobId | None = None
    """Only jobs with smaller ids: the cursor of the next page."""
    limit: int = 50
    look_at: int | None = None
    """About how many jobs are looked at, at most; `None`: all that there are."""

    @property
    def wants_live(self) -> bool:
        """Whether it asks for jobs that have not ended."""
        live = bool(self.states) and not any(state.terminal for state in self.states)
        return live or self.registry in LIVE

    @property
    def wants_running(self) -> bool:
        """Whether it asks for jobs that workers have."""
        return self.states == {State.RUNNING} or self.registry is Registry.ACTIVE

    @property
    def wants_unsuccessful(self) -> bool:
        """Whether it asks for jobs that ended without success."""
        ended_so = bool(self.states) and self.states <= ENDED_OTHERWISE
        return ended_so or self.registry in _UNSUCCESSFUL


class JobPage(list[StoredJob]):
    """Jobs, newest first, and how far they were looked for."""

    def __init__(self, jobs: Iterable[StoredJob] = (), *, looked_to: JobId | None = None) -> None:
        super().__init__(jobs)
        self.looked_to = looked_to
        """The last id that was looked at; `None`: there are no more, or the page is full."""


class StoredLock(NamedTuple):
    """A lock that is held."""

    name: str
    token: str
    """Its owner: a secret of one acquisition."""
    holder: str
    """Who that is, for people."""
    fence: int
    """Rises with every owner."""
    since: Instant
    deadline: Instant
    left: Micros


class Hint(NamedTuple):
    """Something may have changed; hints may be spurious and may be lost."""

    kind: Literal["any", "jobs", "journal", "limits", "lock", "worker", "workers", "schedules"]
    name: str = ""
    """The worker for `worker`, the name of a lock for `lock`, else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One finding of `doctor`."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None

    @classmethod
    def of(cls, name: str, ok: object, detail: str, fix: str | None = None) -> Self:
        """Return a finding; how to mend it is told only where something is wrong."""
        return cls(name=name, ok=bool(ok), detail=detail, fix=None if ok else fix)

    @classmethod
    def refused(cls, name: str, error: StoreError) -> Self:
        """Tell of what a store has refused: its errors say what is wrong and, behind the last semicolon, what to do."""
        detail, semicolon, fix = str(error).rpartition("; ")
        detail, fix = (detail, fix) if semicolon else (fix, "see the log of the server")
        return cls.of(name, ok=False, detail=detail, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """Which version the tables have, and which this code needs."""

    found: int
    wanted: int
    pending: tuple[str, ...] = field(default=())
    moved: str | None = None
    """That the work goes on elsewhere, if it does."""


class ArgumentsMismatch(NamedTuple):
    """A request that is served by a job with other arguments."""

    job: NewJob
    served_by: JobId
