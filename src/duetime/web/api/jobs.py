"""Jobs: listed page by page, and shown with all that is known about them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from duetime.model.job import JobKind
from duetime.model.queues import Registry
from duetime.model.reports import LogPart
from duetime.model.states import State
from duetime.scheduler.explanations import Explanation
from duetime.scheduler.records import AttemptRecord, JobRecord
from duetime.web.access import Access, Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of, page_of
from duetime.web.api.values import Cursor, JobIdPath, Limit, Since, moment_or_duration
from duetime.web.cursors import seal, unseal
from duetime.web.etags import job_etag
from duetime.web.problems import documented

router = APIRouter(prefix="/jobs", tags=["jobs"])

Job = model_of(JobRecord)
ONE_JOB = documented(404)
LOOK_AT: Final = 5_000
"""How many jobs one request looks at, at most, where no index finds those that are asked for."""
PARTIAL: Final = (
    f"Whether the page is not full because {LOOK_AT:,} jobs were looked at; `next` goes on behind them."
)


class JobFilters(Body):
    """Which jobs are meant; what is not named does not matter."""

    task: str = NOT_GIVEN
    state: list[State] = NOT_GIVEN
    """Any of these."""
    registry: Registry = NOT_GIVEN
    queue: str = NOT_GIVEN
    schedule: str = NOT_GIVEN
    kind: JobKind = NOT_GIVEN
    key: str = NOT_GIVEN
    tag: str = NOT_GIVEN
    since: Since = NOT_GIVEN
    """The earliest time of enqueueing."""
    until: Since = NOT_GIVEN
    """The time of enqueueing lies before this."""

    def named(self) -> dict[str, Any]:
        """Return those that are named, as they were written."""
        return {name: value for name, value in self.given().items() if name in JobFilters.model_fields}


def job_criteria(access: Access, filters: JobFilters) -> dict[str, Any]:
    """Return what the verbs are asked for: nothing that is out of the user's sight."""
    found = filters.named()
    found |= {name: moment_or_duration(found[name]) for name in ("since", "until") if name in found}
    found["look_at"] = LOOK_AT
    access.check_queue(found.get("queue"))
    if access.user.queues is not None:
        found.setdefault("queue", sorted(access.user.queues))
    return found


class JobListQuery(JobFilters):
    """Which page of which jobs."""

    limit: Limit = 50
    cursor: Cursor = NOT_GIVEN


@router.get("", response_model=page_of(Job, partial=PARTIAL))
async def list_jobs(access: Viewer, query: Annotated[JobListQuery, Query()]) -> Response:
    """List jobs, newest first; of a search that finds few, perhaps only a part at once."""
    about = ("jobs", query.named())
    cursor = unseal(query.cursor, *about)
    criteria = job_criteria(access, query)
    found = await access.scheduler.jobs.list(**criteria, limit=query.limit, cursor=cursor)
    return answer({"items": found, "next": seal(found.cursor, *about), "partial": found.partial})


@router.get("/{job_id}", response_model=Job, responses=ONE_JOB)
async def get_job(access: Viewer, job_id: JobIdPath) -> Response:
    """Show a job; its ETag changes with what can be edited of it."""
    job = await access.job(job_id)
    return answer(job, headers={"ETag": job_etag(job)})


@router.get("/{job_id}/attempts", response_model=list[model_of(AttemptRecord)], responses=ONE_JOB)  # type: ignore[misc]
async def list_attempts(access: Viewer, job_id: JobIdPath) -> Response:
    """Show the tries of a job, oldest first, the last or current one included."""
    job = await access.job(job_id)
    return answer(await access.scheduler.jobs.attempts(job.id))


@router.get("/{job_id}/logs", response_model=list[model_of(LogPart)], responses=ONE_JOB)  # type: ignore[misc]
async def list_logs(access: Viewer, job_id: JobIdPath) -> Response:
    """Show what a job has logged, in parts and in order."""
    job = await access.job(job_id)
    return answer(await access.scheduler.jobs.logs(job.id))


@router.get("/{job_id}/explain", response_model=model_of(Explanation), responses=ONE_JOB)
async def explain_job(access: Viewer, job_id: JobIdPath) -> Response:
    """Tell what happened to a job, and why it has not run or ended yet."""
    job = await access.job(job_id)
    return answer(await access.scheduler.jobs.explain(job.id))
