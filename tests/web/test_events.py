"""The live stream: what it tells, to whom, and how it begins and ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from duetime import Scheduler, cron
from duetime.model.outcome import Succeeded
from duetime.model.stored.watched import Journal
from duetime.model.time import SECOND
from duetime.testing.conformance.kit import finish, hire, take_one
from duetime.web import User, make_api, watch
from duetime.web.api import events
from tests.web.kit import Api, TokenApi, make_scheduler, store_jobs
from tests.web.streams import PATIENCE, Reader, reading

LEASE = 30 * SECOND


async def test_a_stream_has_the_headers_that_let_it_through(api: Api) -> None:
    async with reading(api.app) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "content-length" not in stream.headers
        assert stream.text.startswith("retry: 1000\n\n")


async def test_a_job_is_told_as_it_goes(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app) as stream:
        job = await scheduler.enqueue_by_name("mail.send")
        told = await stream.job(job.id, "pending")
        assert (told["task"], told["queue"], told["started_at"]) == ("mail.send", "mail", None)
        async with scheduler.worker() as worker:
            told = await stream.job(job.id, "succeeded")
            assert (told["worker"], told["finished_at"] is None) == (worker.id, False)


@pytest.mark.covers("live-view-misses")
async def test_a_job_that_was_stored_before_anyone_looked_is_told_when_it_ends(
    api: Api, scheduler: Scheduler
) -> None:
    (first,) = await store_jobs(scheduler, 1)
    # So many that it is none of the newest.
    await store_jobs(scheduler, 1_100, delay=3600 * SECOND)
    async with reading(api.app) as stream, scheduler.worker():
        await stream.job(first, "succeeded")


@pytest.mark.covers("live-view-misses")
async def test_a_job_that_waits_in_a_crowd_is_told_when_it_ends(api: Api, scheduler: Scheduler) -> None:
    low = await store_jobs(scheduler, 1, priority=9)
    await store_jobs(scheduler, 1_500)
    async with reading(api.app) as stream, scheduler.worker():
        await stream.job(low[0], "succeeded")


async def test_a_job_that_falls_due_is_told_although_no_one_runs_it(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1, delay=2 * SECOND)
    await store_jobs(scheduler, 1_100, delay=3600 * SECOND)
    async with reading(api.app) as stream:
        assert (await stream.job(job_id))["state"] == "pending"


async def test_what_people_do_is_told(api: Api, scheduler: Scheduler) -> None:
    (job_id,) = await store_jobs(scheduler, 1, delay=3600 * SECOND)
    await store_jobs(scheduler, 1_100, delay=3600 * SECOND)
    async with reading(api.app) as stream:
        await scheduler.jobs.cancel(job_id)
        await stream.job(job_id, "cancelled")
        await scheduler.queues.pause("mail")
        assert (await stream.next("queues")).said == {"items": [{"name": "mail", "verb": "pause"}]}
        await scheduler.schedules.put("nightly", cron("0 3 * * *"), "mail.send")
        (told,) = (await stream.next("schedules")).said["items"]
        assert told["name"] == "nightly"


async def test_workers_come_and_go(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app) as stream:
        async with scheduler.worker() as worker:
            (told,) = (await stream.next("workers")).said["items"]
            assert told == {"id": worker.id, "state": "alive", "paused": False}
        (told,) = (await stream.next("workers")).said["items"]
        assert told == {"id": worker.id, "state": "stopped", "paused": False}


async def test_where_a_worker_dies_what_it_did_last_may_be_missed(api: Api, scheduler: Scheduler) -> None:
    await hire(scheduler.store, "w1")
    async with reading(api.app) as stream:
        await scheduler.store.bury(["w1"])
        assert (await stream.next("workers")).said["items"][0]["state"] == "dead"
        assert "died" in (await stream.next("resync")).said["reason"]


@pytest.mark.covers("live-view-misses")
async def test_where_a_worker_has_done_more_than_it_could_note_that_is_told(
    api: Api, scheduler: Scheduler
) -> None:
    async with reading(api.app) as stream:
        await hire(scheduler.store, "w1")
        await stream.next("workers")
        await scheduler.store.write_journal("w1", Journal(total=7, latest=["0" * 32]).text())
        await stream.next("resync")
        await scheduler.store.write_journal("w1", "nonsense")
        (job_id,) = await store_jobs(scheduler, 1)
        await stream.job(job_id)


async def test_above_so_many_changes_they_are_counted(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_MOST_CHANGES", 10)
    async with reading(api.app) as stream:
        await store_jobs(scheduler, 100, priority=0)
        rare = await store_jobs(scheduler, 1, task="print.page", queue="print")
        told = await stream.next("jobs")
        assert len(told.said["items"]) <= 10
        counted = {one["queue"]: one["counts"] for one in (await stream.next("sampled")).said["items"]}
        assert counted["mail"]["stored"] == 100
        # What is rare is not hidden behind what is not.
        shown = told.said["items"]
        while not any(one["id"] == rare[0] for one in shown):
            shown = (await stream.next("jobs")).said["items"]


async def test_nothing_is_told_of_arguments_results_and_errors(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app) as stream, scheduler.worker():
        sent = await scheduler.enqueue_by_name("mail.send", {"message": "the password", "user_id": 17})
        bounced = await scheduler.enqueue_by_name("mail.bounce", {"reason": "the password"})
        await stream.job(sent.id, "succeeded")
        await stream.job(bounced.id, "failed")
    assert "password" not in stream.text
    assert "sent to" not in stream.text


async def test_those_who_are_bound_to_queues_are_told_of_these(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app, "mia viewer mail") as bound, reading(api.app) as free:
        await scheduler.queues.pause("print")
        await scheduler.queues.pause("mail")
        async with scheduler.worker():
            await free.next("workers")
            (hidden,) = await store_jobs(scheduler, 1, task="print.page", queue="print")
            await free.job(hidden)
            await scheduler.queues.resume("mail")
            (seen,) = await store_jobs(scheduler, 1)
            await bound.job(seen, "succeeded")
    assert hidden not in bound.text
    assert "print" not in bound.text
    assert "workers" not in bound.text
    assert "print" in free.text


async def test_counts_of_other_queues_are_not_told(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_MOST_CHANGES", 1)
    async with reading(api.app, "mia viewer mail") as bound:
        await store_jobs(scheduler, 20, task="print.page", queue="print")
        await store_jobs(scheduler, 20)
        await bound.next("sampled")
    assert "print" not in bound.text


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once who reads."""
    monkeypatch.setattr(events, "_ASK_AGAIN", 0.01)
    monkeypatch.setattr("duetime.web.sign_in._REMEMBERED", 0.0)


@pytest.mark.usefixtures("impatient")
async def test_a_token_that_is_revoked_ends_its_stream(token_api: TokenApi, scheduler: Scheduler) -> None:
    token = await scheduler.tokens.add("once")
    async with reading(token_api.app, None, headers={"Authorization": f"Bearer {token.secret}"}) as stream:
        await scheduler.tokens.revoke("once")
        assert (await stream.next("bye")).said == {"reason": "sign in again"}
        await stream.end()


@pytest.mark.usefixtures("impatient")
async def test_a_session_that_ends_ends_its_stream(token_api: TokenApi) -> None:
    secret = token_api.headers["Authorization"].removeprefix("Bearer ")
    begun = await token_api.with_token(None).request("POST", "/session", json={"token": secret})
    cookie = {"Cookie": f"duetime_session={begun.cookies['duetime_session']}"}
    async with reading(token_api.app, None, headers=cookie) as stream:
        same = {"Sec-Fetch-Site": "same-origin"}
        ended = await token_api.with_token(None).request("DELETE", "/session", headers=cookie | same)
        assert ended.status_code == 204
        await stream.next("bye")
        await stream.end()


@pytest.mark.usefixtures("impatient")
async def test_who_comes_to_see_less_is_told_less(scheduler: Scheduler) -> None:
    sees: list[Any] = [None]

    def who(_: object) -> User:
        return User("ada", "viewer", sees[0])

    async with scheduler:
        async with reading(make_api(scheduler, authenticate=who), None) as stream:
            sees[0] = frozenset({"mail"})
            await asyncio.sleep(0.1)  # Until it was asked again.
            (hidden,) = await store_jobs(scheduler, 1, task="print.page", queue="print")
            (seen,) = await store_jobs(scheduler, 1)
            await stream.job(seen)
        assert hidden not in stream.text


async def test_a_reader_that_comes_back_goes_on_where_it_was(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app) as stream:
        first = await store_jobs(scheduler, 1)
        await stream.job(first[0])
        last = await _last_id(stream)
    (missed,) = await store_jobs(scheduler, 1)
    async with reading(api.app, headers={"Last-Event-ID": last}, begun=False) as stream:
        await stream.job(missed)
        (new,) = await store_jobs(scheduler, 1)
        await stream.job(new)
    assert "resync" not in stream.text
    assert first[0] not in stream.text


async def _last_id(stream: Reader) -> str:
    return stream.text.rpartition("id: ")[2].partition("\n")[0]


@pytest.mark.parametrize("last", ["0badcafe-3", "nonsense", "", "-1", "é-²"])
async def test_the_event_of_another_process_is_answered_with_resync(api: Api, last: str) -> None:
    async with reading(api.app, headers={"Last-Event-ID": last}, begun=False) as stream:
        assert (await stream.next()).kind == "resync"


async def test_an_event_of_the_future_is_answered_with_resync(api: Api) -> None:
    async with reading(api.app) as stream:
        nonce = (await _last_id(stream)).partition("-")[0]
        later = {"Last-Event-ID": f"{nonce}-999999"}
        async with reading(api.app, headers=later, begun=False) as other:
            assert (await other.next()).kind == "resync"


async def test_an_id_that_is_too_long_is_refused(api: Api) -> None:
    async with reading(api.app, headers={"Last-Event-ID": "1" * 101}) as stream:
        assert stream.status == 422


async def test_after_a_watch_that_has_ended_another_one_answers_with_resync(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_AFTERLIFE", 0)
    async with reading(api.app) as stream:
        last = await _last_id(stream)
    await _until_no_one_watches()
    (missed,) = await store_jobs(scheduler, 1)
    async with reading(api.app, headers={"Last-Event-ID": last}, begun=False) as stream:
        assert (await stream.next()).kind == "resync"
    assert missed not in stream.text


async def _until_no_one_watches() -> None:
    async with asyncio.timeout(PATIENCE):
        watching = [task for task in asyncio.all_tasks() if task.get_name() == "duetime-watch"]
        await asyncio.gather(*watching, return_exceptions=True)


async def test_a_slow_reader_is_told_that_it_missed_something(api: Api, scheduler: Scheduler) -> None:
    async with reading(api.app) as slow, reading(api.app) as quick:
        slow.may_read.clear()
        (first,) = await store_jobs(scheduler, 1)
        await quick.job(first)
        told = api.app.app.state.watch
        for number in range(watch._KEPT + 10):
            told.publish("jobs")
            if not number % 50:
                await asyncio.sleep(0.01)  # The other one reads meanwhile.
        slow.may_read.set()
        assert "slowly" in (await slow.next("resync")).said["reason"]
        (second,) = await store_jobs(scheduler, 1)
        await slow.job(second)
        assert "resync" not in quick.text


async def test_a_reader_that_takes_nothing_is_left(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(api.app) as stream:
        monkeypatch.setattr(events, "_SLOWEST", 0.05)
        stream.may_read.clear()
        await store_jobs(scheduler, 1)
        await _until_left(api)


async def _until_left(api: Api) -> None:
    async with asyncio.timeout(PATIENCE):
        while api.app.app.state.watch._readers:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def test_a_quiet_stream_gives_signs_of_life(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_HEARTBEAT", 0.0)
    monkeypatch.setattr(events, "_ASK_AGAIN", 0.01)
    async with reading(api.app) as stream, asyncio.timeout(PATIENCE):
        while ": still here\n" not in stream.text:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(0.01)


async def test_where_signals_are_not_heard_a_stream_ends_by_itself(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(api.app) as stream:
        monkeypatch.setattr(events, "_LONGEST", 0.0)
        api.app.app.state.watch.heeds_signals = False
        api.app.app.state.watch.publish("jobs")
        assert (await stream.next("bye")).said == {"reason": "come back"}
        await stream.end()


async def test_all_streams_of_a_process_share_one_watch(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    glance = scheduler.store.glance

    async def counted(*args: Any, **kwargs: Any) -> Any:
        looks.append(args)
        return await glance(*args, **kwargs)

    monkeypatch.setattr(scheduler.store, "glance", counted)
    async with reading(api.app) as one, reading(api.app) as two, reading(api.app) as three:
        began = asyncio.get_running_loop().time()
        for _ in range(100):
            await store_jobs(scheduler, 1)
            await asyncio.sleep(0.01)
        (last,) = await store_jobs(scheduler, 1)
        for stream in (one, two, three):
            await stream.job(last)
        seconds = asyncio.get_running_loop().time() - began
    assert len(looks) <= 4 * (seconds + 1) + 1


async def test_without_a_stream_nothing_is_asked_and_nothing_noted(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_AFTERLIFE", 0)
    async with reading(api.app):
        pass
    await _until_no_one_watches()
    asked: list[str] = []
    for verb in ("watch", "glance", "write_journal", "upcoming", "entries"):

        async def refuse(*_: object, verb: str = verb, **__: object) -> None:
            asked.append(verb)

        monkeypatch.setattr(scheduler.store, verb, refuse)
    async with scheduler.worker():
        job = await scheduler.enqueue_by_name("mail.send")
        await job.result(timeout=PATIENCE)
    assert asked == []


async def test_an_error_in_a_look_ends_no_stream(
    api: Api, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(api.app) as stream:
        with monkeypatch.context() as broken:
            broken.setattr(scheduler.store, "glance", None)
            await stream.next("down")
        await stream.next("resync")
        (job_id,) = await store_jobs(scheduler, 1)
        await stream.job(job_id)
    assert "it looks again" in caplog.text


async def test_the_process_that_looks_need_not_be_the_one_that_works(sqlite_url: str) -> None:
    watching, working = make_scheduler(sqlite_url), make_scheduler(sqlite_url)
    async with watching, working:
        app = make_api(watching, authenticate=lambda _: User("ada"))
        async with reading(app, None) as stream:
            await hire(working.store, "w1")
            (job_id,) = await store_jobs(working, 1)
            await stream.job(job_id, "pending")
            claim = await take_one(working.store, queues=["mail"], tasks=("mail.send",))
            await finish(working.store, claim, Succeeded(), now=await working.store.now())
            await working.store.write_journal("w1", Journal(1, {}, [job_id]).text())
            await stream.job(job_id, "succeeded")
