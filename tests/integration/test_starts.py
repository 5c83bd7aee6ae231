"""Processes that start at once, and processes that fork."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from duetime.model.states import State
from tests.integration import ledger
from tests.integration.kit import Fleet
from tests.integration.nursery import ROOT

PROCESSES = 8


@pytest.mark.no_tables
@pytest.mark.timeout(120)
@pytest.mark.covers("cold-start-race")
async def test_many_processes_that_start_on_an_empty_database_agree(fleet: Fleet) -> None:
    workers = await fleet.start_many(PROCESSES, ticking=True)
    app = fleet.app()
    async with app.scheduler:
        store = app.scheduler.store
        assert [schedule.name for schedule in await store.schedules()] == ["tick"]
        assert (await store.schedules())[0].rev == 1, "it was written more than once"
        assert {worker.pid for worker in await store.workers()} == {worker.pid for worker in workers}
        job = await app.note.enqueue()
        assert (await fleet.ended(store, [job.id]))[job.id].state is State.SUCCEEDED
    assert [worker.errors for worker in workers] == [[]] * PROCESSES


@pytest.mark.covers("identity-after-fork")
@pytest.mark.parametrize("opened", ["async", "sync"])
async def test_a_forked_process_opens_anew_and_has_an_identity_of_its_own(fleet: Fleet, opened: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.forker",
        fleet.url,
        opened,
        cwd=ROOT,
        env=os.environ | {ledger.VARIABLE: str(fleet.ledger.path)},
    )
    try:
        async with asyncio.timeout(40):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
    refused, worked = fleet.ledger.entries("refused"), fleet.ledger.entries("worked")
    assert len(refused) == 1
    assert len(worked) == 2
    assert worked[0].pid == refused[0].pid != worked[1].pid
    assert worked[0].job != worked[1].job


async def test_a_script_that_enqueues_without_a_loop_ends_in_silence(fleet: Fleet) -> None:
    script = "import sys; from tests.integration.tasks import App; App(sys.argv[1]).note.sync.enqueue()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, fleet.url, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), 40)
    assert process.returncode == 0
    assert b"Traceback" not in said
