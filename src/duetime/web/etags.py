"""ETags: what a client has seen of a thing, so that it changes nothing that it has not seen."""

from __future__ import annotations

import hashlib
from typing import Annotated, TypeAlias

import msgspec
from fastapi import Header

from duetime.scheduler.records import JobRecord, ScheduleRecord, editable
from duetime.web.problems import Problem

IfMatch: TypeAlias = Annotated[
    str | None,
    Header(
        description="The ETag of what was read: nothing is changed if it has changed since.", max_length=1_000
    ),
]


def job_etag(job: JobRecord) -> str:
    """Return the ETag of what can be edited of a job."""
    return f'"{hashlib.sha256(msgspec.json.encode(editable(job))).hexdigest()[:16]}"'


def schedule_etag(schedule: ScheduleRecord) -> str:
    """Return the ETag of a schedule: it changes with what people do to it, and not when it fires."""
    return f'"{schedule.created_at.timestamp():.6f}-{schedule.rev}"'


def check_match(given: str | None, current: str, *, what: str) -> None:
    """Refuse a change of something that is not as it was read."""
    if given is None or given.strip() == "*":
        return
    if current not in {one.strip().removeprefix("W/") for one in given.split(",")}:
        raise changed_since(what)


def changed_since(what: str) -> Problem:
    """Return the answer to a change that comes too late."""
    return Problem(412, "Changed meanwhile", f"{what} has been changed since it was read; read it again")
