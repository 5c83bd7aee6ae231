"""A web application in several processes, each of which runs APScheduler; one of them does what a cron asks for."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from fastapi import FastAPI

from duetime.locks import open_lock
from tests.integration import ledger

LOCKS = os.environ.get("LOCKS_URL", "")
CRONS = 12
PERIOD = 2


async def run_once(name: str, period: int, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work in one of the processes whose cron has come, once for each due time."""
    due = int(time.time()) // period * period
    if await open_lock(LOCKS, f"{name}:{due}", ttl=60).acquire(timeout=0, renew=False):
        await work()


async def report(name: str) -> None:
    """Write down that the cron has come to this process, and do what only one of them may."""
    due = int(time.time()) // PERIOD * PERIOD

    async def work() -> None:
        ledger.write("ran", job=name, due_at=due)

    ledger.write("came", job=name, due_at=due)
    await run_once(name, PERIOD, work)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Run the crons for as long as the process serves."""
    scheduler: Any = AsyncIOScheduler(timezone=UTC)
    for number in range(CRONS):
        scheduler.add_job(report, "cron", second=f"*/{PERIOD}", args=(f"report-{number}",))
    scheduler.start()
    yield
    scheduler.shutdown(wait=False)


app = FastAPI(lifespan=lifespan)
