"""Figures over time, over HTTP."""

from __future__ import annotations

from duetime import Scheduler, cron
from duetime.model.stored.audit import deployment
from tests.unit.scheduler.test_stats import count
from tests.web.kit import BASE, Api, TokenApi


async def test_figures_of_one_thing_and_of_everything(api: Api, scheduler: Scheduler) -> None:
    await scheduler.store.enqueue([], entries=[deployment("1", worker="w")])
    await count(scheduler, "succeeded", "failed", schedule="nightly")
    await scheduler.schedules.put("nightly", cron("0 3 * * *"), "mail.send")
    for query in (
        "",
        "?task=greet",
        "?queue=mail&step=15m",
        "?schedule=nightly",
        "?task=greet&since=-2h&step=1h",
    ):
        found = await api.ok("GET", f"/stats{query}")
        assert found["total"]["outcomes"] == {"failed": 1, "succeeded": 1}, query
        assert found["total"]["wait"]["count"] == 2
        assert found["marks"][0]["detail"] == {"release": "1"}
    assert found["step"] == 3600
    assert len(found["points"]) in {3, 4}
    assert await api.ok("GET", "/stats/new-failures?release=1") == {"items": []}


async def test_what_cannot_be_told_is_refused(api: Api) -> None:
    for query, says in (
        ("?task=a&queue=b", "name one thing, not a task and a queue"),
        ("?since=3d&step=5m", "finer than what is kept"),
        ("?since=2999-01-01T00:00:00Z", "lies in the future"),
    ):
        assert says in (await api.refused(422, "GET", f"/stats{query}"))["detail"]
    assert "'9' has been seen" in (await api.refused(422, "GET", "/stats/new-failures?release=9"))["detail"]


async def test_those_who_are_bound_to_queues_see_figures_of_these_without_who_did_what(
    token_api: TokenApi, scheduler: Scheduler
) -> None:
    await count(scheduler, "succeeded")
    await scheduler.queues.pause("mail", by="ann")
    await scheduler.schedules.put("nightly", cron("0 3 * * *"), "mail.send", queue="mail")
    mail = token_api.with_token((await scheduler.tokens.add("m", queues=["mail"])).secret)
    found = (await mail.get(f"{BASE}/api/v1/stats?queue=mail")).json()
    assert (found["total"]["outcomes"], found["marks"]) == ({"succeeded": 1}, [])
    assert (await mail.get(f"{BASE}/api/v1/stats?schedule=nightly")).status_code == 200
    other = token_api.with_token((await scheduler.tokens.add("o", queues=["other"])).secret)
    answers = {}
    for query in ("?queue=mail", "?task=greet", "", "?schedule=nightly", "/new-failures?release=1"):
        answers[query] = (await other.get(f"{BASE}/api/v1/stats{query}")).status_code
    assert answers == {
        "?queue=mail": 403, "?task=greet": 403, "": 403, "?schedule=nightly": 404, "/new-failures?release=1": 403
    }  # fmt: skip
