"""The app: its routes behind the guard, and a scheduler that is open while it serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from duetime.errors import DuetimeError
from duetime.scheduler.scheduler import Scheduler
from duetime.web.access import PREFIX
from duetime.web.api import APART, HARMLESS, PUBLIC, ROUTERS
from duetime.web.guard import Guard
from duetime.web.openapi import described
from duetime.web.problems import EVERYWHERE, answer_error
from duetime.web.sign_in import CalendarKeys, SignIn, asking
from duetime.web.users import Authenticate
from duetime.web.watch import Watch


class OpenScheduler:
    """Opens a scheduler when it is first needed: where an app is mounted, no lifespan reaches it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lives: list[AsyncGenerator[None]] = []

    async def reach(self) -> None:
        """See that it is open until the event loop ends, if no one else sees to that."""
        if not self._scheduler.is_open:
            # Loops close the async generators that were begun in them when they end.
            life = self._open_until_closed()
            self._lives = [life]
            await anext(life)

    async def _open_until_closed(self) -> AsyncGenerator[None]:
        async with self._scheduler:
            yield


def make_api(
    scheduler: Scheduler, *, authenticate: Authenticate | None = None, hosts: Sequence[str] = ()
) -> Guard:
    """Return the API of a scheduler as an ASGI app, to be mounted in another or served alone."""
    app, opened = make_routes(scheduler), OpenScheduler(scheduler)
    sign_in = SignIn(scheduler)
    known = sign_in.who if authenticate is None else asking(authenticate)
    app.state.reach, app.state.home = opened.reach, f"{PREFIX}/session"
    app.state.sign_in = sign_in if authenticate is None else None
    calendars = CalendarKeys(scheduler, f"{PREFIX}/calendar.ics", known)
    return Guard(
        app,
        who=calendars.who,
        public=PUBLIC,
        harmless=HARMLESS,
        hosts=hosts,
        prepare=opened.reach,
    )


def make_routes(scheduler: Scheduler) -> FastAPI:
    """Return the routes without what guards them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with scheduler:
            yield

    app = FastAPI(
        title="Duetime",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        responses=EVERYWHERE,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.scheduler, app.state.watch = scheduler, Watch(scheduler)
    for kind in (DuetimeError, HTTPException, RequestValidationError, TimeoutError, Exception):
        app.add_exception_handler(kind, answer_error)
    for router in ROUTERS:
        _add_routes(app, router, PREFIX)
    for router in APART:
        _add_routes(app, router, "")
    app.openapi = described(app)  # type: ignore[method-assign]
    return app


def _add_routes(app: FastAPI, router: APIRouter, prefix: str) -> None:
    """Add the routes of a router one by one: FastAPI looks twice, and longer, for those of routers that are included."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            app.add_api_route(
                prefix + route.path,
                route.endpoint,
                methods=sorted(route.methods or ()),
                response_model=route.response_model,
                response_class=route.response_class,
                status_code=route.status_code,
                responses=route.responses,
                tags=route.tags,
            )
