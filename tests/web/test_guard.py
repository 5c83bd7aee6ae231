from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from duetime import Scheduler
from duetime.errors import InvalidName, InvalidOption
from duetime.web import Role, User, make_api
from duetime.web.guard import MAX_BODY
from tests.web.kit import BASE, Api

NEW = {"task": "mail.send"}


async def test_every_path_is_closed_to_those_who_are_not_known(api: Api) -> None:
    stranger = api.seen_by(None)
    for path in ("/jobs", "/nothing/here", "/openapi.json", "/../../api/v1/jobs"):
        problem = await stranger.refused(401, "GET", path)
        assert problem["title"] == "Not signed in"
    assert (await stranger.get("http://localhost/nothing")).headers["www-authenticate"].startswith("Bearer")


async def test_probes_need_no_user(api: Api) -> None:
    stranger = api.seen_by(None)
    for path in ("/live", "/ready"):
        assert (await stranger.get(f"http://localhost{path}")).json() == {"status": "ok"}
    await stranger.refused(401, "GET", "http://localhost/health/schedules")


async def test_what_changes_something_needs_an_operator(api: Api) -> None:
    viewer = api.seen_by("vera viewer")
    problem = await viewer.refused(403, "POST", "/jobs", json=NEW)
    assert problem["detail"] == "this needs the role operator; vera is viewer"
    # Whether or not there is such a route.
    await viewer.refused(403, "POST", "/nothing/here")
    assert (await viewer.ok("GET", "/jobs"))["items"] == []


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1", "a b"]
)
async def test_other_hosts_are_refused(api: Api, host: str) -> None:
    problem = await api.refused(421, "GET", "/jobs", headers={"Host": host})
    assert "hosts=[" in problem["detail"]
    assert (await api.get("http://localhost/live", headers={"Host": host})).status_code == 421


@pytest.mark.parametrize(
    "host", ["localhost:8000", "LOCALHOST", "127.0.0.1", "10.1.2.3:80", "[::1]:8000", "a.localhost"]
)
async def test_addresses_and_names_of_this_machine_are_served(api: Api, host: str) -> None:
    await api.ok("GET", "/jobs", headers={"Host": host})


async def test_hosts_that_were_named_are_served(scheduler: Scheduler) -> None:
    app = make_api(scheduler, authenticate=lambda _: User("ada"), hosts=["Jobs.example.com"])
    async with scheduler, Api(app) as api:
        await api.ok("GET", "/jobs", headers={"Host": "jobs.example.com:8443"})
        await api.refused(421, "GET", "/jobs", headers={"Host": "other.example.com"})
    with pytest.raises(InvalidOption, match=r"a list such as \['jobs"):
        make_api(scheduler, authenticate=lambda _: None, hosts="jobs.example.com")


CROSS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Origin": "http://evil.example"},
    {"Origin": "https://localhost"},
    {"Origin": "http://localhost:8000"},
    {"Origin": "null"},
    {"Cookie": "session=1"},
    {"Cookie": "session=1", "Authorization": "Bearer dt_1"},
    {"Cookie": "session=1", "Origin": "http://localhost.evil.example"},
]


@pytest.mark.parametrize("headers", CROSS)
async def test_a_page_of_another_origin_changes_nothing(api: Api, headers: dict[str, str]) -> None:
    problem = await api.refused(403, "POST", "/jobs", json=NEW, headers=headers)
    assert problem["title"] == "Cross-origin request"
    assert (await api.ok("GET", "/jobs", headers=headers))["items"] == []


SAME = [
    {},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin", "Cookie": "session=1"},
    {"Origin": "http://localhost", "Cookie": "session=1"},
    {"Authorization": "Bearer dt_1", "Origin": "http://evil.example"},
]


@pytest.mark.parametrize("headers", SAME)
async def test_a_page_of_this_origin_and_programs_change_things(api: Api, headers: dict[str, str]) -> None:
    await api.ok("POST", "/jobs", json=NEW, headers=headers)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", ""]
)
async def test_a_body_that_is_not_json_is_refused(api: Api, kind: str) -> None:
    await api.refused(415, "POST", "/jobs", content=b'{"task": "mail.send"}', headers={"Content-Type": kind})
    assert (await api.ok("GET", "/jobs"))["items"] == []


async def test_a_body_over_the_cap_is_refused_whatever_its_length_was_said_to_be(api: Api) -> None:
    # It could be read, and what it says is short.
    large = b'{"task": "mail.send"' + b" " * MAX_BODY + b"}"

    async def parts() -> AsyncGenerator[bytes]:
        for at in range(0, len(large), 10_000):
            yield large[at : at + 10_000]

    kind = {"Content-Type": "application/json"}
    await api.refused(413, "POST", "/jobs", content=large, headers=kind)
    await api.refused(413, "POST", "/jobs", content=parts(), headers=kind)
    await api.refused(413, "POST", "/jobs", content=b"{}", headers={**kind, "Content-Length": "1e9"})
    assert (await api.ok("GET", "/jobs"))["items"] == []


async def test_each_answer_has_the_headers_that_keep_browsers_safe(api: Api) -> None:
    stranger = api.seen_by(None)
    answers = [
        await api.get("/jobs"),
        await api.get("/nothing"),
        await api.post("/jobs", json={"task": 1}),
        await stranger.get("/jobs"),
        await stranger.get("http://localhost/live"),
        await stranger.get("/jobs", headers={"Host": "evil.example"}),
    ]
    assert [one.status_code for one in answers] == [200, 404, 422, 401, 200, 421]
    for one in answers:
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["x-frame-options"] == "DENY"
        assert one.headers["cache-control"] == "no-store"
        assert one.headers["referrer-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in one.headers["content-security-policy"]
        assert "access-control-allow-origin" not in one.headers


async def test_there_is_no_cors(api: Api) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answered = await api.options("/jobs", headers=asked)
    assert answered.status_code == 405
    assert not [name for name in answered.headers if name.startswith("access-control")]


async def a_user(_: Request) -> User:
    return User("async", "operator")


def a_user_too(_: Request) -> User:
    return User("plain", Role.OPERATOR)


@pytest.mark.parametrize("authenticate", [a_user, a_user_too, partial(a_user)])
async def test_the_application_says_who_asks_async_or_not(scheduler: Scheduler, authenticate: Any) -> None:
    async with scheduler, Api(make_api(scheduler, authenticate=authenticate), None) as api:
        await api.ok("POST", "/queues/mail/pause")
        (entry,) = await scheduler.audit.list(queue="mail")
        assert entry.who in {"async", "plain"}


async def test_an_authenticate_that_fails_lets_no_one_in(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    for wrong in (lambda _: "ada", lambda _: 1 / 0, lambda _: {"name": "ada"}):
        app = make_api(scheduler, authenticate=wrong)  # type: ignore[arg-type]
        async with scheduler, Api(app, None) as api:
            problem = await api.refused(500, "GET", "/jobs")
            assert problem["detail"] == "something went wrong here; the log of the server says what"
    assert caplog.text.count("who sends a request cannot be told") == 3
    assert "ZeroDivisionError" in caplog.text
    with pytest.raises(InvalidOption, match="authenticate must be a function"):
        make_api(scheduler, authenticate="ada")  # type: ignore[arg-type]


def test_users_are_checked() -> None:
    with pytest.raises(InvalidOption, match="role must be one of 'viewer', 'operator', 'admin', not 'root'"):
        User("ada", "root")
    with pytest.raises(InvalidOption, match="by must say who asks"):
        User("")
    with pytest.raises(InvalidName, match="queue"):
        User("ada", "viewer", frozenset({"no queue"}))


def test_websockets_are_closed(scheduler: Scheduler) -> None:
    app = make_api(scheduler, authenticate=lambda _: User("ada", "admin"))
    client = TestClient(app, base_url=BASE)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/v1/events"):
        pass


async def test_below_a_mount_the_same_paths_are_public(scheduler: Scheduler) -> None:
    host = FastAPI()
    host.mount("/ops/tasks", scheduler.api(authenticate=lambda _: None))
    transport = httpx.ASGITransport(host)
    async with scheduler, httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        assert (await client.get("/ops/tasks/live")).json() == {"status": "ok"}
        assert (await client.get("/ops/tasks/api/v1/jobs")).status_code == 401
        # Where it is mounted is no part of what is public.
        assert (await client.get("/ops/tasks/ops/tasks/live")).status_code == 401
