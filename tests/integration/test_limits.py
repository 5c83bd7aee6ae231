"""Limits hold over real processes, and nobody waits for a limit that is not theirs."""

from __future__ import annotations

import time
from collections import defaultdict

import pytest

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.time import MILLISECOND
from tests.integration.kit import Fleet, until
from tests.integration.ledger import Entry

PROCESSES = 4
JOBS = 1_000
KEYS = 20
SLOW = 0
"""The customer whose first job takes as long as the test wants."""


def by_customer(entries: list[Entry], customers: dict[JobId, int]) -> dict[int, list[Entry]]:
    found: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.kind in ("start", "end"):
            found[customers[entry.job]].append(entry)
    return found


@pytest.mark.timeout(180)
@pytest.mark.covers("limit-exceeded", "limit-starves")
async def test_a_thousand_jobs_of_twenty_keys_run_one_at_a_time_for_each_and_none_waits_for_another(
    fleet: Fleet,
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start_many(PROCESSES, concurrency=10)
        begin = time.monotonic()
        slow = await app.serve.enqueue(SLOW, gate.path)
        await fleet.entry("start", job=slow.id)
        calls = [app.serve.call(number % KEYS) for number in range(1, JOBS)]
        handles = await app.scheduler.enqueue_many(calls)
        customers = {slow.id: SLOW} | {handle.id: n % KEYS for n, handle in enumerate(handles, 1)}
        others = [job_id for job_id, customer in customers.items() if customer != SLOW]
        records = await fleet.ended(app.scheduler.store, others, within=90)
        seconds = time.monotonic() - begin
        story = by_customer(fleet.ledger.entries(), customers)
        assert [entry.kind for entry in story[SLOW]] == ["start"], "it waits, and its followers for it alone"
        gate.open()
        records |= await fleet.ended(app.scheduler.store, list(customers), within=60)

    print(f"{len(others) / seconds:.0f} jobs per second")  # noqa: T201 - a figure to read, not to judge
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    story = by_customer(fleet.ledger.entries(), customers)
    assert sum(map(len, story.values())) == 2 * JOBS
    for entries in story.values():
        pairs = list(zip(entries[::2], entries[1::2], strict=True))
        assert {(first.kind, last.kind) for first, last in pairs} == {("start", "end")}, "two at once"
        assert all(first.job == last.job for first, last in pairs)
    assert len({entry.pid for entry in fleet.ledger.entries("start")}) > 1, (
        "no race between processes was seen"
    )


@pytest.mark.timeout(120)
@pytest.mark.covers("limit-exceeded")
async def test_a_rate_holds_in_every_window_over_two_processes(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start_many(2, concurrency=10)
        handles = await app.scheduler.enqueue_many([app.call_service.call() for _ in range(60)])
        await fleet.ended(app.scheduler.store, [handle.id for handle in handles])
    passed = sorted(entry.due_at for entry in fleet.ledger.entries("passed"))
    assert len(passed) == 60
    spans = [last - first for first, last in zip(passed, passed[10:], strict=False)]
    assert min(spans) >= 200 * MILLISECOND
    # Not slower than asked for, either: each window is used before long.
    assert sorted(spans)[len(spans) // 2] < 10 * 200 * MILLISECOND


@pytest.mark.timeout(120)
@pytest.mark.covers("limit-leaks")
async def test_the_place_of_a_killed_worker_is_taken_by_the_next_job(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        worker = await fleet.start()
        first = await app.serve.enqueue(1, gate.path)
        await fleet.entry("start", job=first.id)
        second = await app.serve.enqueue(1)
        await fleet.start()
        worker.kill()
        worker.reap()
        gate.open()
        records = await fleet.ended(app.scheduler.store, [first.id, second.id])
    assert {record.state for record in records.values()} == {State.SUCCEEDED}
    assert records[first.id].crashes == 1


async def test_jobs_with_and_without_limits_take_turns_in_one_slot(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        calls = [call for number in range(50) for call in (app.serve.call(number), app.note.call())]
        handles = await app.scheduler.enqueue_many(calls)
        await fleet.start(concurrency=1)
        await fleet.ended(app.scheduler.store, [handle.id for handle in handles])
    tasks = [entry.task for entry in fleet.ledger.entries("start")]
    # Of either kind there are more than that, so whichever went first every time would be alone here.
    assert {"serve", "note"} == set(tasks[:20]), "one kind had to wait for the other"


async def test_a_limited_queue_is_served_by_workers_that_know_of_no_limit(fleet: Fleet) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with app.scheduler:
        await fleet.start(concurrency=10)
        await app.scheduler.queues.limit("default", 2)
        ids = [(await app.wait_for.enqueue(gate.path)).id for _ in range(5)]
        await until(lambda: len(fleet.ledger.entries("start")) == 2, what="two starts")
        gate.open()
        await fleet.ended(app.scheduler.store, ids)
    running, most = 0, 0
    for entry in fleet.ledger.entries():
        if entry.task == "wait_for":
            running += {"start": 1, "end": -1}[entry.kind]
            most = max(most, running)
    assert most == 2
