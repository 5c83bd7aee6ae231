"""What those who are bound to queues see and touch: nothing of the others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from duetime import Scheduler
from duetime.testing import drain
from tests.web.kit import Api, serving, store_jobs

HIDDEN = "mail"
MARK = "of-the-mail"


@pytest.fixture
async def api(scheduler: Scheduler) -> AsyncGenerator[Api]:
    """The API, with jobs and schedules in both queues; those of one queue are marked wherever they can be."""
    async with serving(scheduler) as served:
        trigger = {"trigger": {"cron": "0 3 * * *"}}
        await served.ok(
            "PUT", f"/schedules/{MARK}", json={"task": "mail.send", "arguments": {"message": MARK}} | trigger
        )
        await served.ok("PUT", "/schedules/pages", json={"task": "print.page"} | trigger)
        for name in (MARK, "pages"):
            await served.ok("POST", f"/schedules/{name}/trigger")
        await served.ok(
            "POST",
            "/jobs",
            json={
                "task": "mail.bounce",
                "arguments": {"reason": MARK},
                "key": MARK,
                "tags": [MARK],
                "headers": {"x": MARK},
            },
        )
        await served.ok("POST", "/jobs", json={"task": "print.page", "tags": ["pages"]})
        await drain(scheduler)
        # The last run of this schedule was in the other queue.
        moved = await served.ok("POST", "/schedules/pages/trigger")
        await served.ok("PATCH", f"/jobs/{moved['id']}", json={"queue": "mail", "delay": 0})
        await drain(scheduler)
        await store_jobs(scheduler, 1, payload=f'{{"message": "{MARK}"}}')
        await store_jobs(scheduler, 1, task="print.page", queue="print")
        yield served


def texts(value: Any) -> Iterator[str]:
    """Yield every name and every text in an answer."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    else:
        yield str(value)


async def hidden_ids(api: Api) -> list[str]:
    """The jobs that someone who is bound to the other queue does not see."""
    return [job["id"] for job in (await api.ok("GET", "/jobs", params={"queue": HIDDEN}))["items"]]


async def test_no_field_of_any_answer_tells_of_another_queue(api: Api, scheduler: Scheduler) -> None:
    bound = api.seen_by("peter viewer print")
    ids = await hidden_ids(api)
    assert len(ids) >= 4
    seen = (await bound.ok("GET", "/jobs", params={"limit": 200}))["items"]
    assert seen
    paths = [
        "/jobs", "/jobs?limit=1", "/jobs?task=mail.send", f"/jobs?key={MARK}", f"/jobs?tag={MARK}", f"/jobs?schedule={MARK}",
        "/jobs?state=failed", "/schedules", "/schedules/pages", "/schedules/pages/preview", "/schedules/pages/explain",
        "/schedules/pages/history", "/queues", "/queues/print", "/failures", "/calendar", "/tasks",
        "http://localhost/health/schedules",
    ]  # fmt: skip
    paths += [f"/jobs/{job['id']}{path}" for job in seen for path in ("", "/attempts", "/logs", "/explain")]
    async with scheduler.worker():  # So that there are tasks.
        for path in paths:
            for text in texts(await bound.ok("GET", path)):
                assert MARK not in text, path
                assert text != HIDDEN, path
                # What was done to a schedule names the jobs that it made.
                assert text not in ids or path.endswith("/history"), path
    assert [one["name"] for one in (await bound.ok("GET", "/tasks"))["items"]] == ["print.page"]
    (file,) = [await bound.get("/calendar.ics")]
    assert (MARK in file.text, "pages" in file.text) == (False, True)


async def test_what_is_in_another_queue_is_not_there(api: Api) -> None:
    bound = api.seen_by("peter admin print")
    for job_id in await hidden_ids(api):
        there = [
            ("GET", ""),
            ("GET", "/attempts"),
            ("GET", "/logs"),
            ("GET", "/explain"),
            ("POST", "/cancel"),
            ("POST", "/rerun"),
            ("POST", "/release"),
            ("DELETE", ""),
        ]
        for method, path in there:
            problem = await bound.refused(404, method, f"/jobs/{job_id}{path}")
            # In the words for one that never was.
            missing = await bound.refused(404, method, f"/jobs/{'0' * 32}{path}")
            assert problem["detail"].replace(job_id, "") == missing["detail"].replace("0" * 32, "")
        await bound.refused(404, "POST", f"/jobs/{job_id}/snooze", json={"delay": 1})
        await bound.refused(404, "PATCH", f"/jobs/{job_id}", json={"priority": 1})
    for method, path in [
        ("GET", ""),
        ("GET", "/preview"),
        ("GET", "/history"),
        ("GET", "/explain"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/trigger"),
        ("POST", "/skip"),
        ("DELETE", ""),
    ]:
        await bound.refused(404, method, f"/schedules/{MARK}{path}")
    await bound.refused(404, "PATCH", f"/schedules/{MARK}", json={"priority": 1})
    await bound.refused(
        403, "PUT", f"/schedules/{MARK}", json={"task": "print.page", "trigger": {"every": "1h"}}
    )
    await bound.refused(404, "GET", "/tasks/mail.send")


async def test_nothing_is_moved_into_another_queue_or_out_of_it(api: Api) -> None:
    bound = api.seen_by("peter admin print")
    visible = (await bound.ok("GET", "/jobs", params={"state": "pending"}))["items"][0]["id"]
    ended = (await bound.ok("GET", "/jobs", params={"state": "succeeded"}))["items"][0]["id"]
    body = {"task": "print.page", "queue": "mail"}
    trigger = {"trigger": {"every": "1h"}}
    for method, path, sent in [
        ("POST", "/jobs", body),
        # A task of another queue, in one's own.
        ("POST", "/jobs", {"task": "mail.send", "queue": "print"}),
        ("PATCH", f"/jobs/{visible}", {"queue": "mail"}),
        ("POST", f"/jobs/{ended}/rerun", {"queue": "mail"}),
        ("PATCH", "/schedules/pages", {"queue": "mail"}),
        ("PUT", "/schedules/new", body | trigger),
        ("PUT", "/schedules/new", {"task": "mail.send", "queue": "print"} | trigger),
        ("GET", "/jobs?queue=mail", None),
        ("GET", "/failures?queue=mail", None),
        ("POST", "/jobs/bulk", {"action": "cancel", "filter": {"queue": "mail"}}),
        ("GET", "/queues/mail", None),
        ("POST", "/queues/mail/pause", None),
        ("POST", "/queues/mail/purge", {"confirm": "mail"}),
        ("PUT", "/queues/mail/limit", {"limit": 1}),
    ]:
        problem = await bound.refused(403, method, path, json=sent)
        assert "queues print only" in problem["detail"]


async def test_many_jobs_are_those_of_ones_own_queues(api: Api, scheduler: Scheduler) -> None:
    bound = api.seen_by("peter admin print other")
    before = await hidden_ids(api)
    body = {"action": "delete", "all": True}
    counted = await bound.ok("POST", "/jobs/bulk", json=body)
    assert counted["matching"] == len((await api.ok("GET", "/jobs", params={"queue": "print"}))["items"])
    await bound.ok("POST", "/jobs/bulk", json=body | {"cursor": counted["next"]})
    assert (await api.ok("GET", "/jobs", params={"queue": "print"}))["items"] == []
    assert await hidden_ids(api) == before


async def test_what_belongs_to_no_queue_is_for_others(api: Api) -> None:
    bound = api.seen_by("peter admin print")
    for method, path in [
        ("GET", "/workers"),
        ("GET", f"/workers/{'0' * 32}"),
        ("POST", f"/workers/{'0' * 32}/stop"),
        ("GET", "/locks"),
        ("DELETE", "/locks/reindex"),
        ("GET", "/audit"),
        ("GET", "/forecast"),
    ]:
        assert "bound to queues" in (await bound.refused(403, method, path))["detail"]


async def test_pages_of_several_queues_are_in_one_order(api: Api) -> None:
    both = api.seen_by("paula viewer print mail")
    every = [job["id"] for job in (await api.ok("GET", "/jobs"))["items"]]
    found: list[str] = []
    cursor: dict[str, str] = {}
    while len(found) < len(every):
        page = await both.ok("GET", "/jobs", params={"limit": 2} | cursor)
        found += [job["id"] for job in page["items"]]
        cursor = {"cursor": page["next"]}
    assert found == every
