"""Schedules put, changed, paused, triggered, skipped and backfilled."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final

from fastapi import APIRouter
from pydantic import Field, JsonValue
from starlette.responses import Response

from duetime.errors import ScheduleNotFound
from duetime.model.schedule.files import read_trigger
from duetime.model.schedule.record import Misfire, Overlap
from duetime.model.text import check_name
from duetime.model.time import from_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.preview import Upcoming, preview
from duetime.scheduler.records import Backfill, ScheduleRecord
from duetime.web.access import PREFIX, Access, Admin, Operator, Viewer
from duetime.web.answers import NOT_GIVEN, Body, answer, model_of
from duetime.web.api.job_changes import EnqueuedAnswer
from duetime.web.api.schedules import Schedule, SchedulePath, schedule_response
from duetime.web.api.values import Duration, Moment, Reason, moment, moment_or_duration
from duetime.web.etags import IfMatch, changed_since, check_match, schedule_etag
from duetime.web.problems import Problem, documented

router = APIRouter(prefix="/schedules", tags=["schedules"])
HARMLESS: Final = (("POST", f"{PREFIX}/schedules/preview"),)

_ONE = documented(404, 413, 415)
_EDIT = documented(404, 412, 413, 415)


class TriggerBody(Body):
    """When it comes: one of `cron`, `every`, `at`, `rrule` and `trigger`, and what goes with it."""

    cron: str = NOT_GIVEN
    every: str = NOT_GIVEN
    """A length of time, such as `15m` or `1 month`."""
    at: Moment | list[Moment] = NOT_GIVEN
    rrule: str = NOT_GIVEN
    """A rule of RFC 5545."""
    trigger: dict[str, JsonValue] = NOT_GIVEN
    """Any other rule, as it is stored."""
    tz: str = NOT_GIVEN
    """The zone of `cron`, `rrule` and months; UTC if not given."""
    start: Moment = NOT_GIVEN
    end: Moment = NOT_GIVEN
    times: int = NOT_GIVEN
    """How many jobs it makes at most."""
    jitter: Duration = NOT_GIVEN

    def read(self, name: str) -> Trigger:
        """Return the trigger of a schedule of this name."""
        return read_trigger(self.given(), name=name)


class ScheduleOptionsBody(Body):
    """Policies, and options of the jobs; null leaves those that may be null to the task."""

    overlap: Overlap = NOT_GIVEN
    overlap_limit: int = NOT_GIVEN
    misfire: Misfire = NOT_GIVEN
    misfire_window: Duration = NOT_GIVEN
    misfire_limit: int = NOT_GIVEN
    pause_after: int | None = NOT_GIVEN
    """How many failures in a row pause it."""
    queue: str = NOT_GIVEN
    priority: int = NOT_GIVEN
    retries: int | None = NOT_GIVEN
    timeout: Duration | None = NOT_GIVEN
    expires: Duration | None = NOT_GIVEN
    result_ttl: Duration = NOT_GIVEN
    failure_ttl: Duration = NOT_GIVEN
    tags: list[str] = NOT_GIVEN
    headers: dict[str, str] = NOT_GIVEN

    def options(self) -> dict[str, Any]:
        """Return what was named of them."""
        return {
            name: value for name, value in self.given().items() if name in ScheduleOptionsBody.model_fields
        }


class ScheduleBody(ScheduleOptionsBody):
    """All of a schedule: what is not named is as for a new one."""

    EXAMPLE: ClassVar = {
        "task": "mail.send",
        "arguments": {"user_id": 1},
        "trigger": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    }

    task: str
    arguments: dict[str, JsonValue] = Field(default={})
    trigger: TriggerBody


class ScheduleEditBody(ScheduleOptionsBody):
    """What is to change of a schedule; what is said about time is the whole of it, and so are the arguments."""

    EXAMPLE: ClassVar = {"trigger": {"every": "15m"}, "priority": 3}

    trigger: TriggerBody = NOT_GIVEN
    arguments: dict[str, JsonValue] = NOT_GIVEN


class PreviewBody(Body):
    """A rule that is not stored yet."""

    EXAMPLE: ClassVar = {"trigger": {"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "n": 3}

    trigger: TriggerBody
    name: str = "schedule"
    """The name of the schedule, from which `H` and jitter are drawn."""
    n: int = Field(default=10, ge=1, le=200)
    after: Moment = NOT_GIVEN


class SchedulePauseBody(Body):
    """Why, and until when."""

    EXAMPLE: ClassVar = {"reason": "migration", "until": "2h"}

    reason: Reason = NOT_GIVEN
    until: Duration = NOT_GIVEN
    """A point in time, or how long from now."""


class TriggerNowBody(Body):
    """Other arguments for this once."""

    arguments: dict[str, JsonValue] = NOT_GIVEN


class BackfillBody(Body):
    """Which stretch of the past."""

    EXAMPLE: ClassVar = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"}

    start: Moment
    end: Moment
    dry_run: bool = False
    """Whether it only counts."""


class SkippedAnswer(Body):
    """The occurrence that will not run."""

    skipped: datetime


_CREATED: dict[int | str, dict[str, Any]] = {
    201: {"model": Schedule, "description": "It was not there before."}
}
_PAUSE: Final = SchedulePauseBody()
_AS_STORED: Final = TriggerNowBody()


@router.post("/preview", response_model=list[model_of(Upcoming)], responses=documented(413, 415))  # type: ignore[misc]
async def preview_trigger(access: Viewer, body: PreviewBody) -> Response:
    """Show the next occurrences of a rule before it is stored."""
    trigger = body.trigger.read(body.name)
    now = await access.scheduler.store.now()
    after = now if body.after is None else from_datetime(moment(body.after, what="after"), what="after")
    return answer(preview(trigger.anchored(now), after=after, count=body.n))


@router.put("/{name:path}", response_model=Schedule, responses=_CREATED | documented(412, 413, 415))
async def put_schedule(
    access: Admin, name: SchedulePath, body: ScheduleBody, if_match: IfMatch = None
) -> Response:
    """Store a schedule, or put it in the place of the one of this name; its times stay if its trigger does."""
    expected = await _seen(access, name, if_match)
    options = body.options()
    await access.check_task(body.task)
    access.check_queue(options.get("queue"))
    put = access.scheduler.schedules.put
    trigger = body.trigger.read(name)
    done = await put(
        name, trigger, body.task, kwargs=body.arguments, by=access.by, expected=expected, **options
    )
    return schedule_response(await access.scheduler.schedules.get(name), 201 if done == "created" else 200)


@router.patch("/{name:path}", response_model=Schedule, responses=_EDIT)
async def edit_schedule(
    access: Operator, name: SchedulePath, body: ScheduleEditBody, if_match: IfMatch = None
) -> Response:
    """Change what is named of a schedule, and nothing else; its task stays."""
    schedule, options = await access.schedule(name), body.options()
    check_match(if_match, schedule_etag(schedule), what=f"schedule {name}")
    access.check_queue(options.get("queue"))
    if "trigger" in body.model_fields_set:
        options["trigger"] = body.trigger.read(name)
    if "arguments" in body.model_fields_set:
        options["kwargs"] = body.arguments
    expected = None if if_match is None else schedule
    await access.scheduler.schedules.edit(name, by=access.by, expected=expected, **options)
    return schedule_response(await access.scheduler.schedules.get(name))


@router.delete("/{name:path}", status_code=204, responses=documented(404, 412))
async def delete_schedule(access: Admin, name: SchedulePath, if_match: IfMatch = None) -> Response:
    """Remove a schedule and withdraw its planted jobs; its records stay. One that code declares comes back with the code."""
    schedule = await access.schedule(name)
    check_match(if_match, schedule_etag(schedule), what=f"schedule {name}")
    await access.scheduler.schedules.delete(name, by=access.by)
    return Response(status_code=204)


@router.post("/{name:path}/pause", response_model=Schedule, responses=_ONE)
async def pause_schedule(access: Operator, name: SchedulePath, body: SchedulePauseBody = _PAUSE) -> Response:
    """Stop a schedule from firing, until a time if one is given; planted jobs that have not started are withdrawn."""
    await access.schedule(name)
    given = body.given()
    if isinstance(until := given.get("until"), str):
        given["until"] = moment_or_duration(until)
    await access.scheduler.schedules.pause(name, by=access.by, **given)
    return schedule_response(await access.scheduler.schedules.get(name))


@router.post("/{name:path}/resume", response_model=Schedule, responses=_ONE)
async def resume_schedule(access: Operator, name: SchedulePath) -> Response:
    """Let a schedule fire again from now on."""
    await access.schedule(name)
    await access.scheduler.schedules.resume(name, by=access.by)
    return schedule_response(await access.scheduler.schedules.get(name))


@router.post("/{name:path}/trigger", status_code=201, response_model=EnqueuedAnswer, responses=_ONE)
async def trigger_schedule(
    access: Operator, name: SchedulePath, body: TriggerNowBody = _AS_STORED
) -> Response:
    """Enqueue a job of a schedule now, with other arguments if given; the schedule goes on as it would, even paused."""
    schedule = await access.schedule(name)
    await access.check_task(schedule.task)
    handle = await access.scheduler.schedules.trigger(name, by=access.by, kwargs=body.arguments)
    said = {"id": handle.id, "task": handle.task, "existing": False}
    return answer(said, 201, {"Location": f"{access.base}/jobs/{handle.id}"})


@router.post("/{name:path}/skip", response_model=SkippedAnswer, responses=_ONE | documented(409))
async def skip_occurrence(access: Operator, name: SchedulePath) -> Response:
    """Skip the next occurrence, even if its job is planted."""
    await access.schedule(name)
    return answer({"skipped": await access.scheduler.schedules.skip(name, by=access.by)})


@router.post("/{name:path}/backfill", response_model=model_of(Backfill), responses=_ONE)
async def backfill_schedule(access: Operator, name: SchedulePath, body: BackfillBody) -> Response:
    """Enqueue a job, due now, for each occurrence in a stretch of the past that has none."""
    await access.schedule(name)
    start, end = moment(body.start, what="start"), moment(body.end, what="end")
    verb = access.scheduler.schedules.backfill
    return answer(await verb(name, start, end, dry_run=body.dry_run, by=access.by))


async def _seen(access: Access, name: str, if_match: str | None) -> ScheduleRecord | None:
    """Return the schedule of this name as the client has seen it, if it says that it has; refuse one that is out of sight."""
    try:
        schedule = await access.scheduler.schedules.get(check_name(name, what="schedule name"))
    except ScheduleNotFound:
        if if_match is not None:
            raise changed_since(f"schedule {name}") from None
        return None
    if not access.user.sees(schedule.queue):
        raise Problem(403, "Forbidden", "the schedule of this name is in a queue that is out of sight")
    check_match(if_match, schedule_etag(schedule), what=f"schedule {name}")
    return None if if_match is None else schedule
