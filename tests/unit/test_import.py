from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncpg", "fastapi", "pydantic", "sqlite3", "starlette", "uvicorn"}


@pytest.mark.covers("import-loads-drivers")
def test_importing_duetime_loads_no_driver_and_no_web_code() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import duetime, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert HEAVY.isdisjoint(loaded.stdout.split())


IDLE_WORKER = """
import asyncio, sys
from duetime import Scheduler

scheduler = Scheduler(sys.argv[1])

async def main():
    async with scheduler, scheduler.worker():
        print(*sys.modules)

asyncio.run(main())
"""
UNUSED = {"email", "importlib.metadata", "importlib.resources", "multiprocessing", "tempfile", "zipfile"}


def test_a_worker_loads_nothing_that_it_does_not_use(store_url: str) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", IDLE_WORKER, store_url], check=True, capture_output=True, text=True
    )
    driver = "sqlite3" if store_url.startswith("sqlite") else "asyncpg"
    others = {"asyncpg", "sqlite3"} - {driver}
    assert (UNUSED | others).isdisjoint(loaded.stdout.split())
