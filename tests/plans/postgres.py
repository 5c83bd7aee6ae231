"""What the plan tests on PostgreSQL share: databases with very many rows, and plans read out of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import asyncpg
import pytest

from duetime.stores.sql.driver import Statement
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.statements.loader import load
from tests.plans.kit import DUE, LATER
from tests.support.databases import Databases

SQL = load(POSTGRES, "duetime")
Node: TypeAlias = dict[str, Any]
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PLANS = pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])


Make: TypeAlias = Callable[[Connection], Awaitable[None]]

ADD_WORKER = """
INSERT INTO duetime_workers (id, state, host, pid, version, queues, slots, started_at, beat_at, lease_until)
VALUES ('w', 'alive', 'h', 1, '1', '[]', 1, 1, 1, 1)
"""


class Copies:
    """Databases for one test, each a copy of one that is filled only once in a test process."""

    def __init__(self, databases: Databases, originals: dict[str, str], with_tables: str) -> None:
        self._databases = databases
        self._originals = originals
        self._with_tables = with_tables
        self._names: list[str] = []
        self._connections: list[Connection] = []

    async def connect(self, what: str, make: Make) -> Connection:
        """Connect to a database that was made so; `what` says it in words, and stands for it."""
        if what not in self._originals:
            self._originals[what] = await self._make(make)
        self._names.append(self._databases.create(like=self._originals[what]))
        self._connections.append(await asyncpg.connect(self._databases.url(self._names[-1])))
        return self._connections[-1]

    async def with_jobs(self, *, due: int, later: int) -> Connection:
        """Connect to a database with so many jobs, of which the planner has learnt while nothing ran."""
        return await self.connect(f"{due} due, {later} later", partial(fill, due=due, later=later))

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
        for name in self._names:
            self._databases.drop(name)

    async def _make(self, make: Make) -> str:
        name = self._databases.create(like=self._with_tables)
        connection = await asyncpg.connect(self._databases.url(name))
        await connection.execute(ADD_WORKER)
        await make(connection)
        await connection.close()
        return name


async def fill(connection: Connection, *, due: int, later: int, **columns: str) -> None:
    """Make jobs, the due ones first, and let the planner learn of them while nothing runs."""
    await insert(connection, due=due, later=later, **columns)
    await connection.execute("VACUUM ANALYZE duetime_jobs")


async def insert(
    connection: Connection, *, due: int, later: int, state: str = "'pending'", schedule: str = "NULL"
) -> None:
    """Make jobs, the due ones first; columns are expressions of a job's number `i`."""
    await connection.execute(
        f"""
        INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash, schedule)
        SELECT lpad(i::text, 32, '0'), 'greet', '{{}}', 'default', 5, {state},
               CASE WHEN i <= {due} THEN {DUE - 1} ELSE {LATER} END, 1, 'retry', {schedule}
        FROM generate_series(1, {due + later}) AS i
        """
    )


async def run_some(connection: Connection, count: int) -> None:
    """Let the first jobs run, under the claim that the values of settlements name."""
    await connection.execute(
        f"UPDATE duetime_jobs SET state = 'running', fence = 1, claim_id = 'c', worker = 'w' WHERE id <= lpad('{count}', 32, '0')"
    )


@asynccontextmanager
async def undone(connection: Connection, mode: str = "auto") -> AsyncIterator[None]:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
    yield
    await transaction.rollback()


async def explain(connection: Connection, statement: Statement, values: Mapping[str, object]) -> Node:
    """Run a prepared statement and return its plan with what it has read."""
    await prepare(connection, statement)
    found = await explain_prepared(connection, statement, values)
    await connection.execute("DEALLOCATE plan")
    return found


async def prepare(connection: Connection, statement: Statement) -> None:
    types = ", ".join("unknown" for _ in statement.params)
    await connection.execute(f"PREPARE plan {types and f'({types})'} AS {statement.sql}")


async def explain_prepared(
    connection: Connection, statement: Statement, values: Mapping[str, object]
) -> Node:
    given = ", ".join(literal(values[name]) for name in statement.params)
    execute = f"EXECUTE plan {given and f'({given})'}"
    (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execute}")
    found: Node = json.loads(row[0])[0]["Plan"]
    return found


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def buffers(plan: Node) -> int:
    read: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return read


def scans(plan: Node, relation: str = "duetime_jobs") -> set[tuple[str, str | None]]:
    return {
        (node["Node Type"], node.get("Index Name"))
        for node in nodes(plan)
        if node.get("Relation Name") == relation and "Scan" in node["Node Type"]
    }
