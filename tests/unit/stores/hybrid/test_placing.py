from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from duetime.errors import SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.limits import UNLIMITED, Gate
from duetime.model.queues import StoredQueue
from duetime.model.routes import Route, Tier
from duetime.model.time import MINUTE
from duetime.stores.base import Store
from duetime.stores.hybrid import placing
from duetime.stores.hybrid.placing import JobPlaces
from duetime.testing import FakeClock
from tests.integration.kit import until

NEAR, FAR = Tier.NEAR, Tier.FAR
DOWN = StoreUnavailable("the cache is down")


class Near:
    """A near store that is asked whether it takes changes, and may refuse."""

    def __init__(self) -> None:
        self.asked = 0
        self.error: Exception | None = None

    async def report(self, progress: object, logs: object) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error


class Far:
    """A far store that knows of queues, and may be silent."""

    def __init__(self) -> None:
        self.looks = 0
        self.settings: list[StoredQueue] = []
        self.error: Exception | None = None
        self.silence = asyncio.Event()
        self.silence.set()

    async def queues(self) -> list[StoredQueue]:
        self.looks += 1
        await self.silence.wait()
        if self.error is not None:
            raise self.error
        return self.settings


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(placing, "time", clock)
    return clock


class Placed:
    """Where jobs go, and what they might be stored in."""

    def __init__(self) -> None:
        self.near, self.far = Near(), Far()
        tiers = {NEAR: cast("Store", self.near), FAR: cast("Store", self.far)}
        routes = [Route(NEAR, MINUTE)]
        self.places = JobPlaces(tiers, routes, clock=FakeClock(), far_queues=["billing"])

    async def tier(self, **changes: Any) -> Tier:
        return await self.places.choose([job(**changes)])


@pytest_asyncio.fixture
async def placed(time: Time) -> AsyncIterator[Placed]:
    placed = Placed()
    yield placed
    await placed.places.close()


def job(**changes: Any) -> NewJob:
    return NewJob(id=new_job_id(), task="greet", payload="{}")._replace(**changes)


@pytest.mark.covers("stored-in-two")
async def test_before_the_first_job_and_after_a_pause_the_near_store_is_asked_whether_it_takes_jobs(
    placed: Placed, time: Time
) -> None:
    assert (await placed.tier(), placed.near.asked) == (NEAR, 1)
    time.seconds += 0.9
    assert (await placed.tier(), placed.near.asked) == (NEAR, 1)
    time.seconds += 0.2
    assert (await placed.tier(), placed.near.asked) == (NEAR, 2)


async def test_what_it_has_taken_a_moment_ago_is_an_answer_as_well(placed: Placed, time: Time) -> None:
    stored = job()
    await placed.places.choose([stored])
    time.seconds += 0.9
    with placed.places.storing([stored], NEAR):
        """It answers."""
    time.seconds += 0.9
    assert (await placed.tier(), placed.near.asked) == (NEAR, 1)


async def test_jobs_that_go_far_ask_nothing_of_the_near_store(placed: Placed) -> None:
    assert await placed.tier(delay=2 * MINUTE) is FAR
    assert (placed.near.asked, placed.far.looks) == (0, 0)


@pytest.mark.parametrize("error", [DOWN, StoreUnusable("no"), SchemaMismatch("old")])
@pytest.mark.covers("near-store-down")
async def test_while_the_near_store_takes_no_jobs_they_go_far_and_it_is_said_once(
    placed: Placed, error: StoreError, caplog: pytest.LogCaptureFixture
) -> None:
    placed.near.error = error
    assert [await placed.tier() for _ in range(3)] == [FAR] * 3
    [said] = [record.getMessage() for record in caplog.records]
    assert said == f"the near store takes no jobs, and until it does all go far: {error}"


@pytest.mark.covers("near-store-down")
async def test_it_is_used_again_once_it_answers(
    placed: Placed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    waits: list[int] = []

    def at_once(failures: int) -> float:
        waits.append(failures)
        return 0

    monkeypatch.setattr(placing, "backoff", at_once)
    placed.near.error = DOWN
    assert await placed.tier() is FAR
    await until(lambda: placed.near.asked >= 4, what="tries")
    assert await placed.tier() is FAR
    placed.near.error = None

    async def is_used() -> bool:
        return await placed.tier() is NEAR

    await until(is_used, what="its return")
    assert waits[:3] == [0, 1, 2], "it is asked less and less often"
    assert caplog.messages[-1] == "the near store takes jobs again"


@pytest.mark.covers("stored-in-two")
async def test_a_job_that_may_be_stored_although_no_answer_came_is_sent_to_no_other_store(
    placed: Placed,
) -> None:
    sent = job()
    with pytest.raises(StoreUnavailable), placed.places.storing([sent], NEAR):
        raise DOWN
    placed.near.error = DOWN
    assert await placed.tier() is FAR, "others go far at once"
    assert await placed.places.choose([sent]) is NEAR


@pytest.mark.parametrize("end", [asyncio.CancelledError(), StoreError("a value"), None])
@pytest.mark.covers("stored-in-two")
async def test_whatever_became_of_a_call_it_is_made_again_where_it_was_made(
    placed: Placed, end: BaseException | None
) -> None:
    sent = job(delay=2 * MINUTE)
    assert await placed.places.choose([sent]) is FAR
    storing = placed.places.storing([sent], FAR)
    storing.__enter__()
    storing.__exit__(type(end) if end else None, end, None)
    assert await placed.places.choose([sent._replace(delay=0)]) is FAR


async def test_a_value_that_is_refused_is_no_outage(placed: Placed) -> None:
    await placed.tier()
    with pytest.raises(StoreError), placed.places.storing([job()], NEAR):
        raise StoreError("it has a NUL")
    assert await placed.tier() is NEAR


async def test_only_the_last_jobs_are_remembered(placed: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "_MOST_REMEMBERED", 2)
    first, *others = (job(delay=2 * MINUTE) for _ in range(3))
    for one in (first, *others):
        with placed.places.storing([one], FAR):
            """It is stored."""
    assert await placed.places.choose([first._replace(delay=0)]) is NEAR
    assert await placed.places.choose([others[0]._replace(delay=0)]) is FAR


async def test_many_at_once_ask_once(placed: Placed) -> None:
    assert await asyncio.gather(*(placed.tier() for _ in range(50))) == [NEAR] * 50
    assert (placed.near.asked, placed.far.looks) == (1, 1)


def setting(name: str, **changes: Any) -> StoredQueue:
    return StoredQueue(
        **{"name": name, "paused_at": None, "paused_reason": None, "limit": UNLIMITED, **changes}
    )


async def test_jobs_of_queues_that_are_limited_paused_or_named_go_far(placed: Placed, time: Time) -> None:
    placed.far.settings = [
        setting("limited", limit=Gate(1)),
        setting("paused", paused_at=1),
        setting("was_limited"),
    ]
    queues = ["billing", "limited", "paused", "was_limited", "default"]
    assert [await placed.tier(queue=queue) for queue in queues] == [FAR, FAR, FAR, NEAR, NEAR]
    placed.far.settings = []
    assert await placed.tier(queue="limited") is FAR
    time.seconds += 1.1
    assert await placed.tier(queue="limited") is NEAR


@pytest.mark.parametrize("trouble", ["silent", "down"])
@pytest.mark.covers("far-store-down")
async def test_a_far_store_in_trouble_keeps_no_job_from_the_near_one(
    placed: Placed, time: Time, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "_LONGEST_LOOK", 0.01)
    placed.far.settings = [setting("limited", limit=Gate(1))]
    await placed.tier()
    time.seconds += 1.1
    if trouble == "silent":
        placed.far.silence.clear()
    else:
        placed.far.error = DOWN
    assert await placed.tier() is NEAR
    assert await placed.tier(queue="limited") is FAR, "what was known last counts"
