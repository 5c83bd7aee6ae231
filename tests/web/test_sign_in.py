from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from duetime import Scheduler
from duetime.errors import InvalidOption, TokenNotFound
from duetime.model.stored.credentials import CredentialKind, Role
from duetime.testing import FakeClock
from duetime.web import make_api, sign_in
from tests.web.kit import BASE, Api, TokenApi, store_jobs


@pytest.fixture(autouse=True)
def _without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request looks, so that no test waits for what is remembered."""
    monkeypatch.setattr(sign_in, "_REMEMBERED", 0.0)


@pytest.fixture
def clock() -> FakeClock:
    """The store's time."""
    return FakeClock()


@pytest.fixture
def scheduler(sqlite_url: str, clock: FakeClock) -> Scheduler:
    """A scheduler at that time."""
    return Scheduler(sqlite_url, clock=clock)


@pytest.fixture
async def browser(token_api: TokenApi) -> AsyncGenerator[httpx.AsyncClient]:
    """Someone without a token, who keeps cookies."""
    async with TokenApi(token_api.app, None) as client:
        client.headers["Sec-Fetch-Site"] = "same-origin"
        yield client


async def test_a_token_tells_who_asks_and_its_use_is_noted(token_api: TokenApi, scheduler: Scheduler) -> None:
    ci = await scheduler.tokens.add("ci", role="operator", queues=["mail"])
    api = token_api.with_token(ci.secret)
    assert await api.ok("GET", "/session") == {"name": "ci", "role": "operator", "queues": ["mail"]}
    await api.ok("POST", "/queues/mail/pause")
    await api.refused(403, "POST", "/queues/print/pause")
    (entry,) = await scheduler.audit.list(queue="mail")
    assert entry.who == "ci"
    used = {token.name: token.used_at for token in await scheduler.tokens.list()}
    assert used["ci"] is not None


async def test_a_token_is_good_for_its_time(
    token_api: TokenApi, scheduler: Scheduler, clock: FakeClock
) -> None:
    short = token_api.with_token((await scheduler.tokens.add("short", expires="1h")).secret)
    endless = token_api.with_token((await scheduler.tokens.add("endless", expires=None)).secret)
    clock.advance("59m")
    await short.ok("GET", "/session")
    clock.advance("1m")
    assert "not good" in (await short.refused(401, "GET", "/session"))["detail"]
    clock.advance("3650d")
    await endless.ok("GET", "/session")


async def test_a_token_is_made_with_care(token_api: TokenApi, scheduler: Scheduler) -> None:
    made = await scheduler.tokens.add("ci", by="root")
    assert made.secret not in repr(made)
    with pytest.raises(InvalidOption, match="there is a token 'ci' already"):
        await scheduler.tokens.add("ci")
    wrong: list[dict[str, Any]] = [{"role": "root"}, {"queues": []}, {"queues": "mail"}, {"expires": -1}]
    for values in wrong:
        with pytest.raises(ValueError, match=r"role|queues|expires"):
            await scheduler.tokens.add("other", **values)
    await scheduler.tokens.revoke(made.id, by="root")
    with pytest.raises(TokenNotFound, match="no token that is good is called 'ci'"):
        await scheduler.tokens.revoke("ci")
    listed = {token.name: token for token in await scheduler.tokens.list()}
    assert listed["ci"].revoked_at is not None
    done = [entry.verb for entry in await scheduler.audit.list() if entry.name == "ci"]
    assert done == ["revoke", "add"]


async def test_a_token_that_is_pasted_begins_a_session(
    token_api: TokenApi, browser: TokenApi, scheduler: Scheduler
) -> None:
    ci = await scheduler.tokens.add("ci", role="operator", queues=["mail"])
    begun = await browser.post("/session", json={"token": ci.secret})
    assert (begun.status_code, begun.json()["name"]) == (201, "ci")
    cookie = begun.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert ci.secret not in cookie
    assert await browser.ok("GET", "/session") == {"name": "ci", "role": "operator", "queues": ["mail"]}
    await browser.ok("POST", "/queues/mail/pause")
    # The cookie alone is not enough for a change.
    del browser.headers["Sec-Fetch-Site"]
    await browser.refused(403, "POST", "/queues/mail/resume")
    await browser.refused(403, "POST", "/queues/mail/resume", headers={"Sec-Fetch-Site": "cross-site"})
    await browser.ok("POST", "/queues/mail/resume", headers={"Origin": BASE})


async def test_under_https_the_cookie_is_for_this_host_alone(
    token_api: TokenApi, scheduler: Scheduler
) -> None:
    ci = await scheduler.tokens.add("ci")
    async with TokenApi(token_api.app, None, base="https://localhost") as browser:
        begun = await browser.post("/session", json={"token": ci.secret})
        assert begun.headers["set-cookie"].startswith("__Host-duetime_session=dt_")
        assert "Secure" in begun.headers["set-cookie"]
        await browser.ok("GET", "/session")
    # Over plain HTTP a cookie of that name says nothing.
    value = begun.cookies["__Host-duetime_session"]
    async with TokenApi(token_api.app, None) as plain:
        await plain.refused(401, "GET", "/session", headers={"Cookie": f"__Host-duetime_session={value}"})


async def test_signing_out_ends_the_session_in_the_store(browser: TokenApi, scheduler: Scheduler) -> None:
    ci = await scheduler.tokens.add("ci")
    begun = await browser.post("/session", json={"token": ci.secret})
    stolen = begun.cookies["duetime_session"]
    ended = await browser.delete("/session")
    assert ended.status_code == 204
    assert 'duetime_session=""' in ended.headers["set-cookie"]
    await browser.refused(401, "GET", "/session", headers={"Cookie": f"duetime_session={stolen}"})
    await browser.refused(401, "DELETE", "/session", headers={"Cookie": f"duetime_session={stolen}"})


async def test_a_session_ends_with_its_token(browser: TokenApi, scheduler: Scheduler) -> None:
    ci = await scheduler.tokens.add("ci")
    await browser.ok("POST", "/session", json={"token": ci.secret})
    await scheduler.tokens.revoke("ci")
    await browser.refused(401, "GET", "/session")


async def test_a_session_ends_when_it_is_not_used_and_after_a_week(
    browser: TokenApi, scheduler: Scheduler, clock: FakeClock
) -> None:
    ci = await scheduler.tokens.add("ci", expires=None)
    await browser.ok("POST", "/session", json={"token": ci.secret})
    for _ in range(14):
        clock.advance("11h 59m")
        await browser.ok("GET", "/session")
    clock.advance("1h")
    await browser.refused(401, "GET", "/session")
    await browser.ok("POST", "/session", json={"token": ci.secret})
    clock.advance("12h")
    await browser.refused(401, "GET", "/session")


async def test_a_session_lasts_no_longer_than_its_token(
    browser: TokenApi, scheduler: Scheduler, clock: FakeClock
) -> None:
    ci = await scheduler.tokens.add("ci", expires="1h")
    await browser.ok("POST", "/session", json={"token": ci.secret})
    clock.advance("50m")
    await browser.ok("GET", "/session")
    clock.advance("11m")
    await browser.refused(401, "GET", "/session")


async def test_a_link_signs_in_once(browser: TokenApi, scheduler: Scheduler, clock: FakeClock) -> None:
    link = await scheduler.tokens.make(CredentialKind.LINK, "link", role=Role.ADMIN, expires="5m")
    url = f"{BASE}/sign-in?code={link.secret}"
    followed = await browser.get(url)
    assert (followed.status_code, followed.headers["location"]) == (303, "/api/v1/session")
    assert (await browser.ok("GET", "/session"))["role"] == "admin"
    await browser.refused(401, "GET", url)
    late = await scheduler.tokens.make(CredentialKind.LINK, "link", role=Role.ADMIN, expires="5m")
    clock.advance("5m")
    await browser.refused(401, "GET", f"{BASE}/sign-in?code={late.secret}")


async def test_a_secret_is_good_for_its_own_purpose_only(
    token_api: TokenApi, browser: TokenApi, scheduler: Scheduler
) -> None:
    link = await scheduler.tokens.make(CredentialKind.LINK, "link", role=Role.ADMIN, expires="5m")
    calendar = await scheduler.tokens.make(CredentialKind.CALENDAR, "calendar", role=Role.VIEWER)
    ci = await scheduler.tokens.add("ci")
    session = (await browser.post("/session", json={"token": ci.secret})).cookies["duetime_session"]
    for other in (link.secret, calendar.secret, session):
        await token_api.with_token(other).refused(401, "GET", "/jobs")
    for other in (link.secret, calendar.secret, ci.secret):
        async with TokenApi(token_api.app, None) as stranger:
            await stranger.refused(401, "GET", "/jobs", headers={"Cookie": f"duetime_session={other}"})
            await stranger.refused(401, "GET", "/jobs", params={"key": other})
    for other in (calendar.secret, session):
        await browser.refused(401, "POST", "/session", json={"token": other})


async def test_too_many_failures_are_stopped(
    token_api: TokenApi, browser: TokenApi, scheduler: Scheduler
) -> None:
    ci = await scheduler.tokens.add("ci")
    for _ in range(5):
        await browser.refused(401, "POST", "/session", json={"token": "guess"})
    refused = await browser.post("/session", json={"token": ci.secret})
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    await browser.refused(429, "GET", f"{BASE}/sign-in?code=guess")
    # Those who are signed in are not disturbed, and neither are those at another address.
    await token_api.ok("GET", "/session")
    elsewhere = httpx.ASGITransport(token_api.app, client=("10.0.0.7", 123))
    async with httpx.AsyncClient(transport=elsewhere, base_url=f"{BASE}/api/v1") as client:
        assert (await client.post("/session", json={"token": ci.secret})).status_code == 201


async def test_where_the_application_tells_who_asks_there_are_no_sessions(
    api: Api, scheduler: Scheduler
) -> None:
    assert (await api.ok("GET", "/session"))["name"] == "ada"
    ci = await scheduler.tokens.add("ci")
    await api.refused(404, "POST", "/session", json={"token": ci.secret})
    await api.refused(404, "DELETE", "/session")
    await api.refused(404, "GET", f"{BASE}/sign-in?code=x")
    await api.seen_by(None).refused(401, "GET", "/jobs", headers={"Authorization": f"Bearer {ci.secret}"})


@pytest.mark.parametrize("kind", ["token", "application"])
async def test_a_calendar_has_an_address_with_a_key_that_opens_nothing_else(
    token_api: TokenApi, api: Api, scheduler: Scheduler, kind: str
) -> None:
    served: Api = api if kind == "application" else token_api
    made = await served.ok("POST", "/calendar/link", json={"days": 3, "expires": "30d"})
    async with Api(served.app, None) as calendar:
        file = await calendar.get(made["url"])
        assert (file.status_code, file.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
        key = httpx.URL(made["url"]).params["key"]
        for path in ("/jobs", "/calendar", "/session", "/calendar.ics/x"):
            await calendar.refused(401, "GET", path, params={"key": key})
        await calendar.refused(401, "POST", "/calendar.ics", params={"key": key})
        await calendar.refused(401, "GET", "/calendar.ics", params={"key": "guess"})
        await scheduler.tokens.revoke(made["id"])
        await calendar.refused(401, "GET", made["url"])


async def test_what_a_token_made_ends_with_it(token_api: TokenApi, scheduler: Scheduler) -> None:
    ci = await scheduler.tokens.add("ci", role="viewer", queues=["mail"])
    made = await token_api.with_token(ci.secret).ok("POST", "/calendar/link")
    async with TokenApi(token_api.app, None) as calendar:
        assert (await calendar.get(made["url"])).status_code == 200
        await scheduler.tokens.revoke("ci")
        await calendar.refused(401, "GET", made["url"])


async def test_no_secret_is_in_a_log_an_error_or_the_audit_trail(
    token_api: TokenApi, browser: TokenApi, scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ci = await scheduler.tokens.add("ci", role="admin")
    api = token_api.with_token(ci.secret)
    session = (await browser.post("/session", json={"token": ci.secret})).cookies["duetime_session"]
    await store_jobs(scheduler, 1)
    answers = [
        await api.get("/session"),
        await api.get("/audit"),
        await api.post("/jobs", json={"task": "no task", "token": ci.secret}),
        await browser.post("/session", json={"token": 7, "tokens": ci.secret}),
        await browser.get("/session"),
    ]
    await scheduler.tokens.revoke("ci")
    answers += [await api.get("/jobs"), await browser.get("/jobs")]
    told = "\n".join([caplog.text, *(answer.text for answer in answers)])
    for secret in (ci.secret, session):
        assert secret not in told
    rows = [str(entry) for entry in await scheduler.audit.list()]
    assert ci.secret not in "".join(rows)


async def test_what_was_good_is_remembered_for_a_few_seconds(
    token_api: TokenApi, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    ci = await scheduler.tokens.add("ci")
    api = token_api.with_token(ci.secret)
    monkeypatch.setattr(sign_in, "_REMEMBERED", 3_600.0)
    await api.ok("GET", "/session")
    await scheduler.tokens.revoke("ci")
    await api.ok("GET", "/session")
    # Another process has not seen it.
    async with TokenApi(make_api(scheduler), ci.secret) as elsewhere:
        await elsewhere.refused(401, "GET", "/session")
