"""Jobs as a client sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from duetime.errors import InvalidOption, JobNotFound
from duetime.model.job import JobId
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.scheduler.records import JobRecord
from duetime.stores.base import CancelAnswer, JobFilter, Store

MAX_PAGE = 1_000
ON_REQUEST = "cancelled on request"


class Jobs:
    """Reads and cancels jobs."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def get(self, job_id: JobId) -> JobRecord:
        """Return one job; raises `JobNotFound`."""
        found = await self._store().get([job_id])
        if not found:
            raise _not_found(job_id)
        return JobRecord.from_stored(found[0])

    async def list(
        self,
        *,
        task: str | None = None,
        state: State | str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        before: JobId | None = None,
        limit: int = 50,
    ) -> list[JobRecord]:
        """Return one page of jobs, newest first; pass the last id as `before` for the next page."""
        if not 1 <= limit <= MAX_PAGE:
            text = f"limit must lie between 1 and {MAX_PAGE}, not {limit!r}"
            raise InvalidOption(text)
        where = JobFilter(
            task=task, state=_state(state), queue=queue, schedule=schedule, before=before, limit=limit
        )
        return [JobRecord.from_stored(job) for job in await self._store().find(where)]

    async def cancel(self, job_id: JobId, *, reason: str = ON_REQUEST) -> CancelAnswer:
        """Cancel a job: `cancelled` at once when pending, `requested` when claimed, `finished` when it has ended.

        A claimed job is asked to stop; one that starts within the next half second may still begin.
        Raises `JobNotFound`.
        """
        answer = (await self.cancel_many([job_id], reason=reason))[job_id]
        if answer is CancelAnswer.UNKNOWN:
            raise _not_found(job_id)
        return answer

    async def cancel_many(
        self, job_ids: Iterable[JobId], *, reason: str = ON_REQUEST
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs in one step and tell what became of each; `unknown` where there is none."""
        return await self._store().cancel(list(job_ids), reason=reason)

    async def logs(self, job_id: JobId) -> Sequence[LogPart]:
        """Return what a job has logged, in parts and in order, each with its attempt; raises `JobNotFound`."""
        found = await self._store().logs(job_id)
        if not found:
            await self.get(job_id)
        return found


def _state(state: State | str | None) -> State | None:
    try:
        return None if state is None else State(state)
    except ValueError:
        text = f"unknown state {state!r}; states are {', '.join(State)}"
        raise InvalidOption(text) from None


def _not_found(job_id: JobId) -> JobNotFound:
    return JobNotFound(f"there is no job {job_id}; it never existed or its record was pruned")
