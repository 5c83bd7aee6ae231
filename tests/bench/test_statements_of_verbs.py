"""What each verb of the hot path sends, to the statement: a list here may only become shorter."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime.model.outcome import Failed, Outcome, Succeeded
from duetime.model.retry import retry_policy
from duetime.model.worker import WorkerStats
from duetime.stores.base import PulseQuery
from duetime.testing.conformance.kit import LEASE, job, rescue, settlement, take
from tests.bench.taps import JOBS, Tapped, tapping


@pytest.fixture
async def tap(hearing_sql_url: str) -> AsyncIterator[Tapped]:
    async with tapping(hearing_sql_url) as tap:
        yield tap


async def test_one_job_is_stored_by_one_statement(tap: Tapped) -> None:
    await tap.store.enqueue([job()])
    assert tap.names() in (["enqueue_one"], ["enqueue_one_fresh"])


async def test_many_jobs_of_a_kind_are_stored_by_one_statement(tap: Tapped) -> None:
    await tap.store.enqueue([job() for _ in range(JOBS)])
    assert tap.names() in (["enqueue_alike"], ["enqueue_alike_fresh"])


async def test_many_jobs_of_a_kind_with_due_times_of_their_own_are_stored_by_one_statement(
    tap: Tapped,
) -> None:
    await tap.store.enqueue([job(due_at=number) for number in range(JOBS)])
    assert tap.names() == ["enqueue_alike"]


async def test_many_jobs_of_several_kinds_are_stored_by_one_statement(tap: Tapped) -> None:
    await tap.store.enqueue([job(priority=number % 3) for number in range(JOBS)])
    assert tap.names() == ["enqueue"]


async def test_many_jobs_with_terms_of_their_own_are_stored_by_one_statement(tap: Tapped) -> None:
    await tap.store.enqueue([job(expires_at=number) for number in range(JOBS)])
    assert tap.names() == ["enqueue"]


async def test_a_batch_is_claimed_by_one_statement_on_postgresql_and_by_two_elsewhere(tap: Tapped) -> None:
    await tap.store.enqueue([job() for _ in range(JOBS)])
    tap.sent.clear()
    assert len(await take(tap.store)) == JOBS
    assert tap.names() == (["claim"] if tap.engine == "postgresql" else ["claim", "take"])


async def test_a_claim_that_finds_nothing_is_one_statement(tap: Tapped) -> None:
    assert await take(tap.store) == []
    assert tap.names() == ["claim"]


@pytest.mark.parametrize(
    ("outcome", "names"),
    [
        (Succeeded(), ["succeed"]),
        (Succeeded('{"rows":3}'), ["succeed"]),
        (Failed(error="boom", traceback=""), ["settle"]),
    ],
    ids=["success", "result", "failure"],
)
async def test_a_batch_is_settled_by_one_statement(tap: Tapped, outcome: Outcome, names: list[str]) -> None:
    claims = await tap.claimed()
    settled = [settlement(claim, outcome, now=claim.claimed_at) for claim in claims]
    assert len(await tap.store.settle(settled)) == JOBS
    assert tap.names() == names


async def test_tries_that_are_followed_by_others_cost_two_statements_more(tap: Tapped) -> None:
    claims, again = await tap.claimed(), retry_policy(3)
    failed = Failed(error="boom", traceback="")
    settled = [settlement(claim, failed, now=claim.claimed_at, policy=again) for claim in claims]
    assert len(await tap.store.settle(settled)) == JOBS
    assert tap.names() == ["holders", "settle", "add_attempts"]


async def test_the_starts_of_a_batch_are_marked_by_one_statement(tap: Tapped) -> None:
    claims = await tap.claimed()
    await tap.store.mark_started([claim.token for claim in claims], claims[0].claimed_at)
    assert tap.names() == ["mark_started"]


async def test_a_worker_that_waits_asks_once_when_to_look_again(tap: Tapped) -> None:
    await tap.store.next_due(["default", "mail"], ["greet"])
    assert tap.names() == ["next_due"]


async def test_a_heartbeat_is_one_statement_and_two_while_the_worker_holds_jobs(tap: Tapped) -> None:
    wants = PulseQuery(queues=("default",), tasks=("greet",), schedules=True, orphans=True)
    assert (await tap.store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)).alive
    assert tap.names() == ["pulse"]
    await tap.claimed()
    assert (await tap.store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)).alive
    assert tap.names() == ["pulse", "held_by"]


async def test_a_sweep_that_finds_nothing_is_one_statement(tap: Tapped) -> None:
    assert await rescue(tap.store, "w1") == []
    assert tap.names() == ["forsaken"]
