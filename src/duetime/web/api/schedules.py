"""Schedules: listed with how they fare, and shown with their past and what is to come."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duetime.model.schedule.files import written_trigger
from duetime.model.triggers.preview import Upcoming
from duetime.model.triggers.specs import UnreadableTrigger
from duetime.scheduler.explanations import ScheduleExplanation
from duetime.scheduler.records import ScheduleChange, ScheduleRecord
from duetime.web.access import Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of, page_of, plain
from duetime.web.api.values import Cursor, Limit, Moment, moment
from duetime.web.cursors import seal, unseal
from duetime.web.etags import schedule_etag
from duetime.web.problems import documented

router = APIRouter(prefix="/schedules", tags=["schedules"])

Schedule = model_of(ScheduleRecord)
SchedulePath = Annotated[
    str, Path(description="The name of a schedule.", examples=["nightly"], max_length=200)
]
ONE_SCHEDULE = documented(404)


class ScheduleListQuery(Body):
    """Which page."""

    limit: Limit = 50
    cursor: Cursor = NOT_GIVEN


class PreviewQuery(Body):
    """How many, and after when."""

    n: Annotated[int, Query(ge=1, le=200)] = 10
    after: Moment = NOT_GIVEN


class HistoryQuery(Body):
    """How many."""

    limit: Limit = 50


class ExplainQuery(Body):
    """When."""

    at: str = NOT_GIVEN
    """A point in time; without a zone, in that of the schedule, and without seconds for the whole minute."""


def schedule_answer(record: ScheduleRecord) -> dict[str, Any]:
    """Return a schedule as JSON values, with its trigger as one writes it."""
    trigger = record.trigger
    readable = not isinstance(trigger, UnreadableTrigger)
    words = written_trigger(trigger, name=record.name) if readable else {"trigger": trigger.to_spec()}
    values: dict[str, Any] = plain(record)
    return values | {"trigger": words}


def schedule_response(record: ScheduleRecord, status: int = 200) -> Response:
    """Return a schedule with its ETag."""
    return answer(schedule_answer(record), status, {"ETag": schedule_etag(record)})


@router.get("", response_model=page_of(Schedule))
async def list_schedules(access: Viewer, query: Annotated[ScheduleListQuery, Query()]) -> Response:
    """List schedules by name, each with its last run, how it ended, and how many went well and failed."""
    queues, cursor = access.user.queues, unseal(query.cursor, "schedules")
    found = await access.scheduler.schedules.list(queues=queues, limit=query.limit, cursor=cursor)
    shown = await access.without_hidden_runs(found)
    return answer({"items": [schedule_answer(one) for one in shown], "next": seal(found.cursor, "schedules")})


@router.get("/{name:path}/preview", response_model=list[model_of(Upcoming)], responses=ONE_SCHEDULE)  # type: ignore[misc]
async def preview_schedule(
    access: Viewer, name: SchedulePath, query: Annotated[PreviewQuery, Query()]
) -> Response:
    """Show the next occurrences, with notes about changes of the clock and what will not run."""
    schedule = await access.schedule(name)
    after = None if query.after is None else moment(query.after, what="after")
    return answer(await access.scheduler.schedules.preview(schedule.name, query.n, after=after))


@router.get("/{name:path}/history", response_model=list[model_of(ScheduleChange)], responses=ONE_SCHEDULE)  # type: ignore[misc]
async def list_history(
    access: Viewer, name: SchedulePath, query: Annotated[HistoryQuery, Query()]
) -> Response:
    """Show what was done to a schedule and by whom, newest first."""
    schedule = await access.schedule(name)
    return answer(await access.scheduler.schedules.history(schedule.name, limit=query.limit))


@router.get("/{name:path}/explain", response_model=model_of(ScheduleExplanation), responses=ONE_SCHEDULE)
async def explain_schedule(
    access: Viewer, name: SchedulePath, query: Annotated[ExplainQuery, Query()]
) -> Response:
    """Explain how a schedule stands, or what it did at some time."""
    schedule = await access.schedule(name)
    at = None if query.at is None else moment(query.at, what="at")
    return answer(await access.scheduler.schedules.explain(schedule.name, at))


@router.get("/{name:path}", response_model=Schedule, responses=ONE_SCHEDULE)
async def get_schedule(access: Viewer, name: SchedulePath) -> Response:
    """Show a schedule; its ETag changes with what people do to it, and not when it fires."""
    return schedule_response(await access.schedule(name))
