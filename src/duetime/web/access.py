"""What a route is given: the scheduler, who asks, and what of it that user may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeAlias

from fastapi import Depends, Request

from duetime.errors import JobNotFound
from duetime.model.ids import is_whole, read_beginning
from duetime.model.stored.credentials import Role
from duetime.model.text import check_name
from duetime.scheduler.announced import find_handler
from duetime.scheduler.lookup import job_not_found, schedule_not_found
from duetime.scheduler.records import JobRecord, ScheduleRecord
from duetime.scheduler.scheduler import Scheduler
from duetime.web.guard import USER_KEY, role_missing
from duetime.web.problems import Problem
from duetime.web.users import User

PREFIX: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Access:
    """The scheduler as one user may see it."""

    scheduler: Scheduler
    user: User
    base: str
    """The path that all operations begin with, as the client sees it."""

    @property
    def by(self) -> str:
        """Who is kept with a change."""
        return self.user.name

    async def job(self, job_id: str) -> JobRecord:
        """Return a job; one in a queue that is out of sight is not there."""
        start = read_beginning(job_id)
        if start is None or not is_whole(start):
            raise JobNotFound("a job's id is 32 hexadecimal digits, with or without dashes")
        record = await self.scheduler.jobs.get(start)
        if not self.user.sees(record.queue):
            raise job_not_found(start)
        return record

    async def schedule(self, name: str) -> ScheduleRecord:
        """Return a schedule; one in a queue that is out of sight is not there."""
        record = await self.scheduler.schedules.get(check_name(name, what="schedule name"))
        if not self.user.sees(record.queue):
            raise schedule_not_found(name)
        (shown,) = await self.without_hidden_runs([record])
        return shown

    async def without_hidden_runs(self, schedules: Sequence[ScheduleRecord]) -> Sequence[ScheduleRecord]:
        """Return schedules without last runs that were in a queue that is out of sight."""
        if self.user.queues is None:
            return schedules
        ids = [one.last_run.id for one in schedules if one.last_run is not None]
        seen = {job.id for job in await self.scheduler.store.get(ids) if self.user.sees(job.queue)}
        return [
            one if one.last_run is None or one.last_run.id in seen else replace(one, last_run=None)
            for one in schedules
        ]

    def check_queue(self, *queues: str | None) -> None:
        """Refuse to touch a queue that is out of sight."""
        for queue in queues:
            if queue is not None and not self.user.sees(queue):
                names = ", ".join(sorted(self.user.queues or ()))
                detail = f"{self.user.name} may touch the queues {names} only, not {queue}"
                raise Problem(403, "Forbidden", detail)

    async def check_task(self, task: str) -> None:
        """Refuse to run a task whose own queue is out of sight."""
        if self.user.queues is not None:
            handler = await find_handler(self.scheduler.store, self.scheduler.tasks, task)
            self.check_queue(handler.options.queue)

    def check_unbound(self) -> None:
        """Refuse those who may see some queues only: what is asked for belongs to none."""
        if self.user.queues is not None:
            detail = f"{self.user.name} is bound to queues, and this is about all of them"
            raise Problem(403, "Forbidden", detail)


class Needs:
    """The one thing that authorises: each route depends on one of these."""

    def __init__(self, role: Role, *, unbound: bool = False) -> None:
        self.role: Final = role
        self.unbound = unbound

    async def __call__(self, request: Request) -> Access:
        """Return what the user may see, unless it has not this role."""
        user: User = request.scope[USER_KEY]
        if not user.may(self.role):
            raise role_missing(user, self.role)
        base = f"{request.scope.get('root_path', '')}{PREFIX}"
        access = Access(request.app.state.scheduler, user, base)
        if self.unbound:
            access.check_unbound()
        return access


Viewer: TypeAlias = Annotated[Access, Depends(Needs(Role.VIEWER))]
Operator: TypeAlias = Annotated[Access, Depends(Needs(Role.OPERATOR))]
Admin: TypeAlias = Annotated[Access, Depends(Needs(Role.ADMIN))]
UnboundViewer: TypeAlias = Annotated[Access, Depends(Needs(Role.VIEWER, unbound=True))]
UnboundOperator: TypeAlias = Annotated[Access, Depends(Needs(Role.OPERATOR, unbound=True))]
UnboundAdmin: TypeAlias = Annotated[Access, Depends(Needs(Role.ADMIN, unbound=True))]
