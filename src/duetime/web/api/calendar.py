"""What is to come, as JSON and as a file for calendars."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from duetime.model.schedule.calendar import MAX_DAYS, CalendarRecord
from duetime.model.schedule.forecast import Forecast
from duetime.model.stored.credentials import CredentialKind, Role
from duetime.scheduler.audit import MAX_ACTOR_NAME
from duetime.web.access import PREFIX, UnboundViewer, Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of
from duetime.web.api.values import Duration
from duetime.web.ics import calendar_text
from duetime.web.problems import documented

router = APIRouter(tags=["calendar"])


class CalendarQuery(Body):
    """How far to look ahead."""

    days: Annotated[int, Query(ge=1, le=MAX_DAYS)] = 14


class CalendarFileQuery(CalendarQuery):
    """How far to look ahead."""

    key: str = NOT_GIVEN
    """What stands in the address that `POST /calendar/link` has given."""


class LinkBody(Body):
    """What the address is for."""

    EXAMPLE: ClassVar = {"days": 30, "expires": "30d"}

    days: Annotated[int, Query(ge=1, le=MAX_DAYS)] = 14
    expires: Duration = "90d"
    """How long it is good."""


class LinkAnswer(Body):
    """An address for calendars, which send no tokens."""

    url: str
    id: str
    """By which it can be revoked: `duetime tokens revoke ID`."""


class ForecastQuery(Body):
    """How far to look ahead, and in which zone hours are counted."""

    days: Annotated[int, Query(ge=1, le=31)] = 7
    tz: str = "UTC"


_LINK: Final = LinkBody()
HARMLESS: Final = (("POST", f"{PREFIX}/calendar/link"),)


@router.get("/calendar", response_model=model_of(CalendarRecord))
async def get_calendar(access: Viewer, query: Annotated[CalendarQuery, Query()]) -> Response:
    """List what schedules will do in the coming days, at most 50 occurrences of each."""
    queues = access.user.queues
    return answer(await access.scheduler.schedules.calendar(days=query.days, queues=queues))


@router.get(
    "/calendar.ics",
    response_class=Response,
    responses={200: {"content": {"text/calendar": {"schema": {"type": "string"}}}}},
)
async def get_calendar_file(access: Viewer, query: Annotated[CalendarFileQuery, Query()]) -> Response:
    """Give the same as a file that calendars subscribe to."""
    found = await access.scheduler.schedules.calendar(days=query.days, queues=access.user.queues)
    return Response(calendar_text(found), media_type="text/calendar")


@router.post("/calendar/link", status_code=201, response_model=LinkAnswer, responses=documented(413, 415))
async def make_calendar_link(access: Viewer, request: Request, body: LinkBody = _LINK) -> Response:
    """Make an address of the file for calendars that send no token: its key opens nothing else, ends, and can be revoked."""
    user = access.user
    key = await access.scheduler.tokens.make(
        CredentialKind.CALENDAR,
        f"calendar of {user.name}"[:MAX_ACTOR_NAME],
        role=Role.VIEWER,
        queues=user.queues,
        expires=body.expires,
        parent=user.token,
        by=access.by,
    )
    place = f"{request.url.scheme}://{request.headers['host']}{access.base}"
    url = f"{place}/calendar.ics?days={body.days}&key={key.secret}"
    return answer({"url": url, "id": key.id}, 201)


@router.get("/forecast", response_model=model_of(Forecast))
async def get_forecast(access: UnboundViewer, query: Annotated[ForecastQuery, Query()]) -> Response:
    """Tell how many jobs all schedules will make in the coming days, by the hour, and the busiest minutes."""
    return answer(await access.scheduler.schedules.forecast(days=query.days, tz=query.tz))
