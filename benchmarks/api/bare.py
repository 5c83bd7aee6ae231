"""The limit: a bare FastAPI application that sends the statements of the API, and does nothing else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.ledger import now
from benchmarks.limits.sqlite import Hop
from duetime.model.ids import new_job_id
from duetime.stores.sql.driver import Statement
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.statements.loader import load

Run: TypeAlias = Callable[[Statement, Mapping[str, object]], Awaitable[Any]]

POOL = 10
"""Connections, as many as the API has by default."""


class NewJob(BaseModel):
    """What a request brings."""

    task: str
    arguments: dict[str, Any]


def bare(url: str) -> FastAPI:
    """Return the application."""
    statements = load(SQLITE if url.startswith("sqlite") else POSTGRES, "duetime")
    insert = statements.enqueue_one if url.startswith("sqlite") else statements.enqueue_one_fresh
    run: Run

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        nonlocal run
        async with opened(url) as run:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/jobs", status_code=201)
    async def enqueue(job: NewJob) -> dict[str, str]:
        values = {"id": new_job_id(), "task": job.task, "payload": json.dumps(job.arguments)}
        await run(insert, {**DEFAULTS, **values})
        return {"id": values["id"], "task": job.task}

    @app.get("/jobs/{job_id}")
    async def get(job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await run(statements.get, {"rows": json.dumps([[job_id]])})
        return found

    return app


DEFAULTS: Mapping[str, object] = {
    "due_at": None,
    "delay": 0,
    "queue": "default",
    "priority": 5,
    "on_crash": "retry",
    "retries": None,
    "timeout": None,
}


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Run]:
    """Open the database, and give what runs a statement and returns its first row by name."""
    if url.startswith("sqlite"):
        hop = Hop(url.removeprefix("sqlite:///"))
        yield lambda statement, values: hop(lambda connection: _first(connection, statement, values))
        hop.close()
        return
    async with asyncpg.create_pool(url, min_size=POOL, max_size=POOL) as pool:

        async def run(statement: Statement, values: Mapping[str, object]) -> Any:
            row = await pool.fetchrow(statement.sql, *map(values.get, statement.params))
            return None if row is None else dict(row)

        yield run


def _first(connection: sqlite3.Connection, statement: Statement, values: Mapping[str, object]) -> Any:
    cursor = connection.execute(statement.sql, _values(statement, values))
    row = cursor.fetchone()
    return None if row is None else dict(zip((one[0] for one in cursor.description), row, strict=True))


def _values(statement: Statement, values: Mapping[str, object]) -> list[object]:
    # The time of SQLite is that of this machine.
    all_values = {"now": now(), **values}
    return [all_values[name] for name in statement.params]
