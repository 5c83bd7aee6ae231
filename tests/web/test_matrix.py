"""Every operation, asked by everyone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pytest

from duetime import Scheduler
from duetime.model.stored.credentials import new_secret
from tests.web.examples import ENDED_FIRST, examples, register_worker, seed
from tests.web.kit import BASE, TokenApi
from tests.web.streams import reading
from tools import openapi

PUBLIC: Final = frozenset({"live", "ready", "begin_session", "follow_link"})
VIEWERS: Final = frozenset(
    {
        "list_jobs", "get_job", "list_attempts", "list_logs", "explain_job",
        "list_schedules", "get_schedule", "preview_schedule", "list_history", "explain_schedule",
        "list_queues", "get_queue", "list_workers", "get_worker", "explain_worker", "list_commands",
        "get_session", "get_description", "end_session", "make_calendar_link", "preview_trigger", "list_tasks", "get_task", "list_failures", "list_locks",
        "follow_events", "get_calendar", "get_calendar_file", "get_forecast", "list_audit", "late_schedules", "get_statistics", "list_new_failures",
    }
)  # fmt: skip
OPERATORS: Final = frozenset(
    {
        "enqueue_job", "enqueue_job_once", "cancel_job", "rerun_job", "snooze_job", "release_job", "edit_job", "change_jobs",
        "edit_schedule", "pause_schedule", "resume_schedule", "trigger_schedule", "skip_occurrence", "backfill_schedule",
        "pause_queue", "resume_queue", "limit_queue", "pause_worker", "resume_worker", "ask_stacks",
    }
)  # fmt: skip
ADMINS: Final = frozenset(
    {"delete_job", "put_schedule", "delete_schedule", "purge_queue", "stop_worker", "release_lock"}
)
"""What each operation needs, written down a second time, so that a role is not changed by mistake."""

EXAMPLES: Final = list(examples(openapi.description()))


def needed(name: str) -> str | None:
    """The least role that may do something; `None` if it is open to all."""
    for role, names in (("viewer", VIEWERS), ("operator", OPERATORS), ("admin", ADMINS)):
        if name in names:
            return role
    assert name in PUBLIC
    return None


def test_each_operation_is_in_the_matrix() -> None:
    assert {example.name for example in EXAMPLES} == PUBLIC | VIEWERS | OPERATORS | ADMINS


CHANGES: Final = (
    OPERATORS | ADMINS | {"begin_session", "end_session", "make_calendar_link", "preview_trigger"}
)


async def answered(
    scheduler: Scheduler, caller: TokenApi, headers: Mapping[str, str] = MappingProxyType({})
) -> dict[str, int]:
    """Return how each operation answers a caller."""
    found: dict[str, int] = {}
    for example in EXAMPLES:
        await seed(scheduler, ended=example.name in ENDED_FIRST)
        if example.name == "follow_events":
            found[example.name] = await _status_of_stream(caller, headers)
            continue
        url = f"{BASE}{example.path}"
        response = await caller.request(example.method, url, json=example.body, headers=dict(headers))
        found[example.name] = response.status_code
        caller.cookies.clear()
    return found


async def _status_of_stream(caller: TokenApi, headers: Mapping[str, str]) -> int:
    """Return how a stream is answered, which does not end by itself."""
    own = {name: value for name, value in caller.headers.items() if name == "authorization"}
    async with reading(caller.app, None, headers=own | dict(headers), begun=False) as stream:
        assert stream.status is not None
        return stream.status


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
async def test_each_operation_is_for_those_who_may(
    token_api: TokenApi, scheduler: Scheduler, role: str
) -> None:
    await register_worker(scheduler)
    order = [None, "viewer", "operator", "admin"]
    token = await scheduler.tokens.add(f"a {role}", role=role)
    for name, status in (await answered(scheduler, token_api.with_token(token.secret))).items():
        may = order.index(role) >= order.index(needed(name))
        assert (status == 403) != may, (name, status)
        assert status != 401, name


async def test_no_operation_but_the_open_ones_answers_strangers(
    token_api: TokenApi, scheduler: Scheduler
) -> None:
    found = await answered(scheduler, token_api.with_token(None))
    assert {name for name, status in found.items() if status != 401} == PUBLIC


@pytest.mark.parametrize("how", ["revoked", "expired", "guessed", "malformed"])
async def test_no_operation_but_the_open_ones_answers_a_token_that_is_not_good(
    token_api: TokenApi, scheduler: Scheduler, how: str
) -> None:
    token = await scheduler.tokens.add("once", role="admin", expires=0 if how == "expired" else "1h")
    if how == "revoked":
        await scheduler.tokens.revoke("once")
    given = {"guessed": new_secret(), "malformed": "; ' OR 1=1"}.get(how, token.secret)
    caller = token_api.with_token(None)
    found = await answered(scheduler, caller, {"Authorization": f"Bearer {given}"})
    assert {name for name, status in found.items() if status != 401} == PUBLIC


async def test_no_operation_answers_to_another_host(token_api: TokenApi, scheduler: Scheduler) -> None:
    found = await answered(scheduler, token_api, {"Host": "evil.example"})
    assert {*found.values()} == {421}


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {}])
async def test_nothing_is_changed_from_another_origin_with_a_cookie(
    token_api: TokenApi, scheduler: Scheduler, headers: dict[str, str]
) -> None:
    found = await answered(scheduler, token_api, headers | {"Cookie": "duetime_session=1"})
    assert {name for name, status in found.items() if status == 403} == CHANGES
