"""Transfers whose worker is killed at each of their steps: `python -m tests.integration.exactly_once '{"url": ...}'`.

Each worker is forked from this process, which has imported everything, so that two hundred lives take seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duetime import Depends, Scheduler, current_job
from duetime.failpoints import arm, failpoint
from tests.integration.callers import of_alchemy
from tests.integration.effects import run
from tests.integration.kit import until
from tests.support.mariadb import connected

STEPS: Final = ("started", "begun", "debited", "credited", "noted", "before:transaction", "after:transaction")
"""Where a transfer's first worker dies; the last two are right before and right after the commit."""
CARELESS_STEPS: Final = ("started", "begun", "debited", "credited", "noted", "committed")


async def move(connection: Any, source: int, target: int, amount: int) -> None:
    """Transfer money and write down which job did."""
    failpoint("begun")
    await run(connection, f"UPDATE accounts SET balance = balance - {amount} WHERE id = {source}")
    failpoint("debited")
    await run(connection, f"UPDATE accounts SET balance = balance + {amount} WHERE id = {target}")
    failpoint("credited")
    await run(connection, f"INSERT INTO transfers (job) VALUES ('{current_job().id}')")
    failpoint("noted")


def transfer_in(session: Session, source: int, target: int, amount: int) -> None:
    """Do what `move` does, in a session."""
    failpoint("begun")
    session.execute(sa.text(f"UPDATE accounts SET balance = balance - {amount} WHERE id = {source}"))
    failpoint("debited")
    session.execute(sa.text(f"UPDATE accounts SET balance = balance + {amount} WHERE id = {target}"))
    failpoint("credited")
    session.execute(sa.text(f"INSERT INTO transfers (job) VALUES ('{current_job().id}')"))
    failpoint("noted")


def die_at(step: str) -> None:
    """Have the process killed at a step, unless it was before."""
    arm(f"{step}:kill" if current_job().attempt == 1 else None)
    failpoint("started")


class Bank:
    """A scheduler with the task done right, and the same task done wrong."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.scheduler = Scheduler(url)

        @self.scheduler.task(name="transfer")
        async def transfer(source: int, target: int, amount: int, step: str) -> None:
            die_at(step)
            async with current_job().transaction() as tx:
                await move(tx.connection, source, target, amount)

        @self.scheduler.task(name="careless")
        async def careless(source: int, target: int, amount: int, step: str) -> None:
            """Transfer in a transaction of its own, and let the worker record the success afterwards."""
            die_at(step)
            async with self.connected() as connection:
                await run(connection, "BEGIN")
                await move(connection, source, target, amount)
                await run(connection, "COMMIT")
            failpoint("committed")

        @self.scheduler.task(name="by_session")
        def by_session(source: int, target: int, amount: int, step: str) -> None:
            """Transfer in a session of its own, in a thread."""
            die_at(step)
            engine = sa.create_engine(of_alchemy(self.url))
            with Session(engine) as session, current_job().transaction(tx=session):
                transfer_in(session, source, target, amount)
            engine.dispose()

        @self.scheduler.task(name="by_async_session")
        async def by_async_session(
            source: int, target: int, amount: int, step: str, session: AsyncSession = Depends(self.session)
        ) -> None:
            """Transfer in a session that the job depends on."""
            die_at(step)
            await session.run_sync(transfer_in, source, target, amount)

        self.transfer = transfer
        self.careless = careless
        self.by_session = by_session
        self.by_async_session = by_async_session

    async def session(self) -> AsyncIterator[AsyncSession]:
        """Give a job a session that is committed together with the job's end."""
        engine = create_async_engine(of_alchemy(self.url, asynchronous=True))
        async with AsyncSession(engine) as session, current_job().transaction(tx=session):
            yield session
        await engine.dispose()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Connect to the database, without the scheduler's help."""
        if self.url.startswith("sqlite"):
            file = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)
            try:
                yield file
            finally:
                file.close()
            return
        if self.url.startswith("mariadb"):
            async with connected(self.url) as other:
                yield other
            return
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(self.url)
        try:
            yield connection
        finally:
            await connection.close()


async def work(url: str) -> None:
    """Be a worker until nothing is left to do."""
    bank = Bank(url)

    async def all_ended() -> bool:
        counts = await bank.scheduler.queues.counts()
        return all(state.terminal for (_, state), count in counts.items() if count)

    async with bank.scheduler, bank.scheduler.worker(concurrency=1, grace=1):
        await until(all_ended, within=60, what="the end of all jobs")


def live(url: str) -> int:
    """Fork a worker and return how it ended: 0, or less than 0 when it was killed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        asyncio.run(work(url))
    except BaseException:  # noqa: BLE001 -- a forked child must never return
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Let workers live one after the other until one is left alive, and print how many were killed."""
    url = json.loads(sys.argv[1])["url"]
    Bank(url)  # Imports the driver and reads the statements, once for all lives.
    kills = 0
    while (end := live(url)) == -signal.SIGKILL:
        kills += 1
    sys.stdout.write(json.dumps({"kills": kills, "end": end}))


if __name__ == "__main__":
    main()
