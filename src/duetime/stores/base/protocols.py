"""What every store can do: small protocols in verbs of the domain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Protocol, Self

from duetime.model.job import Claim, JobEdit, JobId, NewJob, Token
from duetime.model.limits import Gate
from duetime.model.locks import Attempt
from duetime.model.outcome import Settlement
from duetime.model.queues import DueJobs, QueueCensus, StoredQueue
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.retention import Retention
from duetime.model.schedule.actions import CodeSchedule
from duetime.model.schedule.occurrences import SpanCut
from duetime.model.schedule.record import Firing, ScheduleUpdate, StoredSchedule
from duetime.model.schedule.runs import ScheduleRuns
from duetime.model.states import State
from duetime.model.statistics import StatisticsParts, StatisticsRow, StoredStatistics
from duetime.model.stored.announced import StoredTask, TaskAnnouncement
from duetime.model.stored.audit import NOTHING_NOTED, AuditEntry, Noted, StoredAuditEntry
from duetime.model.stored.copy import RecordKind, WholeRecord
from duetime.model.stored.credentials import Credential, CredentialId, CredentialKind, NewCredential
from duetime.model.stored.jobs import StoredAttempt, StoredJob, StoredWorker
from duetime.model.stored.watched import JobOutline, WatchedWorker
from duetime.model.time import Instant, Micros
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base.values import (
    CancelAnswer,
    Capabilities,
    ClaimRequest,
    DeleteAnswer,
    DoctorCheck,
    DueSchedules,
    EditAnswer,
    Hint,
    JobFilter,
    JobPage,
    LimitedClaims,
    NextDue,
    PeerWorker,
    PruneResult,
    Pulse,
    PulseQuery,
    QueueOutlook,
    ReleaseAnswer,
    RescueResult,
    SchemaStatus,
    StoredLock,
)


class ScheduleStore(Protocol):
    """Schedules."""

    async def write_schedules(
        self, changes: Sequence[ScheduleUpdate], *, whole: bool = False
    ) -> frozenset[str]:
        """Write, in one atomic step, each change whose schedule is as it was read; return the names written.

        `whole`: all of them or, where one cannot be written, none. With each go its jobs and its entry, and planted jobs that have not started are withdrawn where asked for.
        A change that had been written before, which its entry tells, counts as written, so a lost answer can be repeated.
        """
        ...

    async def due_schedules(self, *, ahead: Micros, limit: int) -> DueSchedules:
        """Return schedules whose next time lies at most `ahead` from now, earliest first.

        Paused ones come only when the time has come until which they were paused; parked ones never.
        """
        ...

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        """Apply each firing whose compare-and-set holds, jobs included, and return the names applied."""
        ...

    async def delete_schedule(self, name: str, entry: AuditEntry) -> bool:
        """Remove a schedule and withdraw its planted, unstarted jobs; False when unknown.

        True also when it was this deletion, which its entry tells, that had removed it before.
        """
        ...

    async def backfill(
        self, jobs: Sequence[NewJob], entry: AuditEntry, *, cuts: Sequence[SpanCut] = ()
    ) -> list[JobId] | None:
        """Store jobs for occurrences, and return the ids of those that are stored.

        An occurrence that has a record already is left alone, unless a cut lets it give way. `None`: a record that was
        to be cut is not as it was read, and nothing was done. The entry is kept if something was stored. Safe to repeat.
        """
        ...

    async def schedules(
        self, *, after: str = "", limit: int | None = None, queues: Collection[str] | None = None
    ) -> list[StoredSchedule]:
        """Return schedules by name: all, or the first ones behind a name, or only those of some queues."""
        ...

    async def code_schedules(self) -> list[CodeSchedule]:
        """Return the schedules that code has declared, in brief."""
        ...

    async def get_schedules(self, names: Sequence[str]) -> list[StoredSchedule]:
        """Return the schedules that exist, by name."""
        ...

    async def occurrences(self, name: str, *, since: Instant, until: Instant, limit: int) -> list[StoredJob]:
        """Return the records of a schedule whose occurrence lies in a stretch of time, and the first one after it.

        By occurrence; the one after it may stand for a run of skipped ones that begins earlier.
        """
        ...

    async def past_occurrences(
        self, name: str, *, until: Instant, limit: int, made: bool = False
    ) -> list[StoredJob]:
        """Return the records of a schedule up to an instant, latest first; `made`: without what was skipped."""
        ...

    async def runs(self, names: Sequence[str], *, most: int) -> Mapping[str, ScheduleRuns]:
        """Return how schedules fare, by name: their latest run, and how many ended how, counted up to one more than `most`.

        A job that was skipped, or cancelled before it started, has not run. Jobs that were triggered by hand count as
        well, and so do those of a schedule of the same name that was deleted.
        """
        ...

    async def entries(
        self, target: str | None, *, limit: int, before: str | None = None
    ) -> list[StoredAuditEntry]:
        """Return what was done to something, or at all, newest first; `before`: only what is older than this entry."""
        ...


class MovingStore(Protocol):
    """Whole records, and whether they are still where the work is."""

    async def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> list[WholeRecord]:
        """Return records by key as they are stored, behind one key and up to another, at most `limit` of them."""
        ...

    async def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> None:
        """Remove records by key and store others as they are, parts included, in one atomic step; safe to repeat.

        A record whose key is there and is not to go stays as it is. No one is hinted, and nothing is counted or judged.
        """

    async def set_moved(self, note: str | None) -> None:
        """Note that the work goes on elsewhere, so that no worker is registered here any more; `None`: it is here."""


class HandlerTransaction(Protocol):
    """A transaction of the store's, lent to the handler of one job, which must neither commit nor close it."""

    @property
    def blocking(self) -> bool:
        """Whether its connection can be used without an event loop, in any thread."""
        ...

    @property
    def expired(self) -> bool:
        """Whether it was rolled back because it took too long."""
        ...

    def keeps_out(self, store: object) -> bool:
        """Whether a store cannot write while this is open."""
        ...

    async def begin(self) -> object:
        """Wait for the transaction and return the connection of the database's own driver, or what the handler gave."""
        ...

    async def complete(self, settlement: Settlement) -> None:
        """Write the settlement as the last statement and commit.

        Raises `TimeoutError` when it took too long, `ClaimLost` when the claim does not hold any more, and `TransactionMisused` when the handler has
        ended the transaction itself. When the answer to the commit is lost, what came of it is looked up.
        """

    async def abandon(self, error: BaseException) -> None:
        """Roll back because of an error; raises `TransactionMisused` when there is nothing left to roll back."""


class JobStore(Protocol):
    """The hot path."""

    @property
    def single_writer(self) -> bool:
        """Whether no one else can write while a transaction is open."""
        ...

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers; return the id each request is stored under.

        A request whose key another job of its task has is served by that job, replaces it, or takes the key
        over, as `model.job.decide_key` decides; two with one key in a batch count as coming one after the other.
        Raises `KeyTaken` for one that insists on its own job, and then stores nothing.

        With `tx`, a caller's own transaction on this store's database, they are stored when that commits, and
        workers are hinted then. Raises `InvalidTransaction`, and leaves it as it was, if it cannot be used.
        """
        ...

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Do as `enqueue` does for a caller without an event loop, if possible in the caller's own thread.

        None, and nothing is stored, where the store needs its event loop for that.
        """
        ...

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """Store jobs in the transaction of a caller without an event loop, in the caller's own thread.

        The store must be open and must have been asked for its `identity` before.
        """
        ...

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Atomically hand out jobs, most urgent first within each queue, each under a raised fence.

        Requires the worker to be alive, and leaves paused queues, waiting jobs and unknown tasks alone, and
        what is limited to `claim_limited`.
        Normally the claim is the start: `started_at` is set. For jobs to be held unstarted it stays empty, and
        only those are taken that are safe to hold: `on_crash="retry"` ones that never crashed.
        """
        ...

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out due jobs that wait at gates or in limited queues, no more than the limits let through.

        This holds however many workers claim at once, and if workers die meanwhile. A job that cannot start hides no job that can.
        """
        ...

    async def claims_under(self, worker: WorkerId, claim_id: str) -> list[Claim]:
        """Return what a claim of a worker whose answer was lost had handed out and is still held."""
        ...

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        """Record that claims taken ahead have been started, fenced."""

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens; others change nothing.

        A settlement that this claim had already written counts as accepted, so a lost answer can be repeated.
        """
        ...

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced; the latest progress counts, a log part is stored once."""

    def lend(self, *, timeout: Micros, tx: object = None) -> HandlerTransaction:
        """Return a transaction for a handler, which begins when it is told to: the store's own, or the handler's `tx`.

        Where there are no transactions, beginning it raises `Unsupported`. Raises `InvalidTransaction` for a `tx` that
        cannot be used.
        """
        ...

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Tell when the next pending job of these queues falls due; a read that takes no lock."""
        ...


class WorkerStore(Protocol):
    """Leases and rescue."""

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock; raises `StoreMoved` where the work goes on elsewhere."""
        ...

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        """Renew the lease of a living worker and look around on the way; a dead one stays dead."""
        ...

    async def attend(self, worker: WorkerId) -> Pulse:
        """Answer as `pulse` does without renewing anything; for a worker that was hinted."""
        ...

    async def retire(self, worker: WorkerId) -> None:
        """Mark a worker as stopped; its claims, if any are left, can be rescued at once, its commands are dropped."""

    async def peers(self, worker: WorkerId, host_key: str | None, *, soon: Micros) -> list[PeerWorker]:
        """Return the other living workers on the same host, and those elsewhere whose lease ends within `soon`."""
        ...

    async def bury(self, workers: Sequence[WorkerId]) -> list[WorkerId]:
        """Mark living workers as dead, and drop their commands; return those that were alive until now."""
        ...

    async def rescue(self, worker: WorkerId, claim_id: str) -> RescueResult:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        ...


class WatchStore(Protocol):
    """For those who watch: what changes, without a search; where no one does, nothing is noted."""

    async def watch(self, known: Sequence[WorkerId], *, lease: Micros) -> list[WatchedWorker]:
        """Have the living workers note what they do for as long as the lease; return what they, and `known` ones, have noted.

        Those that do not know it are hinted; an answer to `pulse` or `attend` tells them. A worker that works on several
        stores is named once for each, in the same order every time.
        """
        ...

    async def write_journal(self, worker: WorkerId, journal: str) -> None:
        """Store what a worker has noted in place of what it had noted before, and hint those who watch."""

    async def glance(self, ids: Sequence[JobId], *, newest: int) -> list[JobOutline]:
        """Return outlines of the jobs that exist, and of the newest ones, each once; cheap however many are stored."""
        ...


class TaskStore(Protocol):
    """The tasks that workers have announced: each is stored once, however many workers know it."""

    async def announce(self, tasks: Sequence[TaskAnnouncement]) -> None:
        """Store tasks in place of those of the same names."""

    async def announced(self, names: Sequence[str] | None = None) -> list[StoredTask]:
        """Return announced tasks by name, all or those of these names."""
        ...


class CommandStore(Protocol):
    """What workers are told through the store."""

    async def send(self, commands: Sequence[NewCommand], *, noted: Noted = NOTHING_NOTED) -> list[Command]:
        """Tell workers that are alive, and hint them; return the commands that are stored, in the order asked.

        With each of them is stored what is to be noted of it, by the id of the command.
        """
        ...

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        """Return what a worker was told and has not answered, oldest first; again, until it is answered."""
        ...

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        """Record what came of a command; one that has an outcome already keeps it."""

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        ...

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        ...


class ControlStore(Protocol):
    """What operators do, and in the same atomic step what is noted of it, where something has changed."""

    async def cancel(
        self, ids: Sequence[JobId], *, reason: str, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        ...

    async def delete(
        self, ids: Sequence[JobId], *, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, DeleteAnswer]:
        """Remove jobs that no worker has, waiting or ended, with their attempts, logs and keys; nothing is called back."""
        ...

    async def edit(
        self, ids: Sequence[JobId], change: JobEdit, *, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, EditAnswer]:
        """Change pending jobs, and hint the workers."""
        ...

    async def release(
        self, ids: Sequence[JobId], *, force: bool, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers, unstarted ones only unless by force, and hint those workers.

        The fence is raised, so that the run that lost its claim can record nothing.
        """
        ...

    async def pause_queue(self, queue: str, *, reason: str | None, entry: AuditEntry | None = None) -> None:
        """Hand out nothing more from a queue."""

    async def resume_queue(self, queue: str, *, entry: AuditEntry | None = None) -> None:
        """Hand out jobs of a queue again."""

    async def purge(
        self, queue: str, *, before: Instant, reason: str, limit: int, entry: AuditEntry | None = None
    ) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many.

        What a worker has, started or not, is left alone.
        """
        ...

    async def set_queue_limit(
        self, queue: str, limit: Gate | None, *, entry: AuditEntry | None = None
    ) -> None:
        """Limit how many jobs of a queue run at once and start in a period, from now on; `None` for no limit."""

    async def prune_gates(self) -> int:
        """Forget some of the gates that no job needs; return how many."""
        ...

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at some jobs behind one, oldest first; remove records that may go, with their attempts and logs.

        Of those that stay, results and errors that have outlived their time are dropped. A dry run only counts.
        """
        ...


class ReadStore(Protocol):
    """For clients, command line and dashboards; never used on the hot path."""

    async def identity(self) -> str:
        """Return what tells this store from every other."""
        ...

    async def now(self) -> Instant:
        """Return the store's clock."""
        ...

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        ...

    async def find(self, where: JobFilter) -> JobPage:
        """Return one page of jobs, newest first."""
        ...

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        ...

    async def attempts(self, job_id: JobId) -> list[StoredAttempt]:
        """Return the tries that ended without ending the job, oldest first."""
        ...

    async def logs(self, job_id: JobId, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order; `after`: only behind this fence and line."""
        ...

    async def workers(self) -> list[StoredWorker]:
        """Return all workers that are known, newest first."""
        ...

    async def outlook(self, queue: str, *, gate: str | None = None) -> QueueOutlook:
        """Return what else than workers decides whether jobs in a queue, under a gate, are handed out."""
        ...

    async def queues(self) -> list[StoredQueue]:
        """Return what is set for queues, by name; one that was resumed, or has no limit any more, may be among them."""
        ...

    async def census(self, *, most: int) -> QueueCensus:
        """Count what is in each queue, up to a bound for each thing that is counted: never in need of a full scan."""
        ...

    async def due_jobs(self, *, most: int) -> list[DueJobs]:
        """Tell which tasks the due jobs that no worker has are of, by queue and task.

        At least `most` jobs of each queue are looked at, and of those at gates; of up to `most` queues.
        """
        ...

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        ...


class LockStore(Protocol):
    """Locks that people take; they need no other table."""

    async def make_locks(self) -> None:
        """See that locks can be kept; any number of processes may do it at once."""

    async def take_lock(
        self, name: str, *, token: str, holder: str, ttl: Micros, instead_of: str | None = None
    ) -> Attempt:
        """Take a lock that is free or past its deadline, or that `instead_of` owns, in one atomic step.

        The fence is the larger of the last one plus one and the store's clock, so that it never goes back.
        """
        ...

    async def renew_lock(self, name: str, *, token: str, ttl: Micros) -> bool:
        """Put the deadline off to `ttl` from now; False unless the token owns the lock, and in time."""
        ...

    async def release_lock(self, name: str, *, token: str) -> bool:
        """Give a lock back and hint those who wait; False unless the token owns the lock, and in time."""
        ...

    async def locks(self, name: str | None = None) -> list[StoredLock]:
        """Return the locks that are held, by name; or the one of this name."""
        ...

    async def forget_locks(self) -> int:
        """Remove what no one holds, and return how many that were."""
        ...


class AccessStore(Protocol):
    """Who may do what over a network; what was revoked or has expired is removed by `prune`."""

    async def add_credential(self, new: NewCredential, *, entry: AuditEntry | None = None) -> None:
        """Accept a secret from now on; safe to repeat."""

    async def find_credential(self, digest: str) -> Credential | None:
        """Return the one with this digest, if it is accepted now: neither revoked nor expired by the store's clock."""
        ...

    async def credentials(self, kind: CredentialKind) -> list[Credential]:
        """Return all of a kind, newest first; those that are not accepted any more are there for a while."""
        ...

    async def touch_credential(self, credential: CredentialId, *, lifetime: Micros | None = None) -> bool:
        """Note that it is used, and with `lifetime` have it end so long from now; False if it is not accepted any more."""
        ...

    async def revoke_credentials(
        self, ids: Sequence[CredentialId], *, noted: Noted = NOTHING_NOTED
    ) -> frozenset[CredentialId]:
        """Accept these no more, nor what was made from them; return those that this very call has revoked.

        Of several calls at once one revokes: so a link is used once.
        """
        ...


class StatisticsStore(Protocol):
    """Figures over time: workers add parts, and one after the other merges them into rows."""

    async def add_statistics(self, parts: Sequence[StatisticsRow]) -> None:
        """Keep what a worker has counted; safe to repeat."""

    async def statistics_parts(self, *, limit: int) -> StatisticsParts:
        """Return the oldest parts that are not merged yet."""
        ...

    async def statistics_rows(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the bodies of the rows that exist, by id."""
        ...

    async def fold_statistics(self, folds: int, parts: Sequence[str], rows: Sequence[StatisticsRow]) -> bool:
        """Put rows in the place of parts, in one atomic step; False if anyone has done so since, or does it now."""
        ...

    async def statistics(self, ranges: Sequence[tuple[str, str]]) -> StoredStatistics:
        """Return the rows whose ids lie in ranges, up to but not with their ends, and what is not merged yet."""
        ...

    async def prune_statistics(self, now: Instant) -> None:
        """Remove what was kept long enough."""


class Store(
    JobStore,
    WorkerStore,
    WatchStore,
    TaskStore,
    CommandStore,
    ScheduleStore,
    ControlStore,
    ReadStore,
    MovingStore,
    LockStore,
    AccessStore,
    StatisticsStore,
    Protocol,
):
    """A durable home for jobs and schedules."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do that not every store can."""
        ...

    @property
    def parts(self) -> Sequence[Store]:
        """The stores that jobs are in: itself, or several, in each of which a worker has a lease; the last has schedules."""
        ...

    @property
    def moved(self) -> str | None:
        """What `set_moved` had noted when the store last looked at its tables, as it does when it is opened."""
        ...

    async def open(self, *, check: bool = True) -> None:
        """Connect and check the schema; raises `SchemaMismatch` with the command that mends it.

        `check=False` only connects, for those who look at the schema or mend it.
        """

    async def close(self) -> None:
        """Let go of every connection and thread; safe to call twice."""

    async def migrate(self) -> SchemaStatus:
        """Bring the tables to this code's version; any number of processes may try at once."""
        ...

    async def uninstall(self, *, dry_run: bool = False) -> Mapping[str, int]:
        """Remove all that is stored under this namespace, tables included, and nothing else; tell how many rows or keys.

        By the name of the table, or the kind of key. Safe to repeat, also after it was cut off. A dry run only counts.
        """
        ...

    async def schema_status(self) -> SchemaStatus:
        """Compare the tables with what this code needs."""
        ...

    async def pending_sql(self) -> str:
        """Return what `migrate` would run, for people who apply it themselves; empty when nothing is missing."""
        ...

    def sibling(self) -> Self:
        """Return a store on the same database for another thread's event loop, on connections of its own."""
        ...

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled, from this process at once and from others within milliseconds."""
        ...

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present; if not, poll."""
        ...

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise."""
        ...
