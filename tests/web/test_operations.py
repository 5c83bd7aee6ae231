from __future__ import annotations

from duetime import Scheduler
from tests.web.kit import Api, serving, store_jobs


async def test_queues_are_counted_paused_limited_and_purged(api: Api, scheduler: Scheduler) -> None:
    await store_jobs(scheduler, 3)
    (queue,) = (await api.ok("GET", "/queues"))["items"]
    assert (queue["name"], queue["queued"], queue["workers"]) == ("mail", 3, 0)
    paused = await api.ok("POST", "/queues/mail/pause", json={"reason": "relay down"})
    assert (paused["paused"], paused["paused_reason"]) == (True, "relay down")
    assert not (await api.ok("POST", "/queues/mail/resume"))["paused"]
    body = {"limit": 5, "rate": {"count": 10, "per": "1m"}}
    limited = await api.ok("PUT", "/queues/mail/limit", json=body)
    assert (limited["limit"], limited["rate"]) == (5, {"count": 10, "per": 60.0})
    free = await api.ok("PUT", "/queues/mail/limit", json={})
    assert (free["limit"], free["rate"]) == (None, None)
    problem = await api.refused(422, "POST", "/queues/mail/purge", json={"confirm": "male"})
    assert problem["type"] == "urn:duetime:NotConfirmed"
    assert await api.ok("POST", "/queues/mail/purge", json={"confirm": "mail"}) == {"purged": 3}
    await api.seen_by("olga operator").refused(403, "POST", "/queues/mail/purge", json={"confirm": "mail"})
    assert [entry.who for entry in await scheduler.audit.list(queue="mail")] == ["ada"] * 5


async def test_a_queue_that_nothing_names_is_empty(api: Api) -> None:
    queue = await api.ok("GET", "/queues/none")
    assert (queue["queued"], queue["paused"], queue["at_least"]) == (0, False, [])
    for name in ("no queue", "%00", "x" * 201):
        await api.refused(422, "GET", f"/queues/{name}")
        await api.refused(422, "POST", f"/queues/{name}/pause")
        await api.refused(422, "PUT", f"/queues/{name}/limit", json={"limit": 1})
    for wrong in ({"limit": 0}, {"limit": "x"}, {"rate": {"count": 0, "per": "1m"}}, {"rate": {"count": 1}}):
        await api.refused(422, "PUT", "/queues/mail/limit", json=wrong)


async def test_a_worker_is_shown_and_told_what_to_do(api: Api, scheduler: Scheduler) -> None:
    async with scheduler.worker(name="one") as worker:
        (shown,) = (await api.ok("GET", "/workers"))["items"]
        assert (shown["id"], shown["name"], shown["state"]) == (worker.id, "one", "alive")
        path = f"/workers/{worker.id}"
        assert await api.ok("GET", path) == shown
        assert (await api.ok("POST", f"{path}/pause", json={"reason": "look"}))["reply"] is not None
        explained = await api.ok("GET", f"{path}/explain")
        assert any("paused" in line["text"] for line in explained["lines"])
        assert (await api.ok("POST", f"{path}/resume", json={"wait": 5}))["reply"] is not None
        assert "worker" in (await api.ok("POST", f"{path}/stacks"))["reply"].lower()
        told = await api.ok("GET", f"{path}/commands")
        assert [one["kind"] for one in told] == ["stacks", "resume", "pause"]
        operator = api.seen_by("olga operator")
        await operator.refused(403, "POST", f"{path}/stop")
        await api.refused(422, "POST", f"{path}/stop", json={"wait": "1h"})
        await api.ok("POST", f"{path}/stop", json={"now": True, "wait": 0})
        await worker.asked_to_stop()
    problem = await api.refused(409, "POST", f"{path}/pause")
    assert problem["type"] == "urn:duetime:WorkerGone"


async def test_a_worker_that_is_not_there_is_said_to_be_missing(api: Api) -> None:
    for name in ("0" * 32, "nothing", "%00"):
        for method, path in (
            ("GET", ""),
            ("GET", "/explain"),
            ("GET", "/commands"),
            ("POST", "/pause"),
            ("POST", "/stacks"),
        ):
            await api.refused(404, method, f"/workers/{name}{path}")


async def test_locks_are_listed_without_their_secrets_and_released(api: Api, scheduler: Scheduler) -> None:
    held = scheduler.lock("reindex")
    await held.acquire()
    (lock,) = (await api.ok("GET", "/locks"))["items"]
    assert (lock["name"], lock["fence"]) == ("reindex", held.fence)
    assert lock.keys() == {"name", "holder", "fence", "since", "deadline"}
    await api.seen_by("olga operator").refused(403, "DELETE", "/locks/reindex")
    await api.ok("DELETE", "/locks/reindex")
    await api.refused(404, "DELETE", "/locks/reindex")
    assert not await held.renew()
    await api.refused(404, "DELETE", "/locks/%00")


async def test_it_is_on_record_who_did_what(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1)
    await api.ok("POST", f"/jobs/{job_id}/cancel")
    await api.seen_by("olga operator").ok("POST", "/queues/mail/pause")
    first = await api.ok("GET", "/audit", params={"limit": 1})
    second = await api.ok("GET", "/audit", params={"limit": 1, "cursor": first["next"]})
    entries = first["items"] + second["items"]
    assert [(one["who"], one["verb"], one["kind"], one["name"]) for one in entries] == [
        ("olga", "pause", "queue", "mail"),
        ("ada", "cancel", "job", job_id),
    ]
    assert (await api.ok("GET", "/audit", params={"job": job_id}))["items"] == entries[1:]
    await api.refused(422, "GET", "/audit", params={"job": job_id, "queue": "mail"})
    assert (await api.ok("GET", "/audit", params={"schedule": "é"}))["items"] == []


async def test_tasks_are_shown_as_workers_announce_them(api: Api, scheduler: Scheduler) -> None:
    assert (await api.ok("GET", "/tasks"))["items"] == []
    async with scheduler.worker():
        tasks = {task["name"]: task for task in (await api.ok("GET", "/tasks"))["items"]}
    assert tasks.keys() == {"mail.send", "mail.bounce", "print.page"}
    send = await api.ok("GET", "/tasks/mail.send")
    assert (send["queue"], send["retries"]) == ("mail", 0)
    assert send["schema"]["properties"].keys() == {"user_id", "message"}
    problem = await api.refused(404, "GET", "/tasks/mail.receive")
    assert problem["type"] == "urn:duetime:UnknownTask"
    await api.refused(422, "GET", "/tasks/%00")


async def test_a_process_without_the_code_enqueues_what_was_announced(
    api: Api, scheduler: Scheduler, sqlite_url: str
) -> None:
    async with scheduler.worker():
        bare = Scheduler(sqlite_url)
        async with serving(bare) as other:
            said = await other.ok("POST", "/jobs", json={"task": "print.page", "arguments": {"number": 3}})
            assert (await bare.jobs.get(said["id"])).queue == "print"
            await other.refused(422, "POST", "/jobs", json={"task": "print.page", "arguments": {"x": 3}})
            body = {"task": "print.page", "trigger": {"every": "1h"}}
            assert (await other.ok("PUT", "/schedules/pages", json=body))["queue"] == "print"
