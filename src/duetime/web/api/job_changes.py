"""Jobs enqueued, and one by one cancelled, run again, put off, taken back, changed and removed."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from fastapi import APIRouter
from pydantic import Field, JsonValue
from starlette.responses import Response

from duetime.model.ids import own_id
from duetime.model.job import IfExists
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.lookup import find_job
from duetime.scheduler.records import json_or_text
from duetime.stores.base import CancelAnswer, ReleaseAnswer
from duetime.web.access import Access, Admin, Operator
from duetime.web.answers import NOT_GIVEN, Body, answer
from duetime.web.api.jobs import Job
from duetime.web.api.values import Duration, JobIdPath, Moment, Reason, moment, moment_or_duration
from duetime.web.etags import IfMatch, check_match, job_etag
from duetime.web.problems import Problem, documented

router = APIRouter(prefix="/jobs", tags=["jobs"])

ONE_JOB = documented(404, 409, 415)
_DAY_MS: Final = 86_400_000


class NewJobBody(Body):
    """A task that is registered here, or that a worker has announced, its arguments, and options of this one job."""

    EXAMPLE: ClassVar = {"task": "mail.send", "arguments": {"user_id": 1}, "delay": "10s"}

    task: str
    arguments: dict[str, JsonValue] = Field(default={})
    """By parameter name."""
    delay: Duration = NOT_GIVEN
    """How long from now it is due."""
    at: Moment = NOT_GIVEN
    """When it is due, in place of a delay."""
    queue: str = NOT_GIVEN
    priority: int = NOT_GIVEN
    """From 0, which is served first, to 9."""
    retries: int = NOT_GIVEN
    timeout: Duration = NOT_GIVEN
    key: str = NOT_GIVEN
    """No other live job of the task has the same."""
    if_exists: IfExists = NOT_GIVEN
    """What happens if another one has the key."""
    keep_key: Duration = NOT_GIVEN
    debounce: Duration = NOT_GIVEN
    throttle: Duration = NOT_GIVEN
    expires: Duration = NOT_GIVEN
    """How long after its due time it may still start, or until when."""
    result_ttl: Duration = NOT_GIVEN
    failure_ttl: Duration = NOT_GIVEN
    tags: list[str] = NOT_GIVEN
    headers: dict[str, str] = NOT_GIVEN
    """Texts that travel with it."""


def job_values(body: Body) -> dict[str, Any]:
    """Return the options of a body as the verbs take them."""
    found = {name: value for name, value in body.given().items() if name not in {"task", "arguments"}}
    if "at" in found:
        found["at"] = moment(found["at"], what="at")
    if isinstance(expires := found.get("expires"), str):
        found["expires"] = moment_or_duration(expires)
    return found


class EnqueuedAnswer(Body):
    """A job that is stored."""

    id: str
    task: str
    existing: bool
    """Whether it was there before, under the same key or id."""


class ReasonBody(Body):
    """Why."""

    EXAMPLE: ClassVar = {"reason": "not wanted any more"}

    reason: Reason = NOT_GIVEN


class RerunBody(Body):
    """What is to differ from the job that has ended."""

    EXAMPLE: ClassVar = {"delay": "1h"}

    delay: Duration = NOT_GIVEN
    at: Moment = NOT_GIVEN
    queue: str = NOT_GIVEN
    priority: int = NOT_GIVEN
    retries: int = NOT_GIVEN
    timeout: Duration = NOT_GIVEN


class SnoozeBody(Body):
    """For how long."""

    EXAMPLE: ClassVar = {"delay": "1h"}

    delay: Duration


class ReleaseBody(Body):
    """How."""

    force: bool = NOT_GIVEN
    """Take away even a job that has started; it may then run twice for a while."""


class JobEditBody(RerunBody):
    """What is to become of a job that waits."""

    EXAMPLE: ClassVar = {"priority": 1}

    arguments: dict[str, JsonValue] = NOT_GIVEN
    expires: Duration = NOT_GIVEN


class CancelOutcome(Body):
    """What came of it: `cancelled` at once, `requested` of its worker, or `finished` before."""

    outcome: CancelAnswer


class ReleaseOutcome(Body):
    """What came of it: `released`, or `waiting` where no worker had it."""

    outcome: ReleaseAnswer


_NO_REASON: Final = ReasonBody()
_AS_BEFORE: Final = RerunBody()
_GENTLY: Final = ReleaseBody()
_ENQUEUED: dict[int | str, dict[str, Any]] = {
    200: {"model": EnqueuedAnswer, "description": "It was there before, under the same key or id."}
}


@router.post(
    "", status_code=201, response_model=EnqueuedAnswer, responses=_ENQUEUED | documented(409, 413, 415)
)
async def enqueue_job(access: Operator, body: NewJobBody) -> Response:
    """Enqueue a job; 200 instead of 201 says that one with the same key, which was there before, serves the request."""
    return _enqueued(access, await _enqueue(access, body))


@router.put(
    "/{job_id}",
    status_code=201,
    response_model=EnqueuedAnswer,
    responses=_ENQUEUED | documented(409, 413, 415),
)
async def enqueue_job_once(access: Operator, job_id: JobIdPath, body: NewJobBody) -> Response:
    """Enqueue a job under an id of the caller's own, a UUID of version 7 made today: sent again, it is the same job.

    409 says that another job has the id.
    """
    own = own_id(job_id)
    there = await access.scheduler.store.get([own])
    handle = await _enqueue(access, body, own)
    if handle.id == own:
        await _check_same(access, own, body)
    return _enqueued(access, handle, existing=bool(there))


@router.post("/{job_id}/cancel", response_model=CancelOutcome, responses=ONE_JOB)
async def cancel_job(access: Operator, job_id: JobIdPath, body: ReasonBody = _NO_REASON) -> Response:
    """Cancel a job at once if no worker has it; else its worker is asked to stop it. One that has ended stays as it is."""
    job = await access.job(job_id)
    outcome = await access.scheduler.jobs.cancel(job.id, by=access.by, **body.given())
    return answer({"outcome": outcome})


@router.post("/{job_id}/rerun", status_code=201, response_model=EnqueuedAnswer, responses=_ENQUEUED | ONE_JOB)
async def rerun_job(access: Operator, job_id: JobIdPath, body: RerunBody = _AS_BEFORE) -> Response:
    """Enqueue a job like one that has ended."""
    job, options = await access.job(job_id), job_values(body)
    await access.check_task(job.task)
    access.check_queue(options.get("queue"))
    return _enqueued(access, await access.scheduler.jobs.rerun(job.id, by=access.by, **options))


@router.post("/{job_id}/snooze", response_model=Job, responses=ONE_JOB)
async def snooze_job(access: Operator, job_id: JobIdPath, body: SnoozeBody) -> Response:
    """Put a job off that waits, from its due time, or from now if that has passed."""
    job = await access.job(job_id)
    await access.scheduler.jobs.snooze(job.id, body.delay, by=access.by)
    return answer(await access.job(job.id))


@router.post("/{job_id}/release", response_model=ReleaseOutcome, responses=documented(404, 409, 504))
async def release_job(access: Operator, job_id: JobIdPath, body: ReleaseBody = _GENTLY) -> Response:
    """Have a worker give back a job that it has claimed and not started; by force, even one that has started."""
    job = await access.job(job_id)
    outcome = await access.scheduler.jobs.release(job.id, by=access.by, **body.given())
    return answer({"outcome": outcome})


@router.patch("/{job_id}", response_model=Job, responses=documented(404, 409, 412, 413, 415))
async def edit_job(
    access: Operator, job_id: JobIdPath, body: JobEditBody, if_match: IfMatch = None
) -> Response:
    """Change what is named of a job that waits."""
    job, options = await access.job(job_id), job_values(body)
    access.check_queue(options.get("queue"))
    check_match(if_match, job_etag(job), what=f"job {job.id}")
    expected = None if if_match is None else job
    await access.scheduler.jobs.edit(
        job.id, by=access.by, kwargs=body.arguments, expected=expected, **options
    )
    changed = await access.job(job.id)
    return answer(changed, headers={"ETag": job_etag(changed)})


@router.delete("/{job_id}", status_code=204, responses=ONE_JOB)
async def delete_job(access: Admin, job_id: JobIdPath) -> Response:
    """Remove a job that waits or has ended, with its tries, log, result and key, as if it had never been."""
    job = await access.job(job_id)
    await access.scheduler.jobs.delete(job.id, by=access.by)
    return Response(status_code=204)


async def _enqueue(access: Access, body: NewJobBody, job_id: str | None = None) -> JobHandle[Any]:
    """Store a job, unless its queue or the task's own is out of sight."""
    options = job_values(body)
    await access.check_task(body.task)
    access.check_queue(options.get("queue"))
    return await access.scheduler.enqueue_by_name(body.task, body.arguments, job_id=job_id, **options)


def _enqueued(access: Access, handle: JobHandle[Any], *, existing: bool = False) -> Response:
    existing = existing or handle.existing
    said = {"id": handle.id, "task": handle.task, "existing": existing}
    return answer(said, 200 if existing else 201, {"Location": f"{access.base}/jobs/{handle.id}"})


async def _check_same(access: Access, job_id: str, body: NewJobBody) -> None:
    """Refuse a second, different job under one id."""
    # As they are stored: in a record, what is secret is masked.
    job = await find_job(access.scheduler.store, job_id)
    same = (job.task, json_or_text(job.payload)) == (body.task, body.arguments)
    if not (same and access.user.sees(job.queue)):
        raise Problem(409, "Id taken", f"another job has the id {job_id}", kind="urn:duetime:IdTaken")
