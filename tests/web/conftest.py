from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from duetime import Scheduler
from duetime.web import make_api
from tests.web.kit import Api, TokenApi, make_scheduler, serving


@pytest.fixture
def scheduler(sqlite_url: str) -> Scheduler:
    """A scheduler with a few tasks, open while `api` is there."""
    return make_scheduler(sqlite_url)


@pytest.fixture
async def api(scheduler: Scheduler) -> AsyncGenerator[Api]:
    """Its API, as an admin sees it."""
    async with serving(scheduler) as served:
        yield served


@pytest.fixture
async def token_api(scheduler: Scheduler) -> AsyncGenerator[TokenApi]:
    """The same where tokens and sessions tell who asks."""
    async with scheduler:
        admin = await scheduler.tokens.add("ada", role="admin")
        async with TokenApi(make_api(scheduler), admin.secret) as served:
            yield served
