from __future__ import annotations

import subprocess
import sys

import pytest

import duetime

HEAVY = {"asyncpg", "fastapi", "pydantic", "redis", "sqlite3", "starlette", "uvicorn"}
DRIVERS = {"mariadb": "asyncmy", "postgresql": "asyncpg", "redis": "redis.asyncio", "sqlite": "sqlite3"}


@pytest.mark.covers("import-loads-drivers")
def test_importing_duetime_loads_no_driver_and_no_web_code() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import duetime, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert HEAVY.isdisjoint(loaded.stdout.split())


WORKER = """
import asyncio, sys
from duetime import Scheduler

scheduler = Scheduler(sys.argv[1])
ran = asyncio.Event()

@scheduler.task
async def note():
    ran.set()

async def main():
    async with scheduler, scheduler.worker():
        await note.enqueue()
        await ran.wait()
        await scheduler.store.schedules()  # As the worker does a moment later.
        print(*sys.modules)

asyncio.run(main())
"""
UNUSED = {
    "duetime.cli", "duetime.demo", "duetime.testing", "fastapi", "pydantic", "sqlalchemy", "starlette",
    "uvicorn",
}  # fmt: skip


def test_a_worker_loads_no_other_driver_and_none_of_the_edges(store_url: str) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", WORKER, store_url], check=True, capture_output=True, text=True
    )
    driver = DRIVERS[store_url.partition(":")[0]]
    others = {*DRIVERS.values()} - {driver}
    # What a driver loads for itself is not ours to spare.
    bare = subprocess.run(
        [sys.executable, "-c", f"import {driver}, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    spared = (UNUSED | others).difference(bare.stdout.split())
    assert spared.intersection(loaded.stdout.split()) == set()


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    asked = "import duetime; print(*(getattr(duetime, name).__name__ for name in duetime.__all__))"
    found = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    names = [name.rpartition(".")[2] for name in found.stdout.split()]
    # An alias has the name of what it stands for.
    assert [{"Annotated": "Secret"}.get(name, name) for name in names] == duetime.__all__
    assert dir(duetime) == sorted(duetime.__all__)


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'duetime' has no attribute 'Celery'"):
        duetime.Celery  # type: ignore[attr-defined]  # noqa: B018
