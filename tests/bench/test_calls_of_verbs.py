"""What each verb of the hot path costs on Redis, to the call: a list here may only become shorter."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime.model.job import Key
from duetime.model.outcome import Failed, Outcome, Succeeded
from duetime.model.retry import retry_policy
from duetime.model.worker import WorkerStats
from duetime.stores.base import PulseQuery
from duetime.testing.conformance.kit import LEASE, job, rescue, settlement, take
from tests.bench.taps import JOBS, Tapped, tapping


@pytest.fixture
async def tap(redis_url: str) -> AsyncIterator[Tapped]:
    async with tapping(redis_url) as tap:
        yield tap


@pytest.mark.parametrize("count", [1, JOBS])
async def test_jobs_are_stored_by_one_call(tap: Tapped, count: int) -> None:
    await tap.store.enqueue([job() for _ in range(count)])
    assert tap.names() == ["enqueue"]


async def test_jobs_under_keys_that_nobody_has_are_stored_by_one_call(tap: Tapped) -> None:
    await tap.store.enqueue([job(key=Key(value=f"k{number}")) for number in range(JOBS)])
    assert tap.names() == ["enqueue"]


@pytest.mark.parametrize("count", [0, JOBS])
async def test_a_claim_is_one_call(tap: Tapped, count: int) -> None:
    await tap.store.enqueue([job() for _ in range(count)])
    tap.sent.clear()
    assert len(await take(tap.store)) == count
    assert tap.names() == ["claim"]


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(), Succeeded('{"rows":3}'), Failed(error="boom", traceback="")],
    ids=["success", "result", "failure"],
)
@pytest.mark.parametrize("retries", [0, 3])
async def test_a_batch_is_settled_by_one_call(tap: Tapped, outcome: Outcome, retries: int) -> None:
    claims, again = await tap.claimed(), retry_policy(retries)
    settled = [settlement(claim, outcome, now=claim.claimed_at, policy=again) for claim in claims]
    assert len(await tap.store.settle(settled)) == JOBS
    assert tap.names() == ["settle"]


async def test_the_starts_of_a_batch_are_marked_by_one_call(tap: Tapped) -> None:
    claims = await tap.claimed()
    await tap.store.mark_started([claim.token for claim in claims], claims[0].claimed_at)
    assert tap.names() == ["mark_started"]


async def test_a_worker_that_waits_asks_once_when_to_look_again(tap: Tapped) -> None:
    await tap.store.next_due(["default", "mail"], ["greet"])
    assert tap.names() == ["next_due"]


@pytest.mark.parametrize("held", [0, JOBS])
async def test_a_heartbeat_is_one_call(tap: Tapped, held: int) -> None:
    if held:
        await tap.claimed()
    wants = PulseQuery(queues=("default",), tasks=("greet",), schedules=True, orphans=True)
    assert len((await tap.store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)).held) == held
    assert tap.names() == ["pulse"]


async def test_a_sweep_that_finds_nothing_is_one_call(tap: Tapped) -> None:
    assert await rescue(tap.store, "w1") == []
    assert tap.names() == ["forsaken"]
