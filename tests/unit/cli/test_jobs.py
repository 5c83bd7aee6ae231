from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from duetime.cli.jobs import JobFollower, RecentJobs
from duetime.errors import JobNotFound
from duetime.model.outcome import Failed, Released
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retry import fixed
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import finish, hire, put, take_one

AGAIN = fixed(1, 0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/jobs.db", clock=clock)
    await store.open()
    await hire(store, "w1")
    yield store
    await store.close()


async def stages(latest: RecentJobs) -> list[tuple[str, str]]:
    return [(job.id, job.state) for job in await latest.look()]


async def test_a_job_is_told_stage_by_stage_with_what_it_says(store: Store, clock: FakeClock) -> None:
    job_id = await put(store)
    follower = JobFollower(store, job_id)
    news = await follower.look()
    assert (news.job.state, news.moved, news.progressed, news.logs) == ("pending", True, False, [])
    assert not (await follower.look()).moved
    claim = await take_one(store)
    await store.report([Progress(claim.token, 0.5)], [NewLogPart(claim.token, 1, 1, "one")])
    news = await follower.look()
    assert (news.job.state, news.moved, news.progressed) == ("running", True, True)
    assert [part.text for part in news.logs] == ["one"]
    news = await follower.look()
    assert (news.moved, news.progressed, news.logs) == (False, False, [])
    await finish(store, claim, now=clock.now(), logs=(NewLogPart(claim.token, 1, 2, "two"),))
    news = await follower.look()
    assert (news.job.state, news.moved, news.progressed) == ("succeeded", True, False)
    assert [part.text for part in news.logs] == ["two"]


async def test_another_run_is_another_stage(store: Store, clock: FakeClock) -> None:
    follower = JobFollower(store, await put(store))
    claim = await take_one(store)
    await follower.look()
    await finish(store, claim, Released(), now=clock.now())
    await take_one(store)
    news = await follower.look()
    assert (news.job.state, news.moved) == ("running", True)


async def test_an_unknown_job_is_an_error(store: Store) -> None:
    with pytest.raises(JobNotFound):
        await JobFollower(store, "nothing").look()


async def test_the_first_look_finds_what_runs_and_nothing_that_ended_before(
    store: Store, clock: FakeClock
) -> None:
    await put(store)
    await finish(store, await take_one(store), now=clock.now())
    running = await put(store)
    await take_one(store)
    await put(store)
    clock.advance(1)
    latest = RecentJobs(store)
    assert await stages(latest) == [(running, "running")]
    assert await stages(latest) == []


async def test_jobs_are_told_when_they_start_go_back_and_end(store: Store, clock: FakeClock) -> None:
    latest = RecentJobs(store)
    assert await stages(latest) == []
    job_id = await put(store)
    assert await stages(latest) == [], "a job that waits is no news"
    claim = await take_one(store)
    assert await stages(latest) == [(job_id, "running")]
    await finish(store, claim, Failed(error="boom"), now=clock.now(), policy=AGAIN)
    assert await stages(latest) == [(job_id, "pending")]
    claim = await take_one(store)
    assert await stages(latest) == [(job_id, "running")]
    await finish(store, claim, now=clock.now())
    assert await stages(latest) == [(job_id, "succeeded")]
    assert await stages(latest) == []


async def test_a_job_that_is_held_for_its_due_time_has_not_started(store: Store, clock: FakeClock) -> None:
    latest = RecentJobs(store)
    await put(store, delay=5)
    await stages(latest)
    claim = await take_one(store, ahead=SECOND)
    assert await stages(latest) == []
    await store.mark_started([claim.token], clock.now())
    assert await stages(latest) == [(claim.job_id, "running")]


async def test_the_latest_comes_last(store: Store, clock: FakeClock) -> None:
    latest = RecentJobs(store)
    await stages(latest)
    first, second = await put(store), await put(store)
    one = await take_one(store, limit=1)
    two = await take_one(store, limit=1)
    await finish(store, two, now=clock.advance(1))
    await finish(store, one, now=clock.advance(1))
    assert await stages(latest) == [(second, "succeeded"), (first, "succeeded")]


async def test_the_end_of_an_old_job_is_not_missed_among_many_new_ones(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.cli.jobs._JOBS_PER_LOOK", 2)
    latest = RecentJobs(store)
    old = await put(store)
    claim = await take_one(store)
    assert await stages(latest) == [(old, "running")]
    for _ in range(3):
        await put(store, delay=60 * SECOND)
    await finish(store, claim, now=clock.now())
    assert await stages(latest) == [(old, "succeeded")]
