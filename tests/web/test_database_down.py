from __future__ import annotations

import pytest

from duetime.web import make_api
from tests.support.proxy import Proxy
from tests.web.kit import BASE, TokenApi, make_scheduler, store_jobs, who
from tests.web.streams import reading


@pytest.mark.timeout(120)
async def test_while_the_database_is_away_that_is_the_answer_and_then_all_goes_on(postgres_url: str) -> None:
    proxy = Proxy("127.0.0.1", int(postgres_url.rpartition(":")[2].partition("/")[0]))
    scheduler = make_scheduler(proxy.url(postgres_url))
    async with scheduler:
        token = (await scheduler.tokens.add("ada", role="admin")).secret
        async with TokenApi(make_api(scheduler), token) as api:
            await api.ok("POST", "/jobs", json={"task": "mail.send"})
            proxy.refuse()
            for method, path, body in (
                ("GET", "/jobs", None),
                ("POST", "/jobs", {"task": "mail.send"}),
                ("POST", "/queues/mail/pause", None),
            ):
                refused = await api.request(method, path, json=body)
                assert refused.status_code == 503, refused.text
                assert int(refused.headers["retry-after"]) >= 1
                assert refused.json()["type"] == "urn:duetime:StoreUnavailable"
            # Nor can anyone be told from others.
            assert (await api.with_token("dt_unknown").get("/jobs")).status_code == 503
            assert (await api.get(f"{BASE}/live")).status_code == 200
            assert (await api.get(f"{BASE}/ready")).status_code == 503
            proxy.accept()
            assert (await api.get(f"{BASE}/ready")).status_code == 200
            # Nothing half done.
            assert len((await api.ok("GET", "/jobs"))["items"]) == 1
            assert not (await api.ok("GET", "/queues/mail"))["paused"]
    proxy.close()


async def test_an_api_whose_database_is_away_from_the_start_says_so(postgres_url: str) -> None:
    proxy = Proxy("127.0.0.1", int(postgres_url.rpartition(":")[2].partition("/")[0]))
    proxy.refuse()
    scheduler = make_scheduler(proxy.url(postgres_url))
    async with TokenApi(make_api(scheduler), "dt_any") as api:
        assert (await api.get(f"{BASE}/live")).status_code == 200
        assert (await api.get(f"{BASE}/ready")).status_code == 503
        problem = await api.refused(503, "GET", "/jobs")
        # Nothing that signs in to the database.
        assert "password" not in problem["detail"]
        proxy.accept()
        assert (await api.get(f"{BASE}/ready")).status_code == 200
        await api.refused(401, "GET", "/jobs")
    await scheduler.close()
    proxy.close()


@pytest.mark.timeout(120)
async def test_a_stream_says_that_the_database_is_away_and_goes_on_when_it_is_back(postgres_url: str) -> None:
    proxy = Proxy("127.0.0.1", int(postgres_url.rpartition(":")[2].partition("/")[0]))
    scheduler = make_scheduler(proxy.url(postgres_url))
    app = make_api(scheduler, authenticate=who)
    async with scheduler, reading(app) as stream:
        proxy.refuse()
        assert "cannot be reached" in (await stream.next("down")).said["reason"]
        # One that comes now is told at once.
        async with reading(app, begun=False) as other:
            assert (await other.next()).kind == "down"
            proxy.accept()
            await stream.next("resync")
            await other.next("resync")
            (job_id,) = await store_jobs(scheduler, 1)
            await stream.job(job_id)
            await other.job(job_id)
    proxy.close()
