"""The one store for all SQL databases: each verb a script, each script run by the database's driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from duetime.errors import StoreError, StoreMoved
from duetime.model.audit import AuditEntry
from duetime.model.job import Claim, JobId, NewJob, Token
from duetime.model.outcome import Settlement, is_plain_success, leaves_work
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.retention import Retention
from duetime.model.states import State
from duetime.model.time import DAY, Clock, Instant, Micros
from duetime.model.worker import WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import (
    Capabilities,
    ClaimRequest,
    DoctorCheck,
    Hint,
    JobFilter,
    LimitedClaims,
    NextDue,
    PeerWorker,
    PruneResult,
    Pulse,
    PulseQuery,
    RescueResult,
    SchemaStatus,
)
from duetime.stores.sql.claims import claim, claims_under, mark_started, next_due, quote_blobs
from duetime.stores.sql.commands import SqlCommands
from duetime.stores.sql.copying import SqlCopying
from duetime.stores.sql.driver import Driver, Script
from duetime.stores.sql.enqueue import SqlEnqueuing
from duetime.stores.sql.queues import SqlQueues, counts
from duetime.stores.sql.records import attempts, clock, find, get, logs, upcoming, workers
from duetime.stores.sql.retention import carry_out, look, prune_workers
from duetime.stores.sql.schedules import SqlSchedules
from duetime.stores.sql.schema import check_version, migrate, migrations, pending_sql, read_status
from duetime.stores.sql.settling import report, settle, settled_before
from duetime.stores.sql.statements.dialect import Dialect
from duetime.stores.sql.statements.loader import load
from duetime.stores.sql.workers import attend, bury, forsaken, peers, pulse, register, rescue, retire

if TYPE_CHECKING:
    from duetime.model.stored import StoredAttempt, StoredJob, StoredWorker
    from duetime.stores.base import HandlerTransaction
    from duetime.stores.sql.claims import Backlogs
    from duetime.stores.sql.limits import LimitedClaimer


_PRUNED_AT_ONCE: Final = 1_000
"""How many jobs a prune looks at, and removes at the most."""


class SqlStore(SqlQueues, SqlCommands, SqlSchedules, SqlCopying):
    """A store on a SQL database, through its driver and its dialect."""

    def __init__(
        self,
        driver: Driver,
        dialect: Dialect,
        *,
        namespace: str,
        clock: Clock | None = None,
        url: str,
        auto_migrate: bool,
    ) -> None:
        """`clock`: the store's, where the database has none of its own."""
        self._driver = driver
        self._dialect = dialect
        self._namespace = namespace
        self._clock = clock
        self._url = url
        self._auto_migrate = auto_migrate
        self._sql = load(dialect, namespace)
        self.moved: str | None = None
        self._steps = migrations(dialect, namespace)
        self._enqueuing = SqlEnqueuing(driver, self._sql, clock, looks_first=dialect.looks_before_storing)

    async def open(self, *, check: bool = True) -> None:
        """Connect, and bring the tables to this version or check that they are."""
        await self._driver.open()
        if not check:
            return
        try:
            status = await self.schema_status()
            if status.found < status.wanted and self._auto_migrate:
                status = await self.migrate()
            check_version(status, url=self._url)
        except BaseException:
            await self._driver.close()
            raise

    async def close(self) -> None:
        """Let go of every connection and thread."""
        await self._driver.close()

    async def migrate(self) -> SchemaStatus:
        """Apply what is missing."""
        return await self._driver.write(lambda: migrate(self._sql, self._steps), rows=None)

    async def schema_status(self) -> SchemaStatus:
        """Compare the tables with what this code needs."""
        status = await self._driver.read(lambda: read_status(self._sql, self._steps))
        self.moved = status.moved
        return status

    async def pending_sql(self) -> str:
        """Return the SQL that `migrate` would run."""
        status = await self.schema_status()
        return pending_sql(self._steps, status.found)

    def sibling(self) -> Self:
        """Return a store for another thread's event loop."""
        return type(self)(
            self._driver.sibling(),
            self._dialect,
            namespace=self._namespace,
            clock=self._clock,
            url=self._url,
            auto_migrate=False,
        )

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled."""
        return self._driver.wakeups()

    @property
    def capabilities(self) -> Capabilities:
        """All there are."""
        return Capabilities()

    @property
    def single_writer(self) -> bool:
        """Whether nobody else can write while a transaction is open."""
        return self._driver.single_writer

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present."""
        return self._driver.hears_others

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs and entries or none, and hint the workers."""
        if not jobs:
            return []
        if tx is None:
            return await self._enqueuing.enqueue(jobs, entries=entries)
        return await self._enqueuing.enqueue_in(tx, jobs, entries=entries)

    def enqueue_blocking(
        self, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId] | None:
        """Store all jobs and entries or none for a thread that may wait, if that needs no event loop."""
        return self._enqueuing.enqueue_blocking(jobs, entries=entries) if jobs else []

    def enqueue_blocking_in(self, tx: object, jobs: Sequence[NewJob]) -> list[JobId]:
        """Store jobs in a blocking caller's transaction, in this thread."""
        return self._enqueuing.enqueue_blocking_in(tx, jobs) if jobs else []

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Atomically hand out jobs."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return []
        if not self._dialect.claims_per_statement:
            return await self._claim_packed(demand)
        floors = self._backlogs.floors(demand)
        claims = await self._driver.write(
            lambda: claim(self._sql, demand, one_statement=True, floors=floors),
            atomic=False,
            rows=demand.limit,
        )
        self._backlogs.note(demand, claims, floors=floors)
        return claims

    async def _claim_packed(self, demand: ClaimRequest) -> list[Claim]:
        def script() -> Script[list[Claim]]:
            return claim(self._sql, demand, one_statement=False)

        try:
            return await self._driver.write(script, rows=demand.limit)
        except StoreError as error:
            if "BLOB" not in str(error):
                raise
        await self._driver.write(lambda: quote_blobs(self._sql))
        return await self._driver.write(script, rows=demand.limit)

    @cached_property
    def _backlogs(self) -> Backlogs:
        # Here, because SQLite knows none.
        from duetime.stores.sql.claims import Backlogs

        return Backlogs()

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out due jobs that limits let through."""
        return await self._limited.claim(demand)

    @cached_property
    def _limited(self) -> LimitedClaimer:
        # Here, because most workers know no limits.
        from duetime.stores.sql.limits import LimitedClaimer

        return LimitedClaimer(self._driver, self._sql, one_statement=self._dialect.claims_per_statement)

    async def claims_under(self, worker: WorkerId, claim_id: str) -> list[Claim]:
        """Return what a claim whose answer was lost had handed out and is still held."""
        return await self._driver.read(lambda: claims_under(self._sql, worker, claim_id))

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        """Record that claims taken ahead have been started, fenced."""
        if tokens:
            await self._driver.write(
                lambda: mark_started(self._sql, tokens, started_at), atomic=False, rows=len(tokens)
            )

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens."""
        if not settlements:
            return frozenset()
        plain = all(map(is_plain_success, settlements))
        atomic = not plain and any(map(_takes_several_statements, settlements))
        accepted = await self._driver.write(
            lambda: settle(self._sql, settlements, plain=plain), atomic=atomic, rows=len(settlements)
        )
        if not plain:
            self._hint_settled(settlements)
        if len(accepted) < len(settlements):
            missing = [change.token for change in settlements if change.token not in accepted]
            accepted |= await self._driver.read(lambda: settled_before(self._sql, missing), rows=len(missing))
        return accepted

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            single = not (progress and logs) and all(part.drop is None for part in logs)
            await self._driver.write(
                lambda: report(self._sql, progress, logs),
                atomic=not single,
                rows=len(progress) + len(logs),
            )

    def lend(self, *, timeout: Micros) -> HandlerTransaction:
        """Return a transaction for a handler."""
        from duetime.stores.sql.transactions.handler import SqlHandlerTransaction

        lent = self._driver.lend(timeout=timeout)
        return SqlHandlerTransaction(
            self._driver,
            lent,
            self._sql,
            owner=self,
            on_settled=lambda settled: self._hint_settled([settled]),
        )

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Tell when the next pending job of these queues falls due."""
        return await self._driver.read(lambda: next_due(self._sql, queues, tasks))

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock; raises `StoreMoved` where the work goes on elsewhere."""
        now = await self._driver.write(lambda: register(self._sql, worker, lease=lease))
        if not self._driver.single_writer:
            await self._see_it_stays(worker.id)
        # Others watch its process from now on, to be there when it dies.
        self._driver.hint(Hint("workers"))
        return now

    async def _see_it_stays(self, worker: WorkerId) -> None:
        """Look once more where the work is: a copy that ended while a worker was being added has not seen it."""
        if (moved := (await self.schema_status()).moved) is not None:
            await self.retire(worker)
            raise StoreMoved(moved)

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        """Renew the lease of a living worker and look around on the way; a dead one stays dead."""
        return await self._driver.write(
            lambda: pulse(self._sql, worker, stats, lease=lease, wants=wants),
            atomic=False,
        )

    async def attend(self, worker: WorkerId) -> Pulse:
        """Answer as `pulse` does without renewing anything."""
        return await self._driver.read(lambda: attend(self._sql, worker))

    async def retire(self, worker: WorkerId) -> None:
        """Mark a worker as stopped."""
        await self._driver.write(lambda: retire(self._sql, worker))

    async def peers(self, worker: WorkerId, host_key: str | None, *, soon: Micros) -> list[PeerWorker]:
        """Return the other living workers on the same host, and those elsewhere whose lease ends within `soon`."""
        return await self._driver.read(lambda: peers(self._sql, worker, host_key, soon=soon))

    async def bury(self, workers: Sequence[WorkerId]) -> list[WorkerId]:
        """Mark living workers as dead and return those that were alive until now."""
        if not workers:
            return []
        return await self._driver.write(lambda: bury(self._sql, workers), rows=len(workers))

    async def rescue(self, worker: WorkerId, claim_id: str) -> RescueResult:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        if not await self._driver.read(lambda: forsaken(self._sql)):
            return RescueResult([], [])
        return await self._driver.write(lambda: rescue(self._sql, worker, claim_id), rows=None)

    async def prune_gates(self) -> int:
        """Forget some of the gates that no job needs."""
        return await self._limited.prune()

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at a stretch of jobs behind one, oldest first, and remove what is old.

        Job ids rise with time, so the oldest are at the front of the primary key and no index is kept for this.
        """
        found = await self._driver.read(
            lambda: look(self._sql, retention, after=after, stretch=_PRUNED_AT_ONCE), rows=None
        )
        if dry_run:
            return PruneResult(len(found.gone), found.last)
        if retention.before is not None and not after:
            before = retention.before - DAY
            await self._driver.write(lambda: prune_workers(self._sql, before=before), rows=None)
        gone = 0
        if found.gone or found.outlived:
            gone = await self._driver.write(lambda: carry_out(self._sql, found), rows=None)
        return PruneResult(gone, found.last)

    async def identity(self) -> str:
        """Return what tells this store from every other."""
        return await self._enqueuing.identity()

    async def now(self) -> Instant:
        """Return the store's clock."""
        return await self._driver.read(lambda: clock(self._sql))

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        return await self._driver.read(lambda: get(self._sql, ids), rows=len(ids))

    async def find(self, where: JobFilter) -> list[StoredJob]:
        """Return one page of jobs, newest first."""
        return await self._driver.read(lambda: find(self._sql, where), rows=None)

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        return await self._driver.read(lambda: upcoming(self._sql, limit), rows=None)

    async def attempts(self, job_id: JobId) -> list[StoredAttempt]:
        """Return the tries that ended without ending the job, oldest first."""
        return await self._driver.read(lambda: attempts(self._sql, job_id))

    async def logs(self, job_id: JobId, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order."""
        return await self._driver.read(lambda: logs(self._sql, job_id, after=after), rows=None)

    async def workers(self) -> list[StoredWorker]:
        """Return all workers that are known, newest first."""
        return await self._driver.read(lambda: workers(self._sql), rows=None)

    async def counts(self) -> Mapping[tuple[str, State], int]:
        """Return how many jobs each queue has in each state."""
        return await self._driver.read(lambda: counts(self._sql), rows=None)

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise, and whether changes can be made."""
        from duetime.stores.sql import checks as examining

        status = await self.schema_status()
        found = [examining.check_schema(status, url=self._url), *await self._driver.doctor()]
        if status.found == status.wanted:
            found.append(await examining.check_writes(self._driver, self._sql))
        return found

    def _hint_settled(self, settlements: Sequence[Settlement]) -> None:
        if any(map(leaves_work, settlements)):
            self._driver.hint(Hint("jobs"))
        elif any(change.limited for change in settlements):
            self._driver.hint(Hint("limits"))


def _takes_several_statements(change: Settlement) -> bool:
    """Whether a change takes more than one statement."""
    more = change.new_jobs or change.calls_back or change.progress or change.logs
    return bool(change.attempt is not None or more)
