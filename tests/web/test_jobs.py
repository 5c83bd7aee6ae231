from __future__ import annotations

import base64

import pytest

from duetime import Scheduler
from duetime.testing import drain
from tests.web.kit import Api, make_scheduler, serving, store_jobs


async def test_a_list_is_read_page_by_page_newest_first(api: Api, scheduler: Scheduler) -> None:
    ids = await store_jobs(scheduler, 5)
    found: list[str] = []
    cursor: dict[str, str] = {}
    for size in (2, 2, 1):
        page = await api.ok("GET", "/jobs", params={"limit": 2, "task": "mail.send"} | cursor)
        assert len(page["items"]) == size
        found += [job["id"] for job in page["items"]]
        cursor = {"cursor": page["next"]}
    assert found == ids[::-1]
    assert page["next"] is None


async def test_a_list_is_narrowed(api: Api, scheduler: Scheduler) -> None:
    await store_jobs(scheduler, 1)
    (page,) = await store_jobs(scheduler, 1, task="print.page", queue="print")
    narrowed = [
        {"task": "print.page"},
        {"queue": "print"},
        {"queue": "print", "state": "pending", "registry": "queued", "kind": "one_off", "since": "1h"},
        {"task": "print.page", "since": "2020-01-01T00:00:00Z"},
    ]
    for params in narrowed:
        found = await api.ok("GET", "/jobs", params=params)
        assert [job["id"] for job in found["items"]] == [page], params
    assert (await api.ok("GET", "/jobs", params={"queue": "print", "state": "failed"}))["items"] == []
    assert (await api.ok("GET", "/jobs", params={"tag": "none"}))["items"] == []


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ({"limit": "201"}, "limit: Input should be less than or equal to 200"),
        ({"limit": "0"}, "limit: Input should be greater than or equal to 1"),
        ({"limit": "x"}, "limit: "),
        ({"nothing": "1"}, "nothing: unknown field"),
        ({"state": "gone"}, "state/0: Input should be 'pending'"),
        ({"since": "yesterday"}, "since cannot be 'yesterday'"),
        ({"since": "2020-01-01T00:00:00"}, "has no time zone"),
        ({"task": ""}, "task is empty"),
        ({"task": "\0"}, "NUL"),
        ({"key": "\0"}, "NUL"),
        ({"cursor": "x"}, "this is not a cursor"),
        ({"cursor": "é" * 10}, "this is not a cursor"),
        ({"cursor": base64.urlsafe_b64encode(b"12345678[[[[").decode()}, "this is not a cursor"),
        ({"cursor": base64.urlsafe_b64encode(b'12345678"jobs:1"').decode()}, "cursor is of another list"),
    ],
)
async def test_what_cannot_be_asked_is_refused(api: Api, params: dict[str, str], detail: str) -> None:
    assert detail in (await api.refused(422, "GET", "/jobs", params=params))["detail"]


async def test_a_cursor_is_good_for_its_own_list_only(api: Api, scheduler: Scheduler) -> None:
    await store_jobs(scheduler, 3)
    cursor = (await api.ok("GET", "/jobs", params={"limit": 1, "queue": "mail"}))["next"]
    # A page of another size is a page of the same list.
    await api.ok("GET", "/jobs", params={"limit": 2, "queue": "mail", "cursor": cursor})
    for other in ({"queue": "print"}, {}, {"queue": "mail", "state": "pending"}):
        problem = await api.refused(422, "GET", "/jobs", params=other | {"cursor": cursor})
        assert problem["type"] == "urn:duetime:InvalidCursor"
    await api.refused(422, "GET", "/audit", params={"cursor": cursor})


async def test_a_job_is_shown_with_all_that_is_known(sqlite_url: str) -> None:
    scheduler = make_scheduler(sqlite_url)
    async with serving(scheduler) as api:
        failed = (
            await api.ok("POST", "/jobs", json={"task": "mail.bounce", "arguments": {"reason": "no box"}})
        )["id"]
        await drain(scheduler)
        job = await api.ok("GET", f"/jobs/{failed}")
        assert (job["state"], job["error"], job["error_type"]) == (
            "failed",
            "LookupError: no box",
            "LookupError",
        )
        assert job["arguments"] == {"reason": "no box"}
        assert job["due_at"].endswith("Z")
        assert 0 <= job["lateness"] < 60
        dashes = f"{failed[:8]}-{failed[8:12]}-{failed[12:16]}-{failed[16:20]}-{failed[20:]}".upper()
        assert await api.ok("GET", f"/jobs/{dashes}") == job
        (attempt,) = await api.ok("GET", f"/jobs/{failed}/attempts")
        assert attempt["error"] == job["error"]
        assert await api.ok("GET", f"/jobs/{failed}/logs") == []
        explained = await api.ok("GET", f"/jobs/{failed}/explain")
        assert explained["lines"][0]["text"].startswith("Enqueued")


@pytest.mark.parametrize("missing", ["0" * 32, "nothing", "%00", "' OR 1=1", "0" * 64, "%F0%9F%98%80"])
async def test_a_job_that_is_not_there_is_said_to_be_missing(api: Api, missing: str) -> None:
    for path in ("", "/attempts", "/logs", "/explain"):
        problem = await api.refused(404, "GET", f"/jobs/{missing}{path}")
        assert problem["type"] == "urn:duetime:JobNotFound"


async def test_failures_are_grouped_by_what_went_wrong(sqlite_url: str) -> None:
    scheduler = make_scheduler(sqlite_url)
    async with serving(scheduler) as api:
        for reason in ("a", "b", "c"):
            await api.ok("POST", "/jobs", json={"task": "mail.bounce", "arguments": {"reason": reason}})
        await api.ok("POST", "/jobs", json={"task": "mail.send"})
        await drain(scheduler)
        (group,) = (await api.ok("GET", "/failures"))["items"]
        assert (group["task"], group["error_type"], group["count"]) == ("mail.bounce", "LookupError", 3)
        latest = await api.ok("GET", f"/jobs/{group['latest']}")
        assert (latest["fingerprint"], latest["error"]) == (group["fingerprint"], group["error"])
        assert group["first_at"] <= group["last_at"]
        # Looked at two by two, the rest comes with the next page.
        first = await api.ok("GET", "/failures", params={"jobs": 2})
        second = await api.ok("GET", "/failures", params={"jobs": 2, "cursor": first["next"]})
        assert [page["items"][0]["count"] for page in (first, second)] == [2, 1]
        assert second["next"] is None
        assert (await api.ok("GET", "/failures", params={"queue": "print"}))["items"] == []
