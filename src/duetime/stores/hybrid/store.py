"""The hybrid: a store made of others. A job lives in one of them from beginning to end, and each verb says whom it asks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, Self, TypeVar

from duetime.errors import ConfigError, InvalidOption
from duetime.model.job import Claim, JobEdit, JobId, NewJob, Token
from duetime.model.limits import Gate
from duetime.model.outcome import Settlement
from duetime.model.reports import LogPart
from duetime.model.retention import Retention
from duetime.model.routes import Routes, Tier, longest_delay, usable_routes
from duetime.model.states import State
from duetime.model.stored.audit import NOTHING_NOTED, AuditEntry, Noted
from duetime.model.stored.copy import RecordKind, WholeRecord
from duetime.model.stored.jobs import StoredAttempt, StoredJob
from duetime.model.time import Clock, Instant, Micros, SystemClock, describe_duration
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId
from duetime.stores.base import (
    Capabilities,
    ClaimRequest,
    DoctorCheck,
    EditAnswer,
    HandlerTransaction,
    Hint,
    JobFilter,
    JobPage,
    LimitedClaims,
    PruneResult,
    Store,
)
from duetime.stores.base.jobs import NoTransaction, merged_jobs
from duetime.stores.hybrid import merging
from duetime.stores.hybrid.placing import JobPlaces
from duetime.stores.hybrid.verbs import by_id, change_by_id, each, each_verb, far_verb, job_verb

log = logging.getLogger("duetime.store")

T = TypeVar("T")

_NOT_LENT: Final = (
    "a hybrid lends no transaction, since a job may live in another store than its far one; a worker of the hybrid does "
    "for jobs that live there"
)


class HybridStore:
    """Jobs that are due soon where it is cheap, all others where it is safe."""

    def __init__(
        self,
        tiers: Mapping[Tier, Store],
        routes: Routes,
        *,
        far_queues: Collection[str] = (),
        clock: Clock | None = None,
    ) -> None:
        """`clock` tells how soon a job is due; that decides where the job lives, never when it runs."""
        self._tiers = dict(sorted(tiers.items()))
        self._routes, self._named_queues = routes, far_queues
        self._clock = clock or SystemClock()
        self.far = self._tiers[Tier.FAR]
        self.parts: Sequence[Store] = tuple(self._tiers.values())
        self._turn = 0
        self._places = self._make_places(persistent=False)

    # Schedules, what is on record of who did what, transactions of callers, locks, credentials and statistics are far.
    write_schedules = far_verb(Store.write_schedules)
    due_schedules = far_verb(Store.due_schedules)
    fire = far_verb(Store.fire)
    delete_schedule = far_verb(Store.delete_schedule)
    backfill = far_verb(Store.backfill)
    schedules = far_verb(Store.schedules)
    code_schedules = far_verb(Store.code_schedules)
    get_schedules = far_verb(Store.get_schedules)
    occurrences = far_verb(Store.occurrences)
    past_occurrences = far_verb(Store.past_occurrences)
    runs = far_verb(Store.runs)
    entries = far_verb(Store.entries)
    announce = far_verb(Store.announce)
    announced = far_verb(Store.announced)
    add_credential = far_verb(Store.add_credential)
    find_credential = far_verb(Store.find_credential)
    credentials = far_verb(Store.credentials)
    touch_credential = far_verb(Store.touch_credential)
    revoke_credentials = far_verb(Store.revoke_credentials)
    add_statistics = far_verb(Store.add_statistics)
    statistics_parts = far_verb(Store.statistics_parts)
    statistics_rows = far_verb(Store.statistics_rows)
    fold_statistics = far_verb(Store.fold_statistics)
    statistics = far_verb(Store.statistics)
    prune_statistics = far_verb(Store.prune_statistics)
    enqueue_blocking_in = far_verb(Store.enqueue_blocking_in)
    outlook = far_verb(Store.outlook)
    now = far_verb(Store.now)
    make_locks = far_verb(Store.make_locks)
    take_lock = far_verb(Store.take_lock)
    renew_lock = far_verb(Store.renew_lock)
    release_lock = far_verb(Store.release_lock)
    locks = far_verb(Store.locks)
    forget_locks = far_verb(Store.forget_locks)

    # A job is in one of them.
    cancel = job_verb(Store.cancel)
    delete = job_verb(Store.delete)
    release = job_verb(Store.release)

    # What all of them know a part of.
    migrate = each_verb(Store.migrate, merging.merged_status)
    uninstall = each_verb(Store.uninstall, merging.added_up)
    schema_status = each_verb(Store.schema_status, merging.merged_status)
    workers = each_verb(Store.workers, merging.merged_workers)
    queues = each_verb(Store.queues, merging.merged_queues)
    census = each_verb(Store.census, merging.merged_census)
    due_jobs = each_verb(Store.due_jobs, merging.merged_due_jobs)
    counts = each_verb(Store.counts, merging.added_up)
    glance = each_verb(Store.glance, merging.joined)
    prune_gates = each_verb(Store.prune_gates, merging.total)
    set_moved = each_verb(Store.set_moved, merging.last)

    # A worker of its own in each of them asks that one alone; tests ask all of them at once.
    claims_under = each_verb(Store.claims_under, merging.joined)
    mark_started = each_verb(Store.mark_started, merging.last)
    report = each_verb(Store.report, merging.last)
    next_due = each_verb(Store.next_due, merging.merged_next_due)
    register = each_verb(Store.register, merging.last)
    pulse = each_verb(Store.pulse, merging.merged_pulse)
    attend = each_verb(Store.attend, merging.merged_pulse)
    watch = each_verb(Store.watch, merging.joined)
    write_journal = each_verb(Store.write_journal, merging.last)
    retire = each_verb(Store.retire, merging.last)
    peers = each_verb(Store.peers, merging.merged_peers)
    bury = each_verb(Store.bury, merging.named_once)
    rescue = each_verb(Store.rescue, merging.merged_rescue)
    take_commands = each_verb(Store.take_commands, merging.joined)
    finish_command = each_verb(Store.finish_command, merging.last)

    @property
    def capabilities(self) -> Capabilities:
        """What the far store can do, but for what would take one store for all jobs."""
        return replace(self.far.capabilities, loans=False, one_order=False)

    @property
    def single_writer(self) -> bool:
        """Whether the far store has only one."""
        return self.far.single_writer

    @property
    def moved(self) -> str | None:
        """Where the work of one of them goes on, if it does."""
        return next((part.moved for part in self.parts if part.moved is not None), None)

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive from all of them."""
        return all(part.hears_others for part in self.parts)

    async def open(self, *, check: bool = True) -> None:
        """Open all of them; raises `ConfigError` where near and far are the same."""
        async with contextlib.AsyncExitStack() as opened:
            for part in reversed(self.parts):
                await part.open(check=check)
                opened.push_async_callback(part.close)
            if check:
                await self._check_parts()
            opened.pop_all()
        near = self._tiers.get(Tier.NEAR)
        self._places = self._make_places(persistent=near is not None and near.capabilities.persistent)

    async def _check_parts(self) -> None:
        names = await each(self.parts, lambda part: part.identity())
        if len({*names}) < len(names):
            raise ConfigError("near and far are the same store; name two different ones in the URL")
        if not self.far.capabilities.persistent:
            log.warning("the far store of a hybrid is to keep its jobs, and this one loses them in a restart")

    def _make_places(self, *, persistent: bool) -> JobPlaces:
        routes = usable_routes(self._routes, tiers=self._tiers, persistent=persistent)
        return JobPlaces(self._tiers, routes, clock=self._clock, far_queues=self._named_queues)

    async def close(self) -> None:
        """Close all of them."""
        await self._places.close()
        await each(self.parts, lambda part: part.close())

    async def pending_sql(self) -> str:
        """Return what `migrate` would run, and where."""
        texts = zip(self._tiers, await each(self.parts, lambda part: part.pending_sql()), strict=True)
        return "\n".join(f"-- {tier.name.lower()}\n{text}" for tier, text in texts if text)

    async def doctor(self) -> list[DoctorCheck]:
        """Have all of them look, but for memory, which promises nothing."""
        return [
            replace(check, name=f"{tier.name.lower()} {check.name}")
            for tier, part in self._lasting()
            for check in await part.doctor()
        ]

    async def identity(self) -> str:
        """Return what tells it from every other."""
        return "+".join([await part.identity() for _, part in self._lasting()])

    def _lasting(self) -> list[tuple[Tier, Store]]:
        """Return the stores that other processes see as well."""
        return [(tier, part) for tier, part in self._tiers.items() if tier is not Tier.MEMORY]

    def sibling(self) -> Self:
        """Return a store on the same databases for another thread's event loop."""
        tiers = {tier: part.sibling() for tier, part in self._tiers.items()}
        return type(self)(tiers, self._routes, far_queues=self._named_queues, clock=self._clock)

    async def wakeups(self) -> AsyncIterator[Hint]:
        """Yield the hints of all of them until one has no more."""
        hints: asyncio.Queue[Hint | None] = asyncio.Queue()

        async def listen(part: Store) -> None:
            try:
                async for hint in part.wakeups():
                    hints.put_nowait(hint)
            finally:
                hints.put_nowait(None)

        listeners = [asyncio.create_task(listen(part), name="duetime-listen") for part in self.parts]
        try:
            while (hint := await hints.get()) is not None:
                yield hint
        finally:
            for listener in listeners:
                listener.cancel()
            ends = await asyncio.gather(*listeners, return_exceptions=True)
        if failures := [end for end in ends if isinstance(end, Exception)]:
            raise failures[0]

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, entries: Sequence[AuditEntry] = ()
    ) -> list[JobId]:
        """Store all jobs where the routes lead, or none; with a transaction, far. What is noted of near ones follows them."""
        tier = await self._places.choose(jobs) if tx is None else Tier.FAR
        with self._places.storing(jobs, tier):
            if tier is Tier.FAR:
                return await self.far.enqueue(jobs, tx=tx, entries=entries)
            ids = await self._tiers[tier].enqueue(jobs)
        await self._note(*entries)
        return ids

    def enqueue_blocking(
        self,
        jobs: Sequence[NewJob],
        *,
        entries: Sequence[AuditEntry] = (),  # noqa: ARG002 - left to the loop
    ) -> list[JobId] | None:
        """Store nothing: where jobs go is found out in an event loop."""
        return None if jobs else []

    def lend(self, *, timeout: Micros, tx: object = None) -> HandlerTransaction:  # noqa: ARG002 - there is nothing to wait for
        """Return what refuses to begin."""
        return NoTransaction(_NOT_LENT)

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Hand out jobs of one after the other, each time beginning with another."""
        claims: list[Claim] = []
        for part, left in self._in_turn(demand, claims):
            claims += await part.claim(left)
        return claims

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out what limits let through in the same way."""
        claims, again = list[Claim](), list[Instant]()
        for part, left in self._in_turn(demand, claims):
            found = await part.claim_limited(left)
            claims += found.claims
            again += [] if found.again_at is None else [found.again_at]
        return LimitedClaims(claims, min(again, default=None))

    def _in_turn(self, demand: ClaimRequest, claims: Sequence[Claim]) -> Iterator[tuple[Store, ClaimRequest]]:
        """Yield each store, with what is still asked for when it is asked."""
        self._turn = (self._turn + 1) % len(self.parts)
        for part in chain(self.parts[self._turn :], self.parts[: self._turn]):
            if not (left := merging.demand_left(demand, claims)).pointless:
                yield part, left

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change where its fence holds."""
        accepted = frozenset[Token]()
        for part in self.parts:
            if left := [change for change in settlements if change.token not in accepted]:
                accepted |= await part.settle(left)
        return accepted

    async def send(self, commands: Sequence[NewCommand], *, noted: Noted = NOTHING_NOTED) -> list[Command]:
        """Tell each worker in one store where it is alive: a process goes by the same id in all of them."""
        sent = {command.id: command for command in await self.far.send(commands, noted=noted)}
        for part in self.parts[:-1]:
            if left := [command for command in commands if command.id not in sent]:
                found = await part.send(left)
                sent |= {command.id: command for command in found}
                await self._note(*(noted[command.id] for command in found if command.id in noted))
        return [sent[command.id] for command in commands if command.id in sent]

    async def _note(self, *entries: AuditEntry) -> None:
        """Keep what was done elsewhere with what was done far."""
        if entries:
            await self.far.enqueue([], entries=entries)

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        lists = await each(self.parts, lambda part: part.commands(ids))
        found = {command.id: command for command in merging.joined(lists)}
        return [found[command] for command in ids if command in found]

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        lists = await each(self.parts, lambda part: part.commands_of(worker, limit=limit))
        newest = sorted(merging.joined(lists), key=lambda one: (one.created_at, one.id), reverse=True)
        return newest[:limit]

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""

        async def ask(part: Store, left: Sequence[JobId]) -> Mapping[JobId, StoredJob]:
            return {job.id: job for job in await part.get(left)}

        return [*(await by_id(self.parts, ids, ask)).values()]

    async def attempts(self, job_id: JobId) -> list[StoredAttempt]:
        """Return the tries of a job that ended without ending it, oldest first."""
        part = await self._home_of(job_id)
        return [] if part is None else await part.attempts(job_id)

    async def logs(self, job_id: JobId, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order."""
        part = await self._home_of(job_id)
        return [] if part is None else await part.logs(job_id, after=after)

    async def _home_of(self, job_id: JobId) -> Store | None:
        async def ask(part: Store, left: Sequence[JobId]) -> Mapping[JobId, Store]:
            return dict.fromkeys((job.id for job in await part.get(left)), part)

        return (await by_id(self.parts, [job_id], ask)).get(job_id)

    async def edit(
        self, ids: Sequence[JobId], change: JobEdit, *, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, EditAnswer]:
        """Change pending jobs where they live; refuse to put one off that may be lost until then."""
        await self._check_edit(ids, change)
        # Gates are far: a job that was stored before its task had a limit goes on without one.
        ungated = change._replace(gate=None)

        def edit(part: Store, left: Sequence[JobId], noted: Noted) -> Awaitable[Mapping[JobId, EditAnswer]]:
            return part.edit(left, change if part is self.far else ungated, noted=noted)

        return await change_by_id(self.parts, ids, edit, noted=noted)

    async def _check_edit(self, ids: Sequence[JobId], change: JobEdit) -> None:
        wait = max(change.delay or 0, change.postpone or 0, (change.due_at or 0) - self._clock.now())
        for tier, part in self._tiers.items():
            longest = longest_delay(self._places.routes, tier)
            if tier is Tier.FAR or part.capabilities.persistent or wait <= longest:
                continue
            if kept := [job.id for job in await part.get(ids) if job.state is State.PENDING]:
                raise InvalidOption(
                    f"job {kept[0]} lives in a store that keeps nothing over a restart, for jobs that are due within "
                    f"{describe_duration(longest)}; cancel it, and enqueue it anew for that time"
                )

    async def find(self, where: JobFilter) -> JobPage:
        """Return one page of jobs, newest first."""
        return merged_jobs(await each(self.parts, lambda part: part.find(where)), limit=where.limit)

    async def upcoming(self, limit: int) -> list[StoredJob]:
        """Return the pending jobs that fall due first, by due time."""
        lists = await each(self.parts, lambda part: part.upcoming(limit))
        return sorted(merging.joined(lists), key=lambda job: (job.due_at, job.id))[:limit]

    async def pause_queue(self, queue: str, *, reason: str | None, entry: AuditEntry | None = None) -> None:
        """Hand out nothing more from a queue, and store its new jobs far."""
        await self._set_queue(lambda part, entry: part.pause_queue(queue, reason=reason, entry=entry), entry)

    async def resume_queue(self, queue: str, *, entry: AuditEntry | None = None) -> None:
        """Hand out jobs of a queue again."""
        await self._set_queue(lambda part, entry: part.resume_queue(queue, entry=entry), entry)

    async def set_queue_limit(
        self, queue: str, limit: Gate | None, *, entry: AuditEntry | None = None
    ) -> None:
        """Limit a queue, and store its new jobs far; each store limits what it has."""
        await self._set_queue(lambda part, entry: part.set_queue_limit(queue, limit, entry=entry), entry)

    async def _set_queue(
        self, change: Callable[[Store, AuditEntry | None], Awaitable[None]], entry: AuditEntry | None
    ) -> None:
        await each(self.parts, lambda part: change(part, entry if part is self.far else None))
        await self._places.far_queues.look()

    async def purge(
        self, queue: str, *, before: Instant, reason: str, limit: int, entry: AuditEntry | None = None
    ) -> int:
        """Cancel pending jobs of a queue, in one store after the other."""
        purged = 0
        for part in self.parts:
            if purged < limit:
                purged += await part.purge(queue, before=before, reason=reason, limit=limit - purged)
        if purged and entry is not None:
            await self._note(entry)
        return purged

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at the jobs of one store after the other: what it returns as the last job names its store as well."""
        number, _, behind = after.rpartition(":")
        removed = 0
        for place in range(int(number or 0), len(self.parts)):
            found = await self.parts[place].prune(retention, after=behind, dry_run=dry_run)
            removed, behind = removed + found.jobs, ""
            if found.last is not None:
                return PruneResult(removed, f"{place}:{found.last}")
        return PruneResult(removed, None)

    async def stretch(self, kind: RecordKind, *, after: str, until: str, limit: int) -> list[WholeRecord]:
        """Return records by key; of two rows of a worker or a queue, the far one."""
        lists = await each(self.parts, lambda part: part.stretch(kind, after=after, until=until, limit=limit))
        found = {record.key: record for record in merging.joined(lists)}
        return [found[key] for key in sorted(found)[:limit]]

    async def exchange(self, kind: RecordKind, gone: Sequence[str], records: Sequence[WholeRecord]) -> None:
        """Remove records by key, and store others far."""
        await each(self.parts[:-1], lambda part: part.exchange(kind, gone, ()))
        await self.far.exchange(kind, gone, records)
