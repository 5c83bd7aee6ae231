"""Threads that may wait store jobs beside event loops and worker processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter

import pytest

from duetime import Scheduler, current_job
from duetime.errors import TransactionMisused
from duetime.model.job import JobId
from duetime.model.states import State
from tests.integration.kit import Fleet
from tests.integration.nursery import ROOT
from tests.integration.tasks import App

CALLERS = 8
JOBS = 25


def call(app: App) -> list[JobId]:
    """Enqueue jobs one after the other, and then a batch."""
    alone = [app.note.sync.enqueue() for _ in range(JOBS)]
    together = app.scheduler.sync.enqueue_many([app.note.call() for _ in range(JOBS)])
    return [job.id for job in (*alone, *together)]


async def test_jobs_of_many_threads_are_stored_once_and_run_once_while_workers_are_at_it(
    fleet: Fleet,
) -> None:
    await fleet.start_many(2)
    app = fleet.app()
    async with app.scheduler, app.scheduler.worker():
        listed = await asyncio.gather(*(asyncio.to_thread(call, app) for _ in range(CALLERS)))
        ids = [job_id for ids in listed for job_id in ids]
        assert len(set(ids)) == CALLERS * 2 * JOBS
        ended = await fleet.ended(app.scheduler.store, ids)
    assert {job.state for job in ended.values()} == {State.SUCCEEDED}
    assert Counter(entry.job for entry in fleet.ledger.entries("start")) == Counter(ids)


async def test_an_idle_worker_of_another_process_hears_of_what_a_blocking_caller_stores(fleet: Fleet) -> None:
    await fleet.start()
    app = fleet.app()
    async with app.scheduler:
        for _ in range(3):
            job = await asyncio.to_thread(app.note.sync.enqueue)
            await fleet.entry("start", job=job.id)


def test_threads_without_any_event_loop_share_one_scheduler(store_url: str) -> None:
    script = """
import sys, threading
from tests.integration.tasks import App

app = App(sys.argv[1])
callers = [threading.Thread(target=lambda: [app.note.sync.enqueue() for _ in range(25)]) for _ in range(8)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
print(sum(app.scheduler.sync.queues.counts().values()))
"""
    said = subprocess.run(
        [sys.executable, "-c", script, store_url],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.strip() == b"200"


async def test_a_plain_function_may_not_wait_for_its_own_transaction(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    refused: list[str] = []

    @scheduler.task(name="other")
    def other() -> None: ...

    @scheduler.task(name="careless")
    def careless() -> None:
        with current_job().transaction(), pytest.raises(TransactionMisused) as caught:
            other.sync.enqueue()
        refused.append(str(caught.value))

    async with scheduler, scheduler.worker():
        await (await careless.enqueue()).result(timeout=20)
    assert "no one else can write" in refused[0]
