"""Whether the process and its database are well: for probes, which sign in nowhere, and for monitoring."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from duetime.errors import StoreError
from duetime.scheduler.processes.health import readiness, schedule_health
from duetime.web.access import Viewer
from duetime.web.answers import Body, answer

router = APIRouter(tags=["health"])

PUBLIC = (("GET", "/live"), ("GET", "/ready"))


class HealthAnswer(Body):
    """How it is."""

    status: str


class LateSchedule(Body):
    """A schedule that no one has fired in time."""

    name: str
    next_at: str
    late: float
    """Seconds."""


class ScheduleHealthAnswer(Body):
    """Schedules whose time came more than a minute ago."""

    overdue: list[LateSchedule]


@router.get("/live", response_model=HealthAnswer)
async def live() -> Response:
    """Tell that the process answers."""
    return answer({"status": "ok"})


@router.get("/ready", response_model=HealthAnswer, responses={503: {"model": HealthAnswer}})
async def ready(request: Request) -> Response:
    """Tell whether the database answers; 503 if it does not."""
    try:
        await request.app.state.reach()
    except StoreError:
        return answer({"status": "the database cannot be reached or used"}, 503)
    status, said = await readiness(lambda: request.app.state.scheduler.store)
    return answer(said, status)


@router.get(
    "/health/schedules",
    response_model=ScheduleHealthAnswer,
    responses={503: {"model": ScheduleHealthAnswer}},
)
async def late_schedules(access: Viewer) -> Response:
    """Tell which schedules are overdue; 503 if there are any."""
    status, said = await schedule_health(access.scheduler.schedules, queues=access.user.queues)
    return answer(said, status)
