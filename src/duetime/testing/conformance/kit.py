"""Short words for what every test needs: a job, a worker, a claim, a settlement."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from duetime.model.ids import new_job_id, new_token
from duetime.model.job import Claim, JobId, NewJob, Token
from duetime.model.outcome import Outcome, Settlement, Succeeded, decide
from duetime.model.retention import Retention
from duetime.model.retry import NO_RETRIES, RetryPolicy
from duetime.model.schedule import actions as declaring
from duetime.model.schedule.actions import declaration
from duetime.model.schedule.record import Firing, ScheduleUpdate, StoredSchedule
from duetime.model.stored.audit import AuditEntry
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import WorkerId, WorkerInfo
from duetime.stores.base import ClaimRequest, OrphanedJob, PruneResult, Store

TASK = "greet"
LEASE: Micros = 30 * SECOND


def job(**changes: Any) -> NewJob:
    """A job that is due at once, with a fresh id."""
    return NewJob(id=new_job_id(), task=TASK, payload="{}")._replace(**changes)


async def put(store: Store, **changes: Any) -> JobId:
    """Enqueue one job and return its id."""
    (job_id,) = await store.enqueue([job(**changes)])
    return job_id


def worker_info(worker: WorkerId, **changes: Any) -> WorkerInfo:
    """What a worker says of itself when it registers."""
    info = WorkerInfo(
        id=worker,
        host="host",
        host_key=None,
        pid=1,
        pid_started=None,
        version="0",
        queues=("default",),
        slots=10,
    )
    return replace(info, **changes)


async def hire(store: Store, *workers: WorkerId, lease: Micros = LEASE) -> None:
    """Register living workers."""
    for worker in workers:
        await store.register(worker_info(worker), lease=lease)


async def take(
    store: Store,
    worker: WorkerId = "w1",
    *,
    queues: Iterable[str | tuple[str, int]] = ("default",),
    **changes: Any,
) -> list[Claim]:
    """Claim up to a hundred jobs."""
    pairs = tuple((queue, 100) if isinstance(queue, str) else queue for queue in queues)
    demand = ClaimRequest(worker=worker, claim_id=new_token(), queues=pairs, limit=100, tasks=(TASK,))
    return await store.claim(replace(demand, **changes))


async def take_one(store: Store, worker: WorkerId = "w1", **changes: Any) -> Claim:
    """Claim, and expect exactly one job."""
    (claim,) = await take(store, worker, **changes)
    return claim


def settlement(
    claim: Claim,
    outcome: Outcome,
    *,
    now: Instant,
    policy: RetryPolicy = NO_RETRIES,
    started: bool = True,
    **changes: Any,
) -> Settlement:
    """The change that the model decides for an outcome."""
    started_at = claim.claimed_at if started else None
    rng = random.Random(claim.fence)
    decided = decide(claim, outcome, policy=policy, started_at=started_at, now=now, rng=rng)
    return decided._replace(**changes)


async def finish(
    store: Store, claim: Claim, outcome: Outcome | None = None, *, now: Instant, **options: Any
) -> frozenset[Token]:
    """Settle one claim, as a success unless told otherwise."""
    return await store.settle([settlement(claim, outcome or Succeeded(), now=now, **options)])


async def read(store: Store, job_id: JobId) -> StoredJob:
    """Read one job."""
    (record,) = await store.get([job_id])
    return record


async def outcomes(store: Store, job_id: JobId) -> list[str]:
    """How the tries of a job ended that did not end the job."""
    return [attempt.outcome for attempt in await store.attempts(job_id)]


async def prune(store: Store, *, before: Instant | None, keep_per_schedule: int = 0) -> int:
    """Remove all that is old, and tell how many records went."""
    retention = Retention(before=before, keep_per_schedule=keep_per_schedule)
    removed, pruned = 0, PruneResult(0, "")
    while pruned.last is not None:
        pruned = await store.prune(retention, after=pruned.last)
        removed += pruned.jobs
    return removed


async def rescue(store: Store, worker: WorkerId) -> list[OrphanedJob]:
    """Take over what dead workers hold, under a new claim id."""
    return (await store.rescue(worker, new_token())).orphans


def schedule(
    name: str,
    *,
    next_at: Instant | None,
    fired_through: Instant,
    declared: str = "every minute",
    **changes: Any,
) -> StoredSchedule:
    """A schedule of the usual task, as code declares it."""
    new = StoredSchedule(
        name=name,
        task=TASK,
        payload="{}",
        trigger='{"every":60}',
        declared="",
        fired_through=fired_through,
        next_at=next_at,
    )
    return redeclared(replace(new, **changes), trigger=declared)


def redeclared(new: StoredSchedule, *, trigger: str = "every minute") -> StoredSchedule:
    """The same schedule with the text of its declaration."""
    return replace(new, declared=declaration(new, trigger=trigger))


async def declare(store: Store, *schedules: StoredSchedule) -> list[str]:
    """Bring declarations to the store, as a worker does when it starts; return the names that were written."""
    now = await store.now()
    stored = {record.name: record for record in await store.get_schedules([new.name for new in schedules])}
    changes = [declaring.declare(stored.get(new.name), new, who="test", now=now) for new in schedules]
    return sorted(await store.write_schedules([change for change in changes if change is not None]))


async def alter(store: Store, name: str, *, withdraw: str | None = None, **changes: Any) -> bool:
    """Change a schedule as it is now."""
    before = await read_schedule(store, name)
    change = ScheduleUpdate(before=before, after=replace(before, **changes), withdraw=withdraw)
    return bool(await store.write_schedules([change]))


async def pause(store: Store, name: str, *, reason: str | None = None) -> bool:
    """Pause a schedule, and withdraw what it has planted."""
    now = await store.now()
    return await alter(store, name, paused_at=now, paused_reason=reason, withdraw="schedule paused")


async def delete(store: Store, name: str) -> bool:
    """Delete a schedule."""
    return await store.delete_schedule(name, AuditEntry(verb="delete", target=name, who="test"))


async def read_schedule(store: Store, name: str) -> StoredSchedule:
    """Read one schedule."""
    (record,) = [record for record in await store.schedules() if record.name == name]
    return record


def occurrence_job(name: str, occurrence: Instant, **changes: Any) -> NewJob:
    """The job of one occurrence."""
    return job(schedule=name, occurrence=occurrence, due_at=occurrence, **changes)


def firing(record: StoredSchedule, *, next_at: Instant | None, **changes: Any) -> Firing:
    """The firing of a schedule's next occurrence, as it was read."""
    assert record.next_at is not None
    plan = Firing(
        name=record.name,
        rev=record.rev,
        expected=record.fired_through,
        fired_through=record.next_at,
        next_at=next_at,
        jobs=(occurrence_job(record.name, record.next_at),),
    )
    return replace(plan, **changes)
