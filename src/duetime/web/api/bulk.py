"""Many jobs at once: counted first, and then done in bounded steps."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from duetime.errors import InvalidCursor, InvalidOption, JobActive, JobEnded, JobNotFound
from duetime.model.ids import new_job_id
from duetime.model.stored.credentials import Role
from duetime.scheduler.pages import write_cursor
from duetime.scheduler.records import JobRecord
from duetime.web.access import Access, Operator
from duetime.web.answers import NOT_GIVEN, Body, answer
from duetime.web.api.jobs import JobFilters, job_criteria
from duetime.web.api.values import Duration, Reason
from duetime.web.cursors import seal, unseal
from duetime.web.guard import role_missing
from duetime.web.problems import documented

router = APIRouter(prefix="/jobs", tags=["jobs"])

_STEP: Final = 100
"""How many jobs one request touches at most."""
_MOST_COUNTED: Final = 10_000
_PAGE: Final = 1_000

Action: TypeAlias = Literal["cancel", "rerun", "snooze", "delete"]


class BulkBody(Body):
    """What to do to which jobs."""

    EXAMPLE: ClassVar = {"action": "cancel", "filter": {"task": "mail.send", "state": ["pending"]}}

    action: Action
    filter: JobFilters = JobFilters()
    all: bool = False
    """Needed for a filter that names nothing."""
    reason: Reason = NOT_GIVEN
    """For `cancel`."""
    delay: Duration = NOT_GIVEN
    """For `snooze`."""
    cursor: str = NOT_GIVEN
    """The `next` of the answer before; without it, jobs are only counted."""


class BulkAnswer(Body):
    """How far it has come."""

    matching: int
    """How many jobs met the filter when they were counted."""
    at_least: bool
    """Whether there may be more than were counted."""
    done: int
    """How many have been changed so far."""
    refused: int
    """How many were not, because of the state they are in."""
    next: str | None
    """What to send as `cursor` to go on; null when all is done. Jobs that came after the count are left alone."""


class BulkProgress(msgspec.Struct, forbid_unknown_fields=True):
    """What travels from step to step."""

    cursor: str | None
    matching: int
    at_least: bool
    done: int = 0
    refused: int = 0


@router.post("/bulk", response_model=BulkAnswer, responses=documented(413, 415))
async def change_jobs(access: Operator, body: BulkBody) -> Response:
    """Count the jobs that meet a filter; sent again with the `next` of the answer, do it to the next 100 of them.

    To delete is for admins.
    """
    if body.action == "delete" and not access.user.may(Role.ADMIN):
        raise role_missing(access.user, Role.ADMIN)
    _check(body)
    # A step does what was counted, and nothing else.
    about = ("bulk", body.model_dump(exclude={"cursor"}, exclude_unset=True))
    progress = _read(unseal(body.cursor, *about))
    if progress is None:
        progress = await _count(access, body)
    else:
        progress = await _step(access, body, progress)
    said = msgspec.to_builtins(progress)
    following = None if progress.cursor is None else seal(said, *about)
    return answer({name: value for name, value in said.items() if name != "cursor"} | {"next": following})


def _check(body: BulkBody) -> None:
    if not body.filter.named() and not body.all:
        raise InvalidOption('this filter means every job; name some, or send "all": true')
    for name, action in (("reason", "cancel"), ("delay", "snooze")):
        if name in body.model_fields_set and body.action != action:
            raise InvalidOption(f"{name} is for {action}, not for {body.action}")
    if body.action == "snooze" and "delay" not in body.model_fields_set:
        raise InvalidOption("say by how much, with delay")


def _read(found: Any) -> BulkProgress | None:
    try:
        return None if found is None else msgspec.convert(found, BulkProgress)
    except msgspec.ValidationError:
        raise InvalidCursor("this is not a cursor; pass the `next` of the answer before as it is") from None


async def _count(access: Access, body: BulkBody) -> BulkProgress:
    """Count what is there now; what comes later is not meant."""
    criteria = job_criteria(access, body.filter)
    start = write_cursor("jobs", new_job_id())
    cursor: str | None = start
    matching = 0
    while cursor is not None and matching < _MOST_COUNTED:
        found = await access.scheduler.jobs.list(**criteria, limit=_PAGE, cursor=cursor)
        matching, cursor = matching + len(found), found.cursor
        if found.partial:
            break
    return BulkProgress(start if matching or cursor else None, matching, cursor is not None)


async def _step(access: Access, body: BulkBody, progress: BulkProgress) -> BulkProgress:
    """Do it to the next jobs that meet the filter."""
    criteria = job_criteria(access, body.filter)
    found = await access.scheduler.jobs.list(**criteria, limit=_STEP, cursor=progress.cursor)
    done = 0
    for job in found:
        try:
            await _act(access, body, job)
            done += 1
        except (JobActive, JobEnded, JobNotFound):
            progress.refused += 1
    progress.done += done
    progress.cursor = found.cursor
    return progress


async def _act(access: Access, body: BulkBody, job: JobRecord) -> None:
    jobs, by = access.scheduler.jobs, access.by
    match body.action:
        case "cancel":
            reason = {"reason": body.reason} if "reason" in body.model_fields_set else {}
            if await jobs.cancel(job.id, by=by, **reason) == "finished":
                raise JobEnded(job.id)
        case "rerun":
            await jobs.rerun(job.id, by=by)
        case "snooze":
            await jobs.snooze(job.id, body.delay, by=by)
        case "delete":
            await jobs.delete(job.id, by=by)
