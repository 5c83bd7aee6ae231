"""Jobs as a client sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

import msgspec

from duetime.errors import InvalidOption, JobActive, JobEnded
from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.job import JobId
from duetime.model.names import check_reason
from duetime.model.reports import LogPart, with_gaps
from duetime.model.rerun import repeat
from duetime.model.task import JobOptionValues, job_options
from duetime.scheduler.explaining import Explanation, explain_job
from duetime.scheduler.handle import JobHandle
from duetime.scheduler.lookup import find_job, no_job
from duetime.scheduler.pages import JobQuery, Page, check_limit, cursor_behind, job_filter
from duetime.scheduler.records import AttemptRecord, JobRecord, attempts_of
from duetime.scheduler.releasing import ask_back
from duetime.scheduler.task import Call, Client
from duetime.stores.base import CancelAnswer, ReleaseAnswer, SnoozeAnswer, Store

ON_REQUEST = "cancelled on request"


class Jobs:
    """Reads jobs, and changes what becomes of them."""

    def __init__(self, store: Callable[[], Store], *, client: Client) -> None:
        self._store = store
        self._client = client

    async def get(self, job_id: JobId) -> JobRecord:
        """Return one job; raises `JobNotFound`."""
        return JobRecord.from_stored(await find_job(self._store(), job_id))

    async def list(self, **query: Unpack[JobQuery]) -> Page[JobRecord]:
        """Return one page of jobs, newest first; pass its `cursor` for the next one."""
        store = self._store()
        where = job_filter(query, now=await store.now() if _counts_back(query.get("since")) else 0)
        found = await store.find(replace(where, limit=where.limit + 1))
        records = [JobRecord.from_stored(job) for job in found[: where.limit]]
        more = len(found) > where.limit
        return Page(records, cursor=cursor_behind(records[-1].id) if more else None)

    async def attempts(self, job_id: JobId) -> Sequence[AttemptRecord]:
        """Return the tries of a job, oldest first, the last or current one included; raises `JobNotFound`."""
        store = self._store()
        return attempts_of(await find_job(store, job_id), await store.attempts(job_id))

    async def cancel(self, job_id: JobId, *, reason: str = ON_REQUEST) -> CancelAnswer:
        """Cancel a job: `cancelled` at once when pending, `requested` when claimed, `finished` when it has ended.

        A claimed job is asked to stop; one that starts within the next half second may still begin.
        Raises `JobNotFound`.
        """
        answer = (await self.cancel_many([job_id], reason=reason))[job_id]
        if answer is CancelAnswer.UNKNOWN:
            raise no_job(job_id)
        return answer

    async def cancel_many(
        self, job_ids: Iterable[JobId], *, reason: str = ON_REQUEST
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs in one step and tell what became of each; `unknown` where there is none."""
        return await self._store().cancel(list(job_ids), reason=check_reason(reason))

    async def upcoming(self, *, limit: int = 10) -> Sequence[JobRecord]:
        """Return the pending jobs that fall due first."""
        return [JobRecord.from_stored(job) for job in await self._store().upcoming(check_limit(limit))]

    async def explain(self, job_id: JobId) -> Explanation:
        """Tell what happened to a job, and why it has not run or ended yet; raises `JobNotFound`."""
        return await explain_job(self._store(), job_id)

    async def logs(self, job_id: JobId) -> Sequence[LogPart]:
        """Return what a job has logged, in parts and in order, each with its attempt; raises `JobNotFound`."""
        found = await self._store().logs(job_id)
        if not found:
            await self.get(job_id)
        return with_gaps(found)

    async def rerun(self, job_id: JobId, **values: Unpack[JobOptionValues]) -> JobHandle[Any]:
        """Enqueue a job like one that has ended; `parent` of the new one is the old one's id.

        Options such as `delay`, `at` or `queue` stand before those of the old one. Its key and its deadline are
        not taken over, and its task need not be known here. Raises `JobActive` while it waits or runs.
        """
        options = job_options(values, owner=self._client)
        if options.tx is not None:
            text = "rerun takes no tx=: it reads the old job and stores the new one by itself"
            raise InvalidOption(text)
        new = repeat(await find_job(self._store(), job_id), options)
        return await self._client.enqueue(Call(new, msgspec.json.decode))

    async def snooze(self, job_id: JobId, delay: Duration) -> None:
        """Put a job off, from its due time, or from now if that has passed.

        Raises `JobActive` when a worker has it, `JobEnded` when it has ended, `JobNotFound`.
        """
        micros = durations.parse(delay, what="delay")
        match (await self._store().snooze([job_id], delay=micros))[job_id]:
            case SnoozeAnswer.RUNNING:
                text = f"job {job_id} is with a worker and cannot be put off; its handler can, with duetime.Snooze"
                raise JobActive(text)
            case SnoozeAnswer.FINISHED:
                raise _ended(job_id)
            case SnoozeAnswer.UNKNOWN:
                raise no_job(job_id)
            case SnoozeAnswer.SNOOZED:
                return

    async def release(self, job_id: JobId, *, force: bool = False) -> ReleaseAnswer:
        """Have a worker give back a job that it has claimed and not started, so that another can have it.

        By `force` it is taken away whether it has started or not: its run can record nothing more, but it goes on
        until its worker notices, so for a while the job may run twice. `waiting` says that no worker had it.
        Raises `JobActive` when it has started, `JobEnded`, `JobNotFound`, and `TimeoutError` when the worker
        does not answer.
        """
        if force:
            answer = (await self._store().release([job_id], force=True))[job_id]
        else:
            answer = await ask_back(self._store(), job_id)
        match answer:
            case ReleaseAnswer.STARTED:
                text = f"job {job_id} has started; force=True takes it away all the same, and it may then run twice"
                raise JobActive(text)
            case ReleaseAnswer.FINISHED:
                raise _ended(job_id)
            case ReleaseAnswer.UNKNOWN:
                raise no_job(job_id)
            case ReleaseAnswer.RELEASED | ReleaseAnswer.WAITING:
                return answer


def _counts_back(since: datetime | Duration | None) -> bool:
    return since is not None and not isinstance(since, datetime)


def _ended(job_id: JobId) -> JobEnded:
    return JobEnded(f"job {job_id} has ended; scheduler.jobs.rerun(id) runs it once more")
