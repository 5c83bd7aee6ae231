"""Figures over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duetime.errors import InvalidOption
from duetime.scheduler.audit import AuditRecord
from duetime.scheduler.failures import FailureGroup
from duetime.scheduler.stats import Statistics
from duetime.web.access import UnboundViewer, Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of
from duetime.web.api.values import Duration, Since, moment_or_duration

router = APIRouter(prefix="/stats", tags=["stats"])

Failures = model_of(FailureGroup)
Mark = model_of(AuditRecord, "AuditEntry")
ReleaseQuery = Annotated[str, Query(description="A release of the application.", examples=["1.4.2"])]


class StatsQuery(Body):
    """Whose figures, and of which time; at most one thing is named."""

    task: str = NOT_GIVEN
    queue: str = NOT_GIVEN
    schedule: str = NOT_GIVEN
    since: Since = "24h"
    until: Since = NOT_GIVEN
    step: Annotated[
        Duration, Field(description="Seconds, or text such as `5m`; else about a hundred points.")
    ] = NOT_GIVEN


class NewFailuresAnswer(Body):
    """What went wrong since a release that had not gone wrong before, the most frequent first."""

    items: list[Failures]  # type: ignore[valid-type]


@router.get("", response_model=model_of(Statistics, marks=list[Mark]))  # type: ignore[valid-type]
async def get_statistics(access: Viewer, query: Annotated[StatsQuery, Query()]) -> Response:
    """Tell how a task, a queue, a schedule or everything has fared over time."""
    named = [name for name in ("task", "queue", "schedule") if getattr(query, name) is not None]
    if len(named) > 1:
        raise InvalidOption(f"name one thing, not a {' and a '.join(named)}")
    if query.queue is not None:
        access.check_queue(query.queue)
    elif query.schedule is not None:
        await access.schedule(query.schedule)
    else:
        access.check_unbound()
    until = None if query.until is None else moment_or_duration(query.until)
    values: dict[str, Any] = {"since": moment_or_duration(query.since), "until": until, "step": query.step}
    stats = access.scheduler.stats
    if query.schedule is not None:
        found = await stats.schedules(query.schedule, **values)
    elif query.queue is not None:
        found = await stats.queues(query.queue, **values)
    else:
        found = await stats.tasks(query.task, **values)
    # Who did what is not for those who may see some queues only.
    return answer(found if access.user.queues is None else replace(found, marks=()))


@router.get("/new-failures", response_model=NewFailuresAnswer)
async def list_new_failures(access: UnboundViewer, release: ReleaseQuery) -> Response:
    """Group the failures that are new since a release, the most frequent first."""
    return answer({"items": await access.scheduler.stats.new_failures(release)})
