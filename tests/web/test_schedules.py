from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime import Scheduler, every
from duetime.errors import ScheduleChanged
from tests.web.kit import Api

NIGHTLY = {
    "task": "mail.send",
    "arguments": {"user_id": 4},
    "trigger": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "overlap": "queue_one",
    "tags": ["nightly"],
}


async def test_a_schedule_is_put_shown_and_listed(api: Api) -> None:
    first = await api.put("/schedules/nightly", json=NIGHTLY)
    assert first.status_code == 201
    schedule = first.json()
    assert (schedule["trigger"], schedule["description"]) == (
        {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
        "at 03:00 every day, Europe/Berlin",
    )
    assert (schedule["state"], schedule["queue"], schedule["overlap"]) == ("active", "mail", "queue_one")
    assert (await api.put("/schedules/nightly", json=NIGHTLY)).status_code == 200
    shown = await api.get("/schedules/nightly")
    assert shown.json() == schedule
    assert shown.headers["etag"] == first.headers["etag"]
    listed = await api.ok("GET", "/schedules")
    assert listed == {"items": [schedule], "next": None}


@pytest.mark.parametrize(
    "trigger",
    [
        {"every": "15m"},
        {"every": "1 month", "tz": "Asia/Tokyo", "start": "2030-01-31T09:00:00+09:00"},
        {"at": ["2030-01-31T09:00:00Z", "2031-01-31T09:00:00Z"]},
        {"at": "2030-01-31T09:00:00Z"},
        {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "start": "2030-01-31T09:00:00Z"},
        {"cron": "H 3 * * *", "times": 3, "end": "2031-01-01T00:00:00Z", "jitter": "5m"},
        {"trigger": {"type": "every", "interval": 60_000_000}},
    ],
)
async def test_a_trigger_that_was_shown_can_be_put_again(api: Api, trigger: dict[str, Any]) -> None:
    schedule = await api.ok("PUT", "/schedules/any", json=NIGHTLY | {"trigger": trigger})
    again = await api.put("/schedules/any", json=NIGHTLY | {"trigger": schedule["trigger"]})
    assert again.json()["trigger"] == schedule["trigger"]
    assert again.json()["next_at"] == schedule["next_at"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"trigger": {}}, "this has none"),
        ({"trigger": {"cron": "0 3 * *"}}, "expected 5 fields"),
        ({"trigger": {"cron": "0 3 30 2 *"}}, "expected a day that comes"),
        ({"trigger": {"cron": "0 3 * * *", "every": "1h"}}, "cron and every"),
        ({"trigger": {"cron": "0 3 * * *", "tz": "Mars/Base"}}, "Mars/Base"),
        ({"trigger": {"every": "1ms"}}, "1 second"),
        ({"trigger": {"trigger": {"type": "os.system"}}}, "unknown trigger type"),
        ({"trigger": {"at": "2020-01-31T09:00:00Z"}}, ""),
        ({"trigger": {"every": "1h", "soon": True}}, "/trigger/soon: unknown field"),
        ({"task": "os.system"}, "no worker has announced a task"),
        ({"arguments": {"user_id": "x"}}, "at `$.user_id`"),
        ({"overlap": "sometimes"}, "/overlap"),
        ({"overlap_limit": 3}, "overlap_limit= is for overlap='queue_all'"),
        ({"queue": "no queue"}, "queue 'no queue' is not allowed"),
        ({"by": "someone else"}, "/by: unknown field"),
    ],
)
async def test_what_cannot_be_put_is_refused_in_the_words_of_python(
    api: Api, change: dict[str, Any], detail: str
) -> None:
    assert detail in (await api.refused(422, "PUT", "/schedules/nightly", json=NIGHTLY | change))["detail"]
    assert (await api.ok("GET", "/schedules"))["items"] == []


async def test_a_list_is_read_page_by_page_by_name(api: Api) -> None:
    for name in ("b", "a/b", "c", "B"):
        await api.ok("PUT", f"/schedules/{name}", json=NIGHTLY)
    first = await api.ok("GET", "/schedules", params={"limit": 3})
    second = await api.ok("GET", "/schedules", params={"limit": 3, "cursor": first["next"]})
    assert [one["name"] for one in first["items"] + second["items"]] == ["B", "a/b", "b", "c"]
    assert second["next"] is None
    assert (await api.ok("GET", "/schedules/a/b"))["name"] == "a/b"


async def test_what_is_named_is_changed_and_nothing_else(api: Api) -> None:
    before = await api.ok("PUT", "/schedules/nightly", json=NIGHTLY | {"retries": 3, "timeout": "30s"})
    body = {"trigger": {"every": "15m"}, "arguments": {"user_id": 5}, "timeout": None}
    after = await api.ok("PATCH", "/schedules/nightly", json=body)
    assert (after["arguments"], after["timeout"], after["retries"]) == ({"user_id": 5}, None, 3)
    assert (after["tags"], after["overlap"], after["made"]) == (before["tags"], before["overlap"], 0)
    for wrong in ({}, {"task": "print.page"}, {"retries": -1}, {"trigger": {"cron": "x"}}):
        await api.refused(422, "PATCH", "/schedules/nightly", json=wrong)
    await api.refused(404, "PATCH", "/schedules/daily", json=body)


async def test_which_task_a_schedule_runs_is_for_admins(api: Api) -> None:
    operator = api.seen_by("olga operator")
    await operator.refused(403, "PUT", "/schedules/nightly", json=NIGHTLY)
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    await operator.ok("PATCH", "/schedules/nightly", json={"priority": 1})
    await operator.refused(403, "DELETE", "/schedules/nightly")
    history = await api.ok("GET", "/schedules/nightly/history")
    assert [(one["who"], one["verb"]) for one in history] == [("olga", "edit"), ("ada", "put")]


async def test_a_change_of_what_one_has_not_seen_is_refused(api: Api) -> None:
    seen = (await api.put("/schedules/nightly", json=NIGHTLY)).headers["etag"]
    await api.ok("PATCH", "/schedules/nightly", json={"priority": 1}, headers={"If-Match": seen})
    stale = {"If-Match": seen}
    problem = await api.refused(412, "PATCH", "/schedules/nightly", json={"priority": 2}, headers=stale)
    assert "has been changed since it was read" in problem["detail"]
    await api.refused(412, "PUT", "/schedules/nightly", json=NIGHTLY, headers=stale)
    await api.refused(412, "DELETE", "/schedules/nightly", headers=stale)
    await api.refused(412, "PUT", "/schedules/daily", json=NIGHTLY, headers={"If-Match": "*"})
    assert (await api.ok("GET", "/schedules/nightly"))["priority"] == 1


async def test_of_two_edits_at_once_one_is_made(api: Api) -> None:
    seen = (await api.put("/schedules/nightly", json=NIGHTLY)).headers["etag"]
    edits = [
        api.patch("/schedules/nightly", json={"priority": priority}, headers={"If-Match": seen})
        for priority in (1, 2, 3)
    ]
    answers = await asyncio.gather(*edits)
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412]
    (made,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert (await api.ok("GET", "/schedules/nightly"))["priority"] == made["priority"]


async def test_an_edit_of_a_schedule_that_was_changed_in_the_meantime_is_refused_in_the_store(
    api: Api, scheduler: Scheduler
) -> None:
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    seen = await scheduler.schedules.get("nightly")
    await scheduler.schedules.edit("nightly", priority=1, expected=seen)
    for late in (
        scheduler.schedules.edit("nightly", priority=2, expected=seen),
        scheduler.schedules.put("nightly", every("1h"), "mail.send", expected=seen),
    ):
        with pytest.raises(ScheduleChanged, match="schedule nightly has been changed"):
            await late
    await scheduler.schedules.delete("nightly")
    with pytest.raises(ScheduleChanged):
        await scheduler.schedules.put("nightly", every("1h"), "mail.send", expected=seen)


async def test_a_schedule_is_paused_and_resumed(api: Api) -> None:
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    paused = await api.ok("POST", "/schedules/nightly/pause", json={"reason": "migration", "until": "2h"})
    assert (paused["state"], paused["paused_by"], paused["paused_reason"]) == ("paused", "ada", "migration")
    assert paused["paused_until"] is not None
    assert (await api.ok("POST", "/schedules/nightly/resume"))["state"] == "active"
    await api.ok("POST", "/schedules/nightly/pause", json={"until": "2030-01-31T09:00:00+01:00"})
    await api.refused(422, "POST", "/schedules/nightly/pause", json={"until": "soon"})
    problem = await api.refused(409, "POST", "/schedules/nightly/skip")
    assert problem["type"] == "urn:duetime:NothingToSkip"


async def test_a_schedule_is_triggered_skipped_and_backfilled(api: Api, scheduler: Scheduler) -> None:
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    fired = await api.post("/schedules/nightly/trigger", json={"arguments": {"user_id": 8}})
    assert fired.status_code == 201
    job = await scheduler.jobs.get(fired.json()["id"])
    assert (job.schedule, job.arguments) == ("nightly", {"user_id": 8})
    upcoming = await api.ok("GET", "/schedules/nightly/preview", params={"n": 2})
    assert (await api.ok("POST", "/schedules/nightly/skip"))["skipped"] == upcoming[0]["at"]
    stretch = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T00:00:00Z"}
    counted = await api.ok("POST", "/schedules/nightly/backfill", json=stretch | {"dry_run": True})
    assert counted == {"occurrences": 2, "enqueued": 2, "already": 0}
    assert (await api.ok("POST", "/schedules/nightly/backfill", json=stretch))["enqueued"] == 2
    assert (await api.ok("POST", "/schedules/nightly/backfill", json=stretch))["already"] == 2
    far = stretch | {"end": "2100-01-01T00:00:00Z"}
    await api.refused(422, "POST", "/schedules/nightly/backfill", json=far)


async def test_a_rule_is_previewed_before_it_is_stored(api: Api) -> None:
    body = {"trigger": {"cron": "30 2 * * *", "tz": "Europe/Berlin"}, "after": "2026-03-28T00:00:00Z", "n": 2}
    first, second = await api.seen_by("vera viewer").ok("POST", "/schedules/preview", json=body)
    assert first["local"] == "2026-03-28T02:30:00+01:00"
    assert "does not exist" in second["note"]


async def test_a_schedule_explains_itself(api: Api) -> None:
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    lines = (await api.ok("GET", "/schedules/nightly/explain"))["lines"]
    assert "was created" in lines[0]["text"]
    asked = await api.ok("GET", "/schedules/nightly/explain", params={"at": "2026-01-01T03:00"})
    assert "You ask about 2026-01-01 03:00:00 Europe/Berlin" in asked["lines"][0]["text"]
    await api.refused(422, "GET", "/schedules/nightly/explain", params={"at": "never"})


@pytest.mark.parametrize("name", ["nothing", "%00", "no name", "é", "x" * 201])
async def test_a_schedule_that_is_not_there_is_said_to_be_missing(api: Api, name: str) -> None:
    for method, path in (
        ("GET", ""),
        ("GET", "/preview"),
        ("GET", "/history"),
        ("POST", "/pause"),
        ("DELETE", ""),
    ):
        response = await api.request(method, f"/schedules/{name}{path}")
        assert response.status_code == (404 if name == "nothing" else 422), response.text


async def test_what_is_to_come_is_a_calendar(api: Api) -> None:
    await api.ok("PUT", "/schedules/nightly", json=NIGHTLY)
    await api.ok("PUT", "/schedules/often", json=NIGHTLY | {"trigger": {"every": "1m"}})
    calendar = await api.ok("GET", "/calendar", params={"days": 3})
    assert [one["task"] for one in calendar["entries"] if one["schedule"] == "nightly"] == ["mail.send"] * 3
    assert len([one for one in calendar["entries"] if one["schedule"] == "often"]) == 50
    assert calendar["cut"] == ["often"]
    times = [one["at"] for one in calendar["entries"]]
    assert times == sorted(times)
    file = await api.get("/calendar.ics", params={"days": 3})
    assert file.headers["content-type"].startswith("text/calendar")
    assert file.text.count("BEGIN:VEVENT") == len(times)
    assert (await api.ok("GET", "/forecast", params={"days": 1}))["jobs"] > 1_000
    await api.refused(422, "GET", "/calendar", params={"days": 94})
    await api.refused(422, "GET", "/forecast", params={"tz": "Mars/Base"})


async def test_schedules_that_no_one_fires_are_overdue(api: Api, scheduler: Scheduler) -> None:
    url = "http://localhost/health/schedules"
    assert await api.ok("GET", url) == {"overdue": []}
    at = datetime.now(UTC) + timedelta(seconds=1)
    await api.ok("PUT", "/schedules/once", json=NIGHTLY | {"trigger": {"at": at.isoformat()}})
    assert await api.ok("GET", url) == {"overdue": []}
    (record,) = await scheduler.schedules.list()
    assert record.next_at == at
    assert await scheduler.schedules.overdue() == []
