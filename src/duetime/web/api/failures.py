"""Failures, grouped by what went wrong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from duetime.scheduler.failures import FailureGroup
from duetime.web.access import Viewer
from duetime.web.answers import NOT_GIVEN, answer, model_of, page_of
from duetime.web.api.jobs import PARTIAL, JobFilters, job_criteria
from duetime.web.api.values import Cursor
from duetime.web.cursors import seal, unseal

router = APIRouter(prefix="/failures", tags=["failures"])


class FailureFilters(JobFilters):
    """Which failed jobs are meant."""

    jobs: Annotated[int, Query(ge=1, le=1_000, description="How many failed jobs are grouped.")] = 500
    cursor: Cursor = NOT_GIVEN


@router.get("", response_model=page_of(model_of(FailureGroup), partial=PARTIAL))
async def list_failures(access: Viewer, query: Annotated[FailureFilters, Query()]) -> Response:
    """Group the newest failed jobs by what went wrong, the most frequent first; `next` goes on to older ones."""
    about = ("failures", query.named())
    cursor = unseal(query.cursor, *about)
    criteria = job_criteria(access, query)
    found = await access.scheduler.jobs.failures(**criteria, limit=query.jobs, cursor=cursor)
    return answer({"items": found, "next": seal(found.cursor, *about), "partial": found.partial})
