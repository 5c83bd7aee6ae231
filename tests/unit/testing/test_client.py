"""A web application under `TestClient`, whose event loop is in another thread than the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from duetime import Scheduler, every
from duetime.model.time import SystemClock
from duetime.scheduler.task import AsyncTask
from duetime.testing import FakeClock, blocking, inline, sandbox


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("postgresql://nobody@127.0.0.1:1/nowhere")


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def remind(scheduler: Scheduler, ran: list[str]) -> AsyncTask[[str], str]:
    @scheduler.task(name="remind")
    async def remind(name: str) -> str:
        ran.append(name)
        return f"reminded {name}"

    return remind


def with_lifespan(scheduler: Scheduler) -> FastAPI:
    return FastAPI(lifespan=scheduler.lifespan)


def with_one_of_its_own(scheduler: Scheduler) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with scheduler, scheduler.worker() as worker:
            assert worker.stats().running == 0
            yield

    return FastAPI(lifespan=lifespan)


@pytest.fixture(params=[with_lifespan, with_one_of_its_own])
def app(request: pytest.FixtureRequest, scheduler: Scheduler, remind: AsyncTask[[str], str]) -> FastAPI:
    make: Callable[[Scheduler], FastAPI] = request.param
    app = make(scheduler)

    @app.put("/reminders/{name}")
    async def put(name: str) -> str:
        return (await remind.options(delay="1h").enqueue(name)).id

    @app.put("/plain/{name}")
    def put_plain(name: str) -> str:
        return remind.options(delay="1h").sync.enqueue(name).id

    @app.put("/now/{name}")
    async def put_now(name: str) -> str:
        return await (await remind.enqueue(name)).result(timeout=10)

    return app


@pytest.mark.parametrize("path", ["/reminders/Ann", "/plain/Ann"])
def test_a_delayed_job_runs_when_the_test_has_let_its_time_come(
    scheduler: Scheduler, app: FastAPI, remind: AsyncTask[[str], str], ran: list[str], path: str
) -> None:
    clock = FakeClock()
    with sandbox(scheduler, clock=clock), TestClient(app) as client:
        job_id = client.put(path).json()
        blocking.assert_enqueued(scheduler, remind, "Ann")
        assert blocking.drain(scheduler) == []
        clock.advance("1h")
        [job] = blocking.drain(scheduler)
        assert (job.id, job.result, ran) == (job_id, "reminded Ann", ["Ann"])


def test_its_workers_leave_what_is_due_to_the_test_however_far_the_time_is(
    scheduler: Scheduler, app: FastAPI, ran: list[str]
) -> None:
    clock = FakeClock()
    with sandbox(scheduler, clock=clock), TestClient(app) as client:
        client.put("/reminders/Ann")
        clock.advance("30d")  # Far beyond the lease of a worker.
        client.put("/reminders/Bob")
        assert ran == []
        assert scheduler.sync.workers.list() == []
        assert len(blocking.drain(scheduler, until="1h")) == 2


def test_schedules_are_there_from_the_start_of_the_application(
    scheduler: Scheduler, app: FastAPI, ran: list[str]
) -> None:
    @scheduler.schedule(every("1h"))
    @scheduler.task(name="tick")
    async def tick() -> None:
        ran.append("tick")

    with sandbox(scheduler), TestClient(app):
        assert [schedule.name for schedule in scheduler.sync.schedules.list()] == [tick.name]
        blocking.drain(scheduler, until="3h")
    assert ran == ["tick"] * 3


def test_an_endpoint_that_waits_for_a_result_gets_it_inline(scheduler: Scheduler, app: FastAPI) -> None:
    with sandbox(scheduler), inline(scheduler), TestClient(app) as client:
        assert client.put("/now/Ann").json() == "reminded Ann"


def test_with_a_real_clock_its_worker_runs_what_is_due(scheduler: Scheduler, app: FastAPI) -> None:
    with sandbox(scheduler, clock=SystemClock()), TestClient(app) as client:
        assert client.put("/now/Ann").json() == "reminded Ann"
