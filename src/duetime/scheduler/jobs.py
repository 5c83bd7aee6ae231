"""Jobs as a client sees them: read page by page, cancelled, changed, released, run again, deleted and pruned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, TypedDict, TypeVar, Unpack, cast

import msgspec

from duetime.errors import InvalidArguments, InvalidOption, JobActive, JobChanged, JobEnded
from duetime.model.ids import GivenId, last_id_of, new_job_id, read_id
from duetime.model.job import JobEdit, JobId, JobKind
from duetime.model.limits import gate_schedule
from duetime.model.queues import Registry
from duetime.model.reports import LogPart, with_gaps
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE, Retention, check_keep_per_schedule
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.stored.jobs import StoredJob, job_once_more
from duetime.model.task import JobOptionValues, check_known, job_options
from duetime.model.text import check_reason, check_text, check_whole, shown
from duetime.model.time import (
    SECOND,
    Duration,
    Instant,
    Micros,
    describe_duration,
    from_datetime,
    parse_duration,
    to_datetime,
)
from duetime.model.worker import CommandKind, NewCommand
from duetime.runtime.codec.json_values import ENCODE_ERRORS, encode_in_order
from duetime.runtime.codec.results import result_decoder
from duetime.runtime.running.handler import Handler
from duetime.scheduler.announced import find_handler
from duetime.scheduler.audit import actor_name, entries_about_jobs, entry_about
from duetime.scheduler.explanations import Explanation, explain_job
from duetime.scheduler.failures import FailureGroup, group_failures
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.lookup import MAX_PAGE, check_limit, find_job, growing_pauses, job_not_found
from duetime.scheduler.pages import Page, read_cursor, write_cursor
from duetime.scheduler.records import AttemptRecord, JobRecord, attempts_of, editable, json_or_text
from duetime.scheduler.task import Call, EnqueueClient, call_arguments
from duetime.stores.base import (
    CancelAnswer,
    DeleteAnswer,
    EditAnswer,
    JobFilter,
    JobPage,
    PruneResult,
    ReleaseAnswer,
    Store,
)
from duetime.stores.base.jobs import merged_jobs

E = TypeVar("E", bound=StrEnum)
G = TypeVar("G", bound=GivenId)

_DEFAULT_PAGE: Final = 50
_MOST_LOOKED_AT: Final = 1_000_000_000
_TIMES: Final[Sequence[Literal["since", "until"]]] = ("since", "until")
_KIND: Final = "jobs"
"""Of cursors."""


class JobCriteria(TypedDict, total=False):
    """What users may write to say which jobs they mean."""

    task: str | None
    state: State | str | Collection[State | str] | None
    """One, or several of which any will do."""
    registry: Registry | str | None
    queue: str | Collection[str] | None
    """One queue, or several."""
    schedule: str | None
    kind: JobKind | str | None
    key: str | None
    tag: str | None
    since: datetime | Duration | None
    """The earliest time of enqueueing; a duration counts back from now."""
    until: datetime | Duration | None
    """When they were enqueued before; a duration counts back from now."""


class JobQuery(JobCriteria, total=False):
    """What users may write in `scheduler.jobs.list(...)`."""

    limit: int
    cursor: str | None
    look_at: int | None
    """About how many jobs are looked at, at most; the page may then be short, and its cursor leads on."""


class JobEditValues(TypedDict, total=False):
    """What users may write in `scheduler.jobs.edit(...)` apart from arguments."""

    at: datetime
    delay: Duration
    queue: str
    priority: int
    retries: int
    timeout: Duration
    expires: Duration | datetime


class DeletedJobs(NamedTuple):
    """What came of a request to delete jobs."""

    deleted: int
    """How many went, or would have gone."""
    running: int
    """How many stayed because a worker has them."""


def job_filters(query: JobQuery, *, now: Instant) -> list[JobFilter]:
    """Check what a user asked for; each queue has a filter of its own."""
    queue = query.get("queue")
    queues = [queue] if queue is None or isinstance(queue, str) else [*dict.fromkeys(queue)]
    return [_job_filter(query, one, now=now) for one in queues]


def _job_filter(query: JobQuery, queue: str | None, *, now: Instant) -> JobFilter:
    check_known(query, JobQuery.__optional_keys__)
    named: dict[str, Any] = {name: query.get(name) for name in ("task", "schedule", "key", "tag")}
    named["queue"] = queue
    for name, asked in named.items():
        if asked is not None and not check_text(asked, what=name):
            raise InvalidOption(f"{name} is empty; leave it out for jobs of any {name}")
    since, until = (_instant(query.get(name), now, what=name) for name in _TIMES)
    cursor, newest = query.get("cursor"), None if until is None else last_id_of(until, now=now)
    bounds = [] if newest is None else [newest]
    bounds += [] if cursor is None else [read_cursor(_KIND, cursor)]
    return JobFilter(
        **named,
        states=_states(query.get("state")),
        registry=_enum_value(Registry, query.get("registry"), what="registry"),
        kind=_enum_value(JobKind, query.get("kind"), what="kind"),
        since=since,
        until=until,
        before=min(bounds, default=None),
        limit=check_limit(query.get("limit", _DEFAULT_PAGE)),
        look_at=_look_at(query.get("look_at")),
    )


def _look_at(most: int | None) -> int | None:
    return None if most is None else check_whole(most, 1, _MOST_LOOKED_AT, what="look_at")


async def _find(store: Store, wheres: Sequence[JobFilter]) -> JobPage:
    """Return one page of the jobs that meet one of some filters, newest first; each asks for as many."""
    pages = [await store.find(where) for where in wheres]
    return merged_jobs(pages, limit=wheres[0].limit if wheres else 0)


def _as_json(arguments: Mapping[str, object]) -> dict[str, bytes]:
    """Write values as they are stored; equal values, equal text."""
    if not isinstance(arguments, Mapping):
        raise InvalidArguments(f"arguments must be a dict such as {{'user_id': 17}}, not {shown(arguments)}")
    try:
        return {name: encode_in_order(value) for name, value in arguments.items()}
    except ENCODE_ERRORS as error:
        raise InvalidArguments(f"arguments={shown(arguments)} cannot be written as JSON: {error}") from None


def _was_given(job: StoredJob, wanted: Mapping[str, bytes]) -> bool:
    """Whether a job has these arguments, perhaps among others."""
    if not wanted:
        return True
    given = json_or_text(job.payload)
    found = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    return found.keys() >= wanted.keys() and _as_json({name: found[name] for name in wanted}) == wanted


def _instant(given: datetime | Duration | None, now: Instant, *, what: str) -> Instant | None:
    if given is None or isinstance(given, datetime):
        return None if given is None else from_datetime(given, what=what)
    return max(0, now - parse_duration(given, what=what))


def _states(given: State | str | Collection[State | str] | None) -> frozenset[State]:
    listed = [given] if isinstance(given, str) or given is None else [*given]
    if not listed:
        raise InvalidOption("state is empty; leave it out for jobs in any state")
    found = (_enum_value(State, one, what="state") for one in listed)
    return frozenset(state for state in found if state is not None)


def _enum_value(kind: type[E], value: str | None, *, what: str) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError:
        raise InvalidOption(f"{what} must be one of {', '.join(kind)}, not {shown(value)}") from None


RELEASE_TIMEOUT: Micros = 10 * SECOND
"""How long a worker may take to give a job back."""
_BY_FORCE = "force=True takes it away all the same, and it may then run twice"


async def request_release(store: Store, job_id: JobId, entry: AuditEntry) -> ReleaseAnswer:
    """Ask the worker that holds a job for it, since only the worker knows whether it is about to start.

    Raises `JobNotFound`.
    """
    held = await find_job(store, job_id)
    if (answer := _answer_without_worker(held)) is not None:
        return answer
    ask = NewCommand(id=new_job_id(), worker=held.worker or "", kind=CommandKind.RELEASE_JOB, job=job_id)
    if not await store.send([ask], noted={ask.id: entry}):
        # A worker without a lease starts nothing more.
        return (await store.release([job_id], force=False, noted={job_id: entry}))[job_id]
    pauses = growing_pauses()
    try:
        async with asyncio.timeout(RELEASE_TIMEOUT / SECOND):
            while answer is None:
                await asyncio.sleep(next(pauses))
                job = await find_job(store, job_id)
                answer = _answer_without_worker(job) if job.fence == held.fence else ReleaseAnswer.RELEASED
    except TimeoutError:
        within = describe_duration(RELEASE_TIMEOUT)
        text = f"worker {held.worker} has not given job {job_id} back within {within}; {_BY_FORCE}"
        raise TimeoutError(text) from None
    return ReleaseAnswer.RELEASED if answer is ReleaseAnswer.WAITING else answer


def _answer_without_worker(job: StoredJob) -> ReleaseAnswer | None:
    """Return the answer that needs no worker; `None` for a job that is held unstarted."""
    if job.state is State.PENDING:
        return ReleaseAnswer.WAITING
    if job.state.terminal:
        return ReleaseAnswer.FINISHED
    return None if job.started_at is None else ReleaseAnswer.STARTED


ON_REQUEST = "cancelled on request"
_DELETED_AT_ONCE: Final = 500
"""How many jobs one step looks at and deletes, so that others never wait long for the database."""


class Jobs:
    """Reads, cancels, changes, reruns and deletes jobs; their ids may be written with dashes."""

    def __init__(
        self, store: Callable[[], Store], *, client: EnqueueClient, tasks: Mapping[str, Handler]
    ) -> None:
        self._store = store
        self._client = client
        self._tasks = tasks

    async def get(self, job_id: GivenId) -> JobRecord:
        """Return one job; raises `JobNotFound`."""
        return JobRecord.from_stored(await find_job(self._store(), read_id(job_id)))

    async def list(self, **query: Unpack[JobQuery]) -> Page[JobRecord]:
        """Return one page of jobs, newest first; pass its `cursor` for the next one."""
        store = self._store()
        timed = query.get("until") is not None or not isinstance(query.get("since"), datetime | None)
        wheres = job_filters(query, now=await store.now() if timed else 0)
        most = check_limit(query.get("limit", _DEFAULT_PAGE))
        found = await _find(store, [replace(where, limit=most + 1) for where in wheres])
        records = [JobRecord.from_stored(job) for job in found[:most]]
        last = records[-1].id if len(found) > most else found.looked_to
        cursor = None if last is None else write_cursor(_KIND, last)
        return Page(records, cursor=cursor, partial=found.looked_to is not None)

    async def failures(self, **query: Unpack[JobQuery]) -> Page[FailureGroup]:
        """Return what went wrong in failed jobs, the most frequent first, of the newest 1,000 unless told otherwise.

        Pass its `cursor` for the groups of the jobs before them.
        """
        failed = cast("JobQuery", {"limit": MAX_PAGE, **query, "state": State.FAILED})
        found = await self.list(**failed)
        return Page(group_failures(found), cursor=found.cursor, partial=found.partial)

    async def attempts(self, job_id: GivenId) -> Sequence[AttemptRecord]:
        """Return the tries of a job, oldest first, the last or current one included; raises `JobNotFound`."""
        store, job_id = self._store(), read_id(job_id)
        return attempts_of(await find_job(store, job_id), await store.attempts(job_id))

    async def delete(self, job_id: GivenId, *, by: str | None = None) -> None:
        """Remove a job that waits or has ended, with its tries, log, result and key, as if it had never been.

        Nothing is called back. Raises `JobActive` when a worker has it, and `JobNotFound`.
        """
        job_id = read_id(job_id)
        noted = entries_about_jobs([job_id], "delete", by)
        match (await self._store().delete([job_id], noted=noted))[job_id]:
            case DeleteAnswer.RUNNING:
                raise JobActive(
                    f"job {job_id} is with a worker; cancel it first, and delete it when it has ended"
                )
            case DeleteAnswer.UNKNOWN:
                raise job_not_found(job_id)
            case DeleteAnswer.DELETED:
                pass

    async def delete_many(
        self,
        *,
        arguments: Mapping[str, object] | None = None,
        dry_run: bool = False,
        by: str | None = None,
        **criteria: Unpack[JobCriteria],
    ) -> DeletedJobs:
        """Remove all jobs that meet the criteria and wait or have ended, in small steps; tell how many went and stayed.

        `arguments` names some of the arguments that they were enqueued with. A dry run only counts. What is enqueued
        meanwhile stays.
        """
        check_known(criteria, JobCriteria.__optional_keys__)
        wanted = _as_json(arguments or {})
        if not wanted and all(value is None for value in criteria.values()):
            raise InvalidOption("say which jobs to delete, e.g. jobs.delete_many(tag='customer-17')")
        store, asks = self._store(), actor_name(by)
        wheres = job_filters(cast("JobQuery", {**criteria, "limit": _DELETED_AT_ONCE}), now=await store.now())
        deleted = running = 0
        while found := await _find(store, wheres):
            wheres = [replace(where, before=found[-1].id) for where in wheres]
            meant = {job.id: job.state for job in found if _was_given(job, wanted)}
            if dry_run:
                held = list(meant.values()).count(State.RUNNING)
                deleted, running = deleted + len(meant) - held, running + held
            else:
                noted = entries_about_jobs(meant, "delete", asks)
                answers = list((await store.delete([*meant], noted=noted)).values())
                deleted += answers.count(DeleteAnswer.DELETED)
                running += answers.count(DeleteAnswer.RUNNING)
        return DeletedJobs(deleted, running)

    async def cancel(
        self, job_id: GivenId, *, reason: str = ON_REQUEST, by: str | None = None
    ) -> CancelAnswer:
        """Cancel a job: `cancelled` at once when pending, `requested` when claimed, `finished` when it has ended.

        A claimed job is asked to stop; one that starts within the next half second may still begin.
        Raises `JobNotFound`.
        """
        answer = (await self.cancel_many([job_id], reason=reason, by=by))[job_id]
        if answer is CancelAnswer.UNKNOWN:
            raise job_not_found(read_id(job_id))
        return answer

    async def cancel_many(
        self, job_ids: Iterable[G], *, reason: str = ON_REQUEST, by: str | None = None
    ) -> Mapping[G, CancelAnswer]:
        """Cancel jobs in one step and return what happened to each; `unknown` for an id without a job."""
        ids = {given: read_id(given) for given in job_ids}
        noted = entries_about_jobs(ids.values(), "cancel", by, reason=check_reason(reason))
        answers = await self._store().cancel([*dict.fromkeys(ids.values())], reason=reason, noted=noted)
        return {given: answers[job_id] for given, job_id in ids.items()}

    async def upcoming(self, *, limit: int = 10) -> Sequence[JobRecord]:
        """Return the pending jobs that fall due first."""
        return [JobRecord.from_stored(job) for job in await self._store().upcoming(check_limit(limit))]

    async def explain(self, job_id: GivenId) -> Explanation:
        """Tell what happened to a job, and why it has not run or ended yet; raises `JobNotFound`."""
        return await explain_job(self._store(), read_id(job_id))

    async def logs(self, job_id: GivenId) -> Sequence[LogPart]:
        """Return what a job has logged, in parts and in order, each with its attempt; raises `JobNotFound`."""
        job_id = read_id(job_id)
        found = await self._store().logs(job_id)
        if not found:
            await self.get(job_id)
        return with_gaps(found)

    async def rerun(
        self, job_id: GivenId, *, by: str | None = None, **values: Unpack[JobOptionValues]
    ) -> JobHandle[Any]:
        """Enqueue a job like one that has ended; `parent` of the new one is the old one's id.

        Options such as `delay`, `at` or `queue` stand before those of the old one. Its key and its deadline are
        not taken over, and its task need not be known here. Raises `JobActive` while it waits or runs.
        """
        options = job_options(values, owner=self._client)
        if options.tx is not None:
            raise InvalidOption("rerun takes no tx=: it reads the old job and stores the new one by itself")
        new = job_once_more(await find_job(self._store(), read_id(job_id)), options)
        handler = self._tasks.get(new.task)
        decode = msgspec.json.decode if handler is None else result_decoder(handler.function)
        entry = entry_about("job", read_id(job_id), "rerun", by, job=new.id)
        return await self._client.enqueue(Call(new, decode, entry))

    async def snooze(self, job_id: GivenId, delay: Duration, *, by: str | None = None) -> None:
        """Put a job off, from its due time, or from now if that has passed.

        Raises `JobActive` when a worker has it, `JobEnded` when it has ended, `JobNotFound`.
        """
        micros, job_id = parse_duration(delay, what="delay"), read_id(job_id)
        instead = "its handler can put it off, with duetime.Snooze"
        entry = entry_about("job", job_id, "snooze", by, delay=micros)
        await self._edit(job_id, JobEdit(postpone=micros), entry, instead=instead)

    async def edit(
        self,
        job_id: GivenId,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        by: str | None = None,
        expected: JobRecord | None = None,
        **values: Unpack[JobEditValues],
    ) -> None:
        """Change what is given of a job that waits, and nothing else.

        `args` and `kwargs` together are the new arguments, which the task checks: it must be registered here or announced. Raises
        `JobActive` when a worker has the job, even half a second ahead of its time, `JobEnded`, `JobNotFound`, and `JobChanged`
        if it is not as it was when `expected` was read.
        """
        check_known(values, JobEditValues.__optional_keys__)
        call = call_arguments(args, kwargs)
        if not values and args is None and kwargs is None:
            raise InvalidOption("say what to change, e.g. jobs.edit(id, delay='1h')")
        options = job_options(cast("JobOptionValues", values))
        change = JobEdit(
            due_at=options.at,
            delay=options.delay if "delay" in values else None,
            queue=options.queue,
            priority=options.priority,
            retries=options.retries,
            timeout=options.timeout,
            expires=options.terms.expires,
            expires_at=options.expires_at,
        )
        job = await find_job(self._store(), read_id(job_id))
        if expected is not None:
            if editable(JobRecord.from_stored(job)) != editable(expected):
                raise job_changed(job.id)
            change = _if_as_read(change, job)
        await self._check_deadline(job, change)
        if args is not None or kwargs is not None:
            handler = await find_handler(self._store(), self._tasks, job.task)
            payload = handler.arguments.encode(*call)
            in_turn = job.gate is not None and gate_schedule(job.gate) is not None
            change = change._replace(payload=payload, gate=job.gate if in_turn else handler.gate_of(payload))
        entry = entry_about("job", job.id, "edit", by, **_said(change))
        await self._edit(job.id, change, entry, instead="cancel it, and run it again as you want it")

    async def _edit(self, job_id: JobId, change: JobEdit, entry: AuditEntry, *, instead: str) -> None:
        answer = (await self._store().edit([job_id], change, noted={job_id: entry}))[job_id]
        if answer is EditAnswer.RUNNING:
            raise JobActive(f"job {job_id} is with a worker; {instead}")
        if answer is EditAnswer.DIFFERENT:
            raise job_changed(job_id)
        _check_not_ended(job_id, answer)

    async def _check_deadline(self, job: StoredJob, change: JobEdit) -> None:
        """Raise `InvalidOption` for a new due time at which the job would be too late."""
        if job.expires_at is None or (change.expires, change.expires_at) != (None, None):
            return
        due_at = await self._store().now() + change.delay if change.delay is not None else change.due_at
        if due_at is not None and due_at >= job.expires_at:
            raise InvalidOption(
                f"job {job.id} is to start before {to_datetime(job.expires_at).isoformat()}, "
                f"not at {to_datetime(due_at).isoformat()}; give expires=, too"
            )

    async def release(self, job_id: GivenId, *, force: bool = False, by: str | None = None) -> ReleaseAnswer:
        """Have a worker give back a job that it has claimed and not started, so that another can have it.

        By `force` it is taken away whether it has started or not: its run can record nothing more, but it goes on
        until its worker notices, so for a while the job may run twice. `waiting` says that no worker had it.
        Raises `JobActive` when it has started, `JobEnded`, `JobNotFound`, and `TimeoutError` when the worker
        does not answer.
        """
        job_id = read_id(job_id)
        entry = entry_about("job", job_id, "release", by, force=force or None)
        if force:
            answer = (await self._store().release([job_id], force=True, noted={job_id: entry}))[job_id]
        else:
            answer = await request_release(self._store(), job_id, entry)
        if answer is ReleaseAnswer.STARTED:
            raise JobActive(f"job {job_id} has started; {_BY_FORCE}")
        _check_not_ended(job_id, answer)
        return answer


def job_changed(job_id: JobId) -> JobChanged:
    """Return the error for a change of a job that is not as it was read."""
    return JobChanged(f"job {job_id} has been changed since it was read; read it again")


def _if_as_read(change: JobEdit, job: StoredJob) -> JobEdit:
    """Return a change that is made only if the job is still as it was read."""
    return change._replace(
        if_due_at=job.due_at,
        if_fence=job.fence,
        if_queue=job.queue,
        if_priority=job.priority,
        if_retries=job.retries,
        if_timeout=job.timeout,
        if_expires_at=job.expires_at,
        if_payload=job.payload,
    )


def _said(change: JobEdit) -> dict[str, object]:
    """Return what is noted of a change; new arguments are in the job, and may be secret."""
    values: dict[str, object] = change._asdict()
    hidden = ("gate", "if_")
    said = {name: one for name, one in values.items() if one is not None and not name.startswith(hidden)}
    return said | ({"payload": "changed"} if "payload" in said else {})


def _check_not_ended(job_id: JobId, answer: EditAnswer | ReleaseAnswer) -> None:
    if answer in (EditAnswer.FINISHED, ReleaseAnswer.FINISHED):
        raise JobEnded(f"job {job_id} has ended; scheduler.jobs.rerun(id) runs it once more")
    if answer in (EditAnswer.UNKNOWN, ReleaseAnswer.UNKNOWN):
        raise job_not_found(job_id)


class Pruning:
    """The verb `scheduler.prune`; workers do the same from time to time."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def __call__(
        self,
        *,
        older_than: Duration = "30d",
        keep_per_schedule: int = DEFAULT_KEEP_PER_SCHEDULE,
        dry_run: bool = False,
    ) -> int:
        """Remove the records of jobs that ended longer ago, in small batches, and return how many there were.

        The latest of each schedule stay, and those whose result, error or key is to be kept for longer. A dry run
        counts what would go.
        """
        age = parse_duration(older_than, what="older_than")
        keep = check_keep_per_schedule(keep_per_schedule)
        store = self._store()
        retention = Retention(before=await store.now() - age, keep_per_schedule=keep)
        removed, pruned = 0, PruneResult(0, "")
        while pruned.last is not None:
            pruned = await store.prune(retention, after=pruned.last, dry_run=dry_run)
            removed += pruned.jobs
        return removed
