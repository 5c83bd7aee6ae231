from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

import pytest

from duetime import Scheduler, State
from duetime.errors import JobChanged
from duetime.model.ids import new_job_id
from duetime.testing import drain
from tests.web.kit import Api, make_scheduler, serving, store_jobs


async def test_a_job_is_enqueued_with_its_options(api: Api, scheduler: Scheduler) -> None:
    body = {
        "task": "mail.send",
        "arguments": {"user_id": 7, "message": "<b>\x07 😀"},
        "delay": "10s",
        "key": "welcome:7",
        "priority": 1,
        "tags": ["welcome"],
        "headers": {"trace": "af31"},
        "expires": "1h",
    }
    response = await api.post("/jobs", json=body)
    assert response.status_code == 201
    said = response.json()
    assert response.headers["location"] == f"/api/v1/jobs/{said['id']}"
    job = await scheduler.jobs.get(said["id"])
    assert job.arguments == {"user_id": 7, "message": "<b>\x07 😀"}
    assert (job.due_at - job.created_at).total_seconds() == 10
    assert (job.key, job.priority, job.tags, job.headers) == ("welcome:7", 1, ("welcome",), {"trace": "af31"})
    # The same key again is served by the same job.
    again = await api.post("/jobs", json=body)
    assert (again.status_code, again.json()) == (200, said | {"existing": True})
    problem = await api.refused(409, "POST", "/jobs", json=body | {"if_exists": "raise"})
    assert problem["type"] == "urn:duetime:KeyTaken"


async def test_times_may_be_points(api: Api, scheduler: Scheduler) -> None:
    at = "2030-01-31T09:00:00+01:00"
    body = {
        "task": "mail.send",
        "arguments": {"user_id": 3, "message": "hi"},
        "at": at,
        "expires": "2030-02-01T00:00:00Z",
    }
    job = await scheduler.jobs.get((await api.ok("POST", "/jobs", json=body))["id"])
    assert job.arguments == {"user_id": 3, "message": "hi"}
    assert job.due_at.isoformat() == "2030-01-31T08:00:00+00:00"
    assert job.expires_at is not None
    assert job.expires_at.isoformat() == "2030-02-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"task": "os.system"}, "no worker has announced a task 'os.system'"),
        ({}, "/task: Field required"),
        ({"task": "mail.send", "args": {}}, "/args: unknown field"),
        ({"task": "mail.send", "delay": None}, "/delay"),
        ({"task": "mail.send", "delay": -1}, "delay must not be negative"),
        ({"task": "mail.send", "delay": "soon"}, "delay cannot be 'soon'"),
        ({"task": "mail.send", "delay": 1, "at": "2030-01-01T00:00:00Z"}, "give either delay= or at="),
        ({"task": "mail.send", "at": "tomorrow"}, "at 'tomorrow' is not a point in time"),
        ({"task": "mail.send", "at": "2030-01-01T00:00:00"}, "has no time zone"),
        ({"task": "mail.send", "priority": 10}, "priority must be a whole number from 0 to 9"),
        ({"task": "mail.send", "queue": "no queue"}, "queue 'no queue' is not allowed"),
        ({"task": "mail.send", "key": "\0"}, "NUL"),
        ({"task": "mail.send", "key": "k" * 501}, "key must be text of 1 to 500"),
        ({"task": "mail.send", "headers": {"a": "b" * 3000}}, "at most 2,048"),
        ({"task": "mail.send", "tags": ["no tag"]}, "tag 'no tag' is not allowed"),
        ({"task": "mail.send", "arguments": {"user_id": "x"}}, "at `$.user_id`"),
        ({"task": "mail.send", "arguments": {"unknown": 1}}, "unknown"),
        ({"task": "mail.send", "arguments": "x"}, "/arguments"),
    ],
)
async def test_what_cannot_be_enqueued_is_refused_in_the_words_of_python(
    api: Api, body: dict[str, Any], detail: str
) -> None:
    assert detail in (await api.refused(422, "POST", "/jobs", json=body))["detail"]
    assert (await api.ok("GET", "/jobs"))["items"] == []


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"null", 422),
        (b"\xff\xfe", 422),
        (b'{"task": "mail.send", "arguments": {"user_id": NaN}}', 422),
        (b'{"task": "mail.send", "priority": Infinity}', 422),
        (b'{"task": "mail.send", "arguments": {"message": "\\ud800"}}', 422),
        (b'{"task": "mail.send", "key": "\\ud800"}', 422),
        (b'{"task": "mail.send", "arguments": ' + b"[" * 200 + b"]" * 200 + b"}", 422),
        (b'{"task": "mail.send", "arguments": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
        (b'{"task": "mail.send", "arguments": {"user_id": ' + b"9" * 5_000 + b"}}", 422),
    ],
)
async def test_odd_json_is_refused(api: Api, text: bytes, status: int) -> None:
    kind = {"Content-Type": "application/json"}
    response = await api.post("/jobs", content=text, headers=kind)
    assert response.status_code in {status, 400}, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert (await api.ok("GET", "/jobs"))["items"] == []


async def test_a_value_that_does_not_fit_is_named_and_not_repeated(api: Api) -> None:
    body = {"task": "mail.send", "priority": "hunter2", "tags": "hunter2"}
    problem = await api.refused(422, "POST", "/jobs", json=body)
    assert [one["pointer"] for one in problem["errors"]] == ["/priority", "/tags"]
    assert "hunter2" not in str(problem)


async def test_arguments_that_are_too_large_are_refused(api: Api) -> None:
    body = {"task": "mail.send", "arguments": {"message": "x" * 300_000}}
    assert (await api.refused(413, "POST", "/jobs", json=body))["type"] == "urn:duetime:PayloadTooLarge"


async def test_a_job_with_an_id_of_ones_own_is_stored_once(api: Api) -> None:
    own = new_job_id()
    body = {"task": "mail.send", "arguments": {"user_id": 7}}
    first = await api.put(f"/jobs/{own}", json=body)
    assert (first.status_code, first.json()["existing"]) == (201, False)
    again = await api.put(f"/jobs/{uuid.UUID(own)}", json=body)
    assert (again.status_code, again.json()["existing"]) == (200, True)
    assert len((await api.ok("GET", "/jobs"))["items"]) == 1
    for other in ({"task": "print.page"}, body | {"arguments": {"user_id": 8}}):
        assert (await api.refused(409, "PUT", f"/jobs/{own}", json=other))["type"] == "urn:duetime:IdTaken"
    assert (await api.ok("GET", f"/jobs/{own}"))["arguments"] == {"user_id": 7}


async def test_an_id_of_ones_own_is_of_now(api: Api) -> None:
    old = f"{time.time_ns() // 1_000_000 - 2 * 86_400_000:012x}{new_job_id()[12:]}"
    for wrong in (uuid.uuid4().hex, "nothing", old, "0" * 32, "%00"):
        problem = await api.refused(422, "PUT", f"/jobs/{wrong}", json={"task": "mail.send"})
        assert "UUID of version 7" in problem["detail"]


async def test_a_job_is_cancelled(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    path = f"/jobs/{job_id}/cancel"
    assert await api.ok("POST", path, json={"reason": "not wanted"}) == {"outcome": "cancelled"}
    job = await scheduler.jobs.get(job_id)
    assert (job.state, job.reason) == (State.CANCELLED, "not wanted")
    assert await api.ok("POST", path) == {"outcome": "finished"}
    (entry,) = await scheduler.audit.list(job=job_id, limit=1)
    assert (entry.who, entry.verb) == ("ada", "cancel")
    await api.refused(422, "POST", path, json={"reason": "x" * 1_001})
    await api.refused(422, "POST", path, json={"reasons": "x"})


async def test_a_job_is_run_again(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    problem = await api.refused(409, "POST", f"/jobs/{job_id}/rerun")
    assert problem["type"] == "urn:duetime:JobActive"
    await scheduler.jobs.cancel(job_id)
    again = await api.post(f"/jobs/{job_id}/rerun", json={"delay": "1h", "queue": "slow"})
    assert again.status_code == 201
    job = await api.ok("GET", f"/jobs/{again.json()['id']}")
    assert (job["parent"], job["queue"]) == (job_id, "slow")


async def test_a_job_is_put_off_and_taken_back(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    before = (await scheduler.jobs.get(job_id)).due_at
    await api.ok("POST", f"/jobs/{job_id}/snooze", json={"delay": "1h"})
    assert ((await scheduler.jobs.get(job_id)).due_at - before).total_seconds() > 3_599
    assert await api.ok("POST", f"/jobs/{job_id}/release") == {"outcome": "waiting"}
    await scheduler.jobs.cancel(job_id)
    await api.refused(409, "POST", f"/jobs/{job_id}/snooze", json={"delay": "1h"})
    await api.refused(409, "POST", f"/jobs/{job_id}/release", json={"force": True})
    await api.refused(422, "POST", f"/jobs/{job_id}/snooze", json={})


async def test_a_job_that_waits_is_changed(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    body = {"arguments": {"user_id": 9}, "priority": 0, "queue": "slow", "timeout": "30s"}
    job = await api.ok("PATCH", f"/jobs/{job_id}", json=body)
    assert (job["arguments"], job["priority"], job["queue"]) == ({"user_id": 9}, 0, "slow")
    assert "say what to change" in (await api.refused(422, "PATCH", f"/jobs/{job_id}", json={}))["detail"]
    await api.refused(422, "PATCH", f"/jobs/{job_id}", json={"arguments": {"user_id": "x"}})
    await scheduler.jobs.cancel(job_id)
    await api.refused(409, "PATCH", f"/jobs/{job_id}", json={"priority": 1})


async def test_a_change_of_what_one_has_not_seen_is_refused(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    seen = (await api.get(f"/jobs/{job_id}")).headers["etag"]
    changed = await api.patch(f"/jobs/{job_id}", json={"priority": 1}, headers={"If-Match": seen})
    assert changed.status_code == 200
    assert changed.headers["etag"] != seen
    problem = await api.refused(
        412, "PATCH", f"/jobs/{job_id}", json={"priority": 2}, headers={"If-Match": seen}
    )
    assert "read it again" in problem["detail"]
    assert (await scheduler.jobs.get(job_id)).priority == 1
    for good in (changed.headers["etag"], "*", f'"other", {changed.headers["etag"]}'):
        await api.ok("PATCH", f"/jobs/{job_id}", json={"priority": 1}, headers={"If-Match": good})


async def test_of_two_edits_at_once_one_is_made(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1, delay=3_600_000_000)
    seen = (await api.get(f"/jobs/{job_id}")).headers["etag"]
    edits = [
        api.patch(f"/jobs/{job_id}", json={"priority": priority}, headers={"If-Match": seen})
        for priority in (1, 2, 3)
    ]
    answers = await asyncio.gather(*edits)
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]
    (made,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert (await api.ok("GET", f"/jobs/{job_id}"))["priority"] == made["priority"]
    assert [entry.verb for entry in await scheduler.audit.list(job=job_id)] == ["edit"]


@pytest.mark.parametrize("other", [{"queue": "print"}, {"arguments": {"user_id": 2}}, {"delay": "2h"}])
async def test_a_job_that_was_changed_after_it_was_read_stays_as_it_is(
    api: Api, scheduler: Scheduler, other: dict[str, Any]
) -> None:
    (job_id,) = await store_jobs(scheduler, 1, delay=3_600_000_000)
    seen = await scheduler.jobs.get(job_id)
    await api.ok("PATCH", f"/jobs/{job_id}", json=other)
    with pytest.raises(JobChanged, match="read it again"):
        await scheduler.jobs.edit(job_id, priority=1, expected=seen)
    assert (await scheduler.jobs.get(job_id)).priority == seen.priority


ODD_TEXTS = [
    "<script>alert(1)</script>",
    "\x00\x1b[31m\x7f\u2028",
    "\U0001f600\u202e\u0301",
    "'; DROP TABLE jobs; --",
    "\ud800",
]


@pytest.mark.parametrize("text", ODD_TEXTS, ids=["markup", "control", "emoji", "sql", "surrogate"])
async def test_odd_texts_are_answered_as_they_came_or_refused(
    api: Api, scheduler: Scheduler, text: str
) -> None:
    body = {"task": "mail.send", "arguments": {"message": text}}
    made = await api.post("/jobs", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert made.status_code == (422 if text == "\ud800" else 201)
    if made.is_success:
        shown = await api.get(f"/jobs/{made.json()['id']}")
        assert shown.headers["content-type"] == "application/json"
        assert shown.json()["arguments"] == {"message": text}
    for path in ("/jobs", "/failures", "/audit"):
        for name in ("task", "queue", "key", "tag", "schedule", "job", "cursor", "state"):
            assert (await api.get(path, params={name: text.replace("\ud800", "")})).status_code < 500
    named = await api.post(
        "/jobs", content=json.dumps(body | {"key": text}), headers={"Content-Type": "application/json"}
    )
    assert named.status_code in {201, 422}
    stored = len(await scheduler.jobs.list())
    assert stored == made.is_success + named.is_success


async def test_a_job_is_removed_by_an_admin(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    operator = api.seen_by("olga operator")
    assert "needs the role admin" in (await operator.refused(403, "DELETE", f"/jobs/{job_id}"))["detail"]
    await api.ok("DELETE", f"/jobs/{job_id}")
    await api.refused(404, "DELETE", f"/jobs/{job_id}")


async def bulk(api: Api, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Do something to many jobs, step by step."""
    answers = [await api.ok("POST", "/jobs/bulk", json=body)]
    while answers[-1]["next"] is not None:
        answers.append(await api.ok("POST", "/jobs/bulk", json=body | {"cursor": answers[-1]["next"]}))
    return answers


async def test_many_jobs_are_counted_first_and_then_changed_step_by_step(
    api: Api, scheduler: Scheduler
) -> None:
    await store_jobs(scheduler, 250)
    others = await store_jobs(scheduler, 2, task="print.page", queue="print")
    body = {"action": "cancel", "filter": {"queue": "mail", "state": ["pending"]}, "reason": "too many"}
    counted = await api.ok("POST", "/jobs/bulk", json=body)
    assert (counted["matching"], counted["at_least"], counted["done"]) == (250, False, 0)
    assert len((await api.ok("GET", "/jobs", params={"state": "cancelled"}))["items"]) == 0
    # What comes after the count is left alone.
    late = await store_jobs(scheduler, 3)
    steps = [counted]
    while steps[-1]["next"] is not None:
        steps.append(await api.ok("POST", "/jobs/bulk", json=body | {"cursor": steps[-1]["next"]}))
    assert [step["done"] for step in steps] == [0, 100, 200, 250]
    pending = await api.ok("GET", "/jobs", params={"state": ["pending"]})
    assert sorted(job["id"] for job in pending["items"]) == sorted([*others, *late])


async def test_a_step_does_what_was_counted(api: Api, scheduler: Scheduler) -> None:
    await store_jobs(scheduler, 2)
    body = {"action": "cancel", "filter": {"queue": "mail"}}
    cursor = (await api.ok("POST", "/jobs/bulk", json=body))["next"]
    for other in (
        {"action": "delete", "filter": {"queue": "mail"}},
        {"action": "cancel", "filter": {"queue": "print"}},
        {"action": "cancel", "all": True},
        {"action": "cancel", "filter": {"queue": "mail"}, "reason": "other"},
    ):
        problem = await api.refused(422, "POST", "/jobs/bulk", json=other | {"cursor": cursor})
        assert problem["type"] == "urn:duetime:InvalidCursor"
    page = (await api.ok("GET", "/jobs", params={"limit": 1, "queue": "mail"}))["next"]
    await api.refused(422, "POST", "/jobs/bulk", json=body | {"cursor": page})
    assert len((await api.ok("GET", "/jobs", params={"state": ["pending"]}))["items"]) == 2


async def test_a_filter_that_means_everything_needs_a_word(api: Api, scheduler: Scheduler) -> None:
    await store_jobs(scheduler, 2)
    problem = await api.refused(422, "POST", "/jobs/bulk", json={"action": "delete"})
    assert '"all": true' in problem["detail"]
    assert (await bulk(api, {"action": "delete", "all": True}))[-1]["done"] == 2
    assert (await api.ok("GET", "/jobs"))["items"] == []


async def test_many_jobs_are_run_again_put_off_and_removed(sqlite_url: str) -> None:
    scheduler = make_scheduler(sqlite_url)
    async with serving(scheduler) as api:
        failed = await store_jobs(scheduler, 2, task="mail.bounce")
        await drain(scheduler)
        await store_jobs(scheduler, 1, task="mail.bounce")
        again = (await bulk(api, {"action": "rerun", "filter": {"task": "mail.bounce"}}))[-1]
        assert (again["matching"], again["done"], again["refused"]) == (3, 2, 1)
        put_off = (await bulk(api, {"action": "snooze", "filter": {"task": "mail.bounce"}, "delay": "1h"}))[
            -1
        ]
        assert (put_off["done"], put_off["refused"]) == (3, 2)
        removed = await bulk(api, {"action": "delete", "filter": {"state": ["failed"]}})
        assert removed[-1]["done"] == 2
        for job_id in failed:
            await api.refused(404, "GET", f"/jobs/{job_id}")


async def test_to_remove_many_is_for_admins(api: Api) -> None:
    operator = api.seen_by("olga operator")
    await operator.refused(403, "POST", "/jobs/bulk", json={"action": "delete", "all": True})
    await operator.ok("POST", "/jobs/bulk", json={"action": "cancel", "all": True})
    await operator.refused(422, "POST", "/jobs/bulk", json={"action": "snooze", "all": True})
    await operator.refused(422, "POST", "/jobs/bulk", json={"action": "rerun", "all": True, "reason": "x"})
