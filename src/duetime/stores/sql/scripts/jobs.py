"""Enqueue, claim, settle: the hot path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from duetime.failpoints import failpoint
from duetime.model.audit import AuditEntry
from duetime.model.callbacks import call_back
from duetime.model.instants import Instant
from duetime.model.job import Claim, JobId, NewJob, Token
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored
from duetime.model.reports import NewLogPart, Progress
from duetime.model.states import State
from duetime.model.worker import WorkerId
from duetime.stores.base import Demand, NextDue
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements

if TYPE_CHECKING:
    from duetime.model.stored import StoredJob
    from duetime.stores.sql.backlog import Floor
    from duetime.stores.sql.scripts.keys import Clash

_NOTHING: Final[Mapping[JobId, Settlement]] = MappingProxyType({})


class Enqueued(NamedTuple):
    """Where requests are stored, in their order, and which of them share a job with other arguments."""

    ids: list[JobId]
    now: Instant
    """The store's clock, where it is a server's."""
    clashes: Sequence[Clash] = ()


def enqueue(
    sql: Statements, jobs: Sequence[NewJob], *, entries: Sequence[AuditEntry] = (), fresh: bool = False
) -> Script[Enqueued]:
    """Store jobs, with what is noted of them, and tell the ids they are stored under.

    `fresh`: the database may refuse them all where one is stored already.
    """
    if entries:
        yield Query(sql.add_entries, {"rows": rows.entries(entries)})
    keyed = [job for job in jobs if job.key is not None]
    free = [job for job in jobs if job.key is None] if keyed else jobs
    now = 0
    if free:
        told = yield insertion(sql, free, fresh=fresh)
        now = told[0][-1]
    occurrences = [(job.schedule, job.occurrence) for job in free if job.schedule is not None]
    if not keyed and not occurrences:
        return Enqueued([job.id for job in jobs], now)
    stored: dict[object, JobId] = {}
    if occurrences:
        found = yield Query(sql.occurrence_ids, {"rows": rows.batch(occurrences)})
        stored = {(schedule, occurrence): job_id for schedule, occurrence, job_id in found}
    if not keyed:
        return Enqueued([stored.get((job.schedule, job.occurrence), job.id) for job in jobs], now)
    from duetime.stores.sql.scripts import keys

    placed = yield from keys.place(sql, keyed)
    return Enqueued(
        [placed.ids.get(job.id) or stored.get((job.schedule, job.occurrence), job.id) for job in jobs],
        placed.now,
        placed.clashes,
    )


def insertion(sql: Statements, jobs: Sequence[NewJob], *, fresh: bool = False) -> Query:
    """Return the statement that stores jobs without keys, the narrowest that has room for what they ask for.

    `fresh`: the database may refuse them all where one is stored already.
    """
    if len(jobs) == 1:
        if (values := rows.one_job(jobs[0])) is not None:
            return Query(sql.enqueue_one_fresh if fresh else sql.enqueue_one, values)
    elif (alike := rows.alike_jobs(jobs, paired=sql.is_paired())) is not None:
        if alike.dated:
            return Query(sql.enqueue_dated_fresh if fresh else sql.enqueue_dated, alike.values)
        return Query(sql.enqueue_fresh if fresh else sql.enqueue_alike, alike.values)
    if all(job.plain for job in jobs):
        return Query(sql.enqueue, {"rows": rows.new_jobs(jobs)})
    return Query(sql.enqueue_rich, {"rows": rows.rich_jobs(jobs)})


def claim(
    sql: Statements, demand: Demand, *, one_statement: bool, floors: Sequence[Floor] = ()
) -> Script[list[Claim]]:
    """Hand out jobs queue by queue until the limit is reached, or all at once where the database can."""
    groups = (demand.queues,) if one_statement else tuple((queue,) for queue in demand.queues)
    tasks = rows.batch((task,) for task in demand.tasks)
    claims: list[Claim] = []
    for group in groups:
        limit = min(demand.limit - len(claims), sum(most for _, most in group))
        if limit <= 0:
            continue
        choice = {
            "worker": demand.worker,
            "claim_id": demand.claim_id,
            "queues": rows.batch(group),
            "limit": limit,
            "tasks": tasks,
            "ahead": demand.ahead,
            "unstarted": int(demand.unstarted or demand.ahead > 0),
            "below_priority": demand.below_priority,
            "floors": rows.batch(floors),
        }
        found = yield Query(sql.claim, choice)
        if one_statement:
            claims += map(rows.claim, found)
            continue
        packed, chosen = found[0]
        if some := rows.unpack_claims(packed):
            yield Query(sql.take, {**choice, "chosen": chosen})
            claims += some
    if one_statement:
        # Databases return changed rows in any order.
        rank = {queue: place for place, (queue, _) in enumerate(demand.queues)}
        claims.sort(key=lambda claim: (rank[claim.queue], claim.priority, claim.due_at, claim.job_id))
    return claims


def quote_blobs(sql: Statements) -> Script[None]:
    """Make jobs claimable that hold bytes where they should not."""
    yield Query(sql.quote_blobs, {})


def claims_under(sql: Statements, worker: WorkerId, claim_id: str) -> Script[list[Claim]]:
    """Look up what a claim had handed out."""
    found = yield Query(sql.claims_under, {"worker": worker, "claim_id": claim_id})
    return [rows.checked_claim(row) for row in found]


def mark_started(sql: Statements, tokens: Sequence[Token], started_at: Instant) -> Script[None]:
    """Record that claims have been started."""
    yield Query(
        sql.mark_started, {"rows": rows.batch_for(sql.mark_started, tokens), "started_at": started_at}
    )


def _succeed(sql: Statements, settlements: Sequence[Settlement]) -> Script[frozenset[Token]]:
    """Write runs that went well; when some are refused the answer is empty, and the caller looks up which."""
    (count,) = yield Query(sql.succeed, rows.successes(settlements))
    everything = count[0] == len(settlements)
    return frozenset([change.token for change in settlements]) if everything else frozenset()


def settle(
    sql: Statements, settlements: Sequence[Settlement], *, plain: bool = False
) -> Script[frozenset[Token]]:
    """Write the changes whose claims hold, with all that belongs to them, and return their tokens.

    `plain`: each of them is a plain success.
    """
    if plain:
        return (yield from _succeed(sql, settlements))
    said = [change.progress for change in settlements if change.progress is not None]
    logs = [part for change in settlements for part in change.logs]
    yield from report(sql, said, ())
    accepted = yield from _settle(sql, settlements)
    yield from report(sql, (), logs)
    return accepted


def _settle(sql: Statements, told: Sequence[Settlement]) -> Script[frozenset[Token]]:
    settlements = [as_stored(change) if change.fleeting else change for change in told]
    kept = [change for change in settlements if change.attempt is not None]
    holders: Mapping[JobId, tuple[str | None, Instant]] = {}
    if kept:
        locked = yield Query(sql.holders, {"rows": rows.batch(change.token for change in kept)})
        holders = {job_id: (worker, due_at) for job_id, worker, due_at in locked}
    if not kept and all(map(_is_success, settlements)):
        return (yield from _succeed(sql, settlements))
    changes = rows.batch_for(sql.settle, map(rows.settlement, settlements))
    written = yield Query(sql.settle, {"rows": changes})
    accepted = frozenset(Token(*row[:3]) for row in written)
    kept = [change for change in kept if change.token in accepted]
    if kept:
        attempts = (_attempt(change, *holders[change.token.job_id]) for change in kept)
        yield Query(sql.add_attempts, {"rows": rows.batch(attempts)})
        yield from _trim(sql, kept)
    jobs = [job for change in settlements if change.token in accepted for job in change.new_jobs]
    ended = {c.token.job_id: c for c in told if c.calls_back and c.token in accepted}
    jobs += yield from callbacks(sql, list(ended), told=ended)
    if jobs:
        failpoint("within:settle")
        yield insertion(sql, jobs)
    return accepted


def _trim(sql: Statements, kept: Sequence[Settlement]) -> Script[None]:
    """Bound what is kept of jobs that put themselves off again and again."""
    old = [
        (change.token.job_id, change.token.fence - MAX_SNOOZED)
        for change in kept
        if change.attempt == SNOOZED and change.token.fence > MAX_SNOOZED
    ]
    if old:
        listed = rows.batch(old)
        yield Query(sql.trim_attempts, {"rows": listed})
        yield Query(sql.trim_logs, {"rows": listed})


def callbacks(
    sql: Statements, ids: Sequence[JobId], *, told: Mapping[JobId, Settlement] = _NOTHING
) -> Script[list[NewJob]]:
    """Return what is to be enqueued because of these jobs, as they stand now in this transaction.

    What is told of their ends counts also where it is not stored.
    """
    if not ids:
        return []
    # Here, since most workers never need it.
    from duetime.stores.sql import records

    found = yield Query(sql.get, {"rows": rows.batch((job_id,) for job_id in ids)})
    ended = (_as_told(records.job(row), told) for row in found)
    return [new for job in ended if (new := call_back(job)) is not None]


def _as_told(job: StoredJob, told: Mapping[JobId, Settlement]) -> StoredJob:
    change = told.get(job.id)
    if change is None or not change.fleeting:
        return job
    return replace(job, result=change.result, error=change.error, traceback=change.traceback)


def report(sql: Statements, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> Script[None]:
    """Write what runs say, as far as their claims hold."""
    if progress:
        yield Query(sql.note_progress, {"rows": rows.progress(progress)})
    if logs:
        yield Query(sql.add_logs, {"rows": rows.log_parts(logs)})
    drops = [(*part.token, *part.drop) for part in logs if part.drop is not None]
    if drops:
        yield Query(sql.drop_logs, {"rows": rows.batch(drops)})


def settled_before(sql: Statements, tokens: Iterable[Token]) -> Script[frozenset[Token]]:
    """Find the claims that had been settled already."""
    found = yield Query(sql.settled_before, {"rows": rows.batch(tokens)})
    return frozenset(Token(*row) for row in found)


def fate(sql: Statements, token: Token) -> Script[bool]:
    """Tell whether a claim was settled, once whoever may still be about it has come to an end."""
    held = yield Query(sql.holders, {"rows": rows.batch([token])})
    if held:
        return False
    return bool((yield from settled_before(sql, [token])))


def next_due(sql: Statements, queues: Sequence[str], tasks: Sequence[str]) -> Script[NextDue]:
    """Tell when the next pending job falls due."""
    values = {
        "queues": rows.batch((queue,) for queue in queues),
        "tasks": rows.batch((task,) for task in tasks),
    }
    found = yield Query(sql.next_due, values)
    now, due_at, in_queues, at_gates, limited = found[0]
    future = [at for one in (in_queues, at_gates) if (at := rows.moment(one)) is not None]
    return NextDue(now, rows.moment(due_at), min(future, default=None), bool(limited))


def _is_success(change: Settlement) -> bool:
    special = change.reason or change.error or change.new_jobs or change.calls_back
    return change.state is State.SUCCEEDED and not special


def _attempt(change: Settlement, worker: str | None, due_at: Instant) -> tuple[object, ...]:
    return (
        *change.token,
        change.worker or worker,
        due_at,
        change.started_at,
        change.ended_at,
        change.attempt,
        change.error,
        change.traceback,
    )
