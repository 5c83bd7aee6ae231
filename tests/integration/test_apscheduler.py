"""A lock around the tasks of another scheduler that runs in each of four web processes: no task runs twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.integration import apscheduler_app, ledger
from tests.integration.kit import until
from tests.integration.ledger import Entry, Ledger
from tools.servers.process import free_port

PROCESSES = 4
SECONDS = int(os.environ.get("DUETIME_APSCHEDULER_SECONDS", "6"))
"""How long the crons come, on each store."""


def crons(entries: list[Entry]) -> Counter[tuple[str, int]]:
    """Count the entries of each cron at each of its times."""
    return Counter((entry.job, entry.due_at) for entry in entries)


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.covers("lock-takeover-race")
async def test_each_cron_of_four_web_processes_runs_once_at_each_of_its_times(
    store_url: str, tmp_path: Path
) -> None:
    told, times = Ledger(tmp_path / "ledger"), SECONDS // apscheduler_app.PERIOD

    def over() -> bool:
        return len({entry.due_at for entry in told.entries("came")}) > times

    port = str(free_port())
    command = (
        "-m",
        "uvicorn",
        f"{apscheduler_app.__name__}:app",
        "--port",
        port,
        "--workers",
        str(PROCESSES),
    )
    environment = {**os.environ, ledger.VARIABLE: str(told.path), "LOCKS_URL": store_url}
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        await until(over, within=SECONDS + 40, what=(tmp_path / "log").read_text)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 20)
        # What it has started, if any of that is left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    came, ran = crons(told.entries("came")), crons(told.entries("ran"))
    assert len({entry.pid for entry in told.entries("came")}) == PROCESSES
    assert max(came.values()) == PROCESSES, "no race was seen"
    assert set(ran.values()) == {1}
    last = max(due for _, due in came)
    # At the last of the times, some were stopped before they had asked for the lock.
    assert {cron for cron in came if cron[1] < last} == {cron for cron in ran if cron[1] < last}
    assert len({name for name, _ in ran}) == apscheduler_app.CRONS
