"""Schedules are looked at by index, however many there are and however long their history is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from duetime.stores.open import open_store
from tests.plans import postgres, test_sqlite as sqlite
from tests.plans.kit import DUE, LATER, ROWS
from tests.plans.postgres import PLANS, Connection, Copies, buffers, explain, scans, undone

SCHEDULES = 10_000
TABLES = ("duetime_jobs", "duetime_schedules", "duetime_audit")
STRETCH: Mapping[str, object] = {"schedule": "s1", "since": 5_000, "until": 5_010, "limit": 100}
STATEMENTS: Mapping[str, Mapping[str, object]] = {
    "due_schedules": {"ahead": 10, "limit": 501},
    "resuming_schedules": {"limit": 501},
    "next_schedule": {"ahead": 10},
    "get_schedules": {"rows": json.dumps([["s1"]])},
    "fire": {"rows": json.dumps([["s1", 1, -1, DUE, LATER, 1, None, 0, "itself"]])},
    "lock_planted": {"rows": json.dumps([["s1", None, None, 0]])},
    "rewind": {"rows": json.dumps([["s1", None, None, 0]])},
    "fired_jobs": {"rows": json.dumps([["s1"]])},
    "occurrences": STRETCH,
    "past_occurrences": {**STRETCH, "made": 0},
    "count_runs": {
        "rows": json.dumps([["s1", state] for state in ("succeeded", "failed", "cancelled")]),
        "most": 100,
    },
    "latest_runs": {"rows": json.dumps([["succeeded 3"], ["failed 1"]])},
    "lock_spans": {"rows": json.dumps([["5"]])},
    "entries": {"target": "s1", "limit": 10},
    "entries_before": {"target": "s1", "limit": 10, "before": "entry 5"},
    "noted": {"rows": json.dumps([["entry 5"]])},
}
HISTORY = ("skipped", "succeeded", "failed")

ADD_SCHEDULES = """
INSERT INTO duetime_schedules (
    name, task, payload, trigger_spec, declared, queue, priority, on_crash, overlap, misfire_window, owner, pause_after,
    paused_at, paused_until, parked_at, fired_through, next_at, created_at, updated_at
)
SELECT 's' || i, 'greet', '{{}}', '{{}}', '', 'default', 5, 'retry', 'skip', 1, 'code', 3, {paused_at}, {paused_until},
       {parked_at}, 0, {next_at}, 1, 1
FROM {numbers}
"""
ADD_JOBS = """
INSERT INTO duetime_jobs (
    id, task, payload, queue, priority, state, due_at, created_at, finished_at, on_crash, schedule, occurrence
)
SELECT '{state} ' || i, 'greet', '{{}}', 'default', 5, '{state}', i, 1, {finished_at}, 'retry', {schedule}, {occurrence}
FROM {numbers}
"""
ADD_ENTRIES = """
INSERT INTO duetime_audit (id, at, who, verb, target, detail)
SELECT 'entry ' || i, i, 'ann', 'edit', {target}, '{{}}' FROM {numbers}
"""


def numbers(first: int, last: int, database: str) -> str:
    if database == "postgres":
        return f"generate_series({first}, {last}) AS i"
    return f"(WITH RECURSIVE n (i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n)"


def a_few(database: str) -> list[str]:
    """Ten schedules that are due and ten that go on, with a job that waits and a streak of failures."""
    none = {"paused_at": "NULL", "paused_until": "NULL", "parked_at": "NULL"}
    due = {**none, "next_at": DUE - 1}
    until = {**none, "next_at": DUE - 1, "paused_at": 1, "paused_until": DUE - 1}
    jobs = {"schedule": "'s1'", "occurrence": f"i + {2 * ROWS}", "finished_at": 1}
    return [
        ADD_SCHEDULES.format(numbers=numbers(1, 10, database), **due),
        ADD_SCHEDULES.format(numbers=numbers(11, 20, database), **until),
        ADD_JOBS.format(numbers=numbers(1, 2, database), state="failed", **jobs),
        ADD_JOBS.format(
            numbers=numbers(1, 1, database), state="pending", **jobs | {"occurrence": "NULL", "finished_at": "NULL"}
        ),
        ADD_JOBS.format(
            numbers=numbers(3, 3, database), state="succeeded", **jobs | {"occurrence": 2 * ROWS}
        ),
        ADD_ENTRIES.format(numbers=numbers(1, 20, database), target="'s1'"),
    ]  # fmt: skip


def very_many(database: str) -> list[str]:
    """Schedules for later, paused and parked ones, what others have waiting, and years of history."""
    rest: Mapping[str, object] = {"paused_at": "NULL", "paused_until": "NULL", "parked_at": "NULL"}
    third = SCHEDULES // 3
    kinds: list[Mapping[str, object]] = [
        {**rest, "next_at": LATER},
        {**rest, "next_at": DUE - 1, "paused_at": 1, "paused_until": LATER},
        {**rest, "next_at": DUE - 1, "paused_at": 1, "paused_until": DUE - 1, "parked_at": 1},
    ]
    added = [
        ADD_SCHEDULES.format(numbers=numbers(100 + n * third, 99 + (n + 1) * third, database), **kind)
        for n, kind in enumerate(kinds)
    ]
    for number, state in enumerate(HISTORY):
        many = numbers(1_000 + number * ROWS // 3, (number + 1) * ROWS // 3, database)
        added.append(
            ADD_JOBS.format(numbers=many, state=state, schedule="'s1'", occurrence="i", finished_at="1")
        )
    # Of late all was skipped, which neither counts as a failure nor ends a row of them.
    added.append(
        ADD_JOBS.format(
            numbers=numbers(3 * ROWS, 4 * ROWS, database),
            state="skipped",
            schedule="'s1'",
            occurrence="i",
            finished_at="1",
        )
    )
    for state in ("succeeded", "failed"):
        by_hand = {"schedule": "'s1'", "occurrence": "NULL", "finished_at": "1"}
        many = numbers(5 * ROWS, 5 * ROWS + ROWS // 6, database)
        added.append(ADD_JOBS.format(numbers=many, state=state, **by_hand))
    others = {"schedule": "'s' || (100 + i % 1000)", "occurrence": "i", "finished_at": "NULL"}
    added.append(ADD_JOBS.format(numbers=numbers(2, ROWS // 3, database), state="pending", **others))
    added.append(ADD_ENTRIES.format(numbers=numbers(100, ROWS // 3, database), target="'s' || i % 1000"))
    return added


@pytest.fixture(params=[False, True], ids=["no-statistics", "statistics"])
async def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as opened:
        for statement in a_few("sqlite"):
            opened.execute(statement)
        if request.param:
            opened.execute("ANALYZE")
        opened.commit()
    return path


@pytest.fixture
def database(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        opened.execute("BEGIN")
        yield opened


def test_sqlite_takes_no_more_steps_with_very_many_schedules_and_jobs(database: sqlite3.Connection) -> None:
    before = {
        name: sqlite.steps(database, getattr(sqlite.SQL, name), {**values, "now": DUE})
        for name, values in STATEMENTS.items()
    }
    for statement in very_many("sqlite"):
        database.execute(statement)
    after = {
        name: sqlite.steps(database, getattr(sqlite.SQL, name), {**values, "now": DUE})
        for name, values in STATEMENTS.items()
    }
    # Those that find more now stop at their limit.
    found = {"occurrences": 120, "past_occurrences": 120, "count_runs": 60}
    assert {
        name: after[name] for name in after if after[name] > before[name] * 1.2 + found.get(name, 2)
    } == {}


async def learn(connection: Connection, *, learnt: str) -> None:
    """Make all schedules and jobs, and let the planner learn of them at some moment."""
    steps = {"nothing": [], "a few": a_few("postgres"), "all": very_many("postgres")}
    for table in TABLES:
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    for step, statements in steps.items():
        for statement in statements:
            await connection.execute(statement)
        if step == learnt:
            for table in TABLES:
                await connection.execute(f"VACUUM ANALYZE {table}")


@PLANS
@pytest.mark.parametrize("learnt", ["all", "a few", "nothing"])
async def test_postgres_reads_little_of_very_many_schedules_and_jobs(
    copies: Copies, mode: str, learnt: str
) -> None:
    connection = await copies.connect(f"{learnt} learnt of schedules", partial(learn, learnt=learnt))
    read: dict[str, tuple[int, list[str]]] = {}
    for name, values in STATEMENTS.items():
        async with undone(connection, mode):
            plan = await explain(connection, getattr(postgres.SQL, name), {**values, "now": DUE})
        whole = [table for table in TABLES if "Seq Scan" in {kind for kind, _ in scans(plan, table)}]
        read[name] = (buffers(plan), whole)
    assert {name: what for name, what in read.items() if what[1] or what[0] > 300} == {}
