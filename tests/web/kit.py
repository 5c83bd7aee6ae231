"""A scheduler with a few tasks, its API in this process, and callers of any role."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import httpx
from starlette.requests import Request

from duetime import Scheduler
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.web import User, make_api

Caller: TypeAlias = Callable[..., httpx.AsyncClient]
BASE = "http://localhost"


def make_scheduler(url: str) -> Scheduler:
    """Return a scheduler whose tasks are of two queues."""
    scheduler = Scheduler(url)

    @scheduler.task(name="mail.send", queue="mail")
    async def send(user_id: int = 1, message: str = "hello") -> str:
        return f"sent to {user_id}"

    @scheduler.task(name="mail.bounce", queue="mail")
    async def bounce(reason: str = "unknown") -> None:
        raise LookupError(reason)

    @scheduler.task(name="print.page", queue="print")
    async def page(number: int = 1) -> int:
        return number

    return scheduler


def who(request: Request) -> User | None:
    """Tell who asks by a header, or by what stands for a token: the name, the role and perhaps queues."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ").replace(":", " ")
    words = (request.headers.get("x-user") or token).split()
    return User(words[0], words[1], frozenset(words[2:]) or None) if len(words) > 1 else None


class Api(httpx.AsyncClient):
    """One caller of an API."""

    def __init__(self, app: Any, user: str | None = "ada admin", *, base: str = BASE) -> None:
        super().__init__(
            transport=httpx.ASGITransport(app),
            base_url=f"{base}/api/v1",
            headers={} if user is None else {"X-User": user},
        )
        self.app = app

    def seen_by(self, user: str | None) -> Api:
        """Return the same for another caller."""
        return Api(self.app, user)

    async def ok(self, method: str, path: str, **values: Any) -> Any:
        """Return what a request that succeeds is answered."""
        response = await self.request(method, path, **values)
        assert response.is_success, (method, path, response.status_code, response.text)
        return response.json() if response.content else None

    async def refused(self, status: int, method: str, path: str, **values: Any) -> dict[str, Any]:
        """Return the problem that a request is answered."""
        response = await self.request(method, path, **values)
        assert response.status_code == status, (method, path, response.status_code, response.text)
        assert response.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = response.json()
        assert problem["status"] == status
        return problem


@asynccontextmanager
async def serving(scheduler: Scheduler) -> AsyncGenerator[Api]:
    """Serve a scheduler that is open, and give an admin."""
    async with scheduler, Api(make_api(scheduler, authenticate=who)) as api:
        yield api


async def store_jobs(scheduler: Scheduler, count: int, **fields: Any) -> list[str]:
    """Store jobs as they are, the newest last."""
    jobs = [
        NewJob(**{"id": new_job_id(), "task": "mail.send", "payload": "{}", "queue": "mail"} | fields)
        for _ in range(count)
    ]
    return list(await scheduler.store.enqueue(jobs))


class TokenApi(Api):
    """One caller of an API that knows people by tokens."""

    def __init__(self, app: Any, token: str | None, *, base: str = BASE) -> None:
        super().__init__(app, None, base=base)
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def with_token(self, token: str | None) -> TokenApi:
        """Return the same for another caller."""
        return TokenApi(self.app, token)
