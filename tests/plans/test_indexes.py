"""The jobs have few indexes, and a plain job is in few of them: every statement that writes jobs pays for each."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from duetime.stores.open import open_store
from tests.plans.kit import DUE, LATER, job_id
from tests.plans.postgres import SQL, Connection, insert, literal, prepare, undone

JOBS = 5_000
INDEXES = {
    "claim",
    "gated",
    "gated_due",
    "history",
    "key",
    "occurrence",
    "passed",
    "running",
    "unsuccessful",
}
PLAIN = {
    "id": job_id(2),
    "payload": "{}",
    "due_at": LATER,
    "delay": 0,
    "task": "greet",
    "queue": "default",
    "priority": 5,
    "on_crash": "retry",
    "retries": None,
    "timeout": None,
    "now": DUE,
}


async def test_both_databases_have_the_same_indexes_of_the_jobs(
    connection: Connection, tmp_path: Path
) -> None:
    path = tmp_path / "plans.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as opened:
        on_sqlite = {
            name
            for (name,) in opened.execute(
                "SELECT name FROM sqlite_master WHERE tbl_name = 'duetime_jobs' AND type = 'index' AND sql IS NOT NULL"
            )
        }
    found = await connection.fetch("SELECT indexname FROM pg_indexes WHERE tablename = 'duetime_jobs'")
    on_postgres = {name for (name,) in found if name != "duetime_jobs_pkey"}
    assert on_sqlite == on_postgres == {f"duetime_jobs_{name}" for name in INDEXES}


async def test_a_plain_job_is_entered_into_two_indexes(connection: Connection) -> None:
    await connection.execute(
        "INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash)"
        f" VALUES ('{job_id(1)}', 'greet', '{{}}', 'default', 5, 'pending', {LATER}, 1, 'retry')"
    )
    async with undone(connection):
        await prepare(connection, SQL.enqueue_one)
        values = ", ".join(literal(PLAIN[name]) for name in SQL.enqueue_one.params)
        (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, WAL, FORMAT JSON) EXECUTE plan ({values})")
    (stored,) = json.loads(row[0])[0]["Plan"]["Plans"]
    # The row, the two entries, and that nothing was in the way.
    assert stored["WAL Records"] == 4


async def test_the_primary_key_has_room_for_the_entries_that_a_job_gets_later(connection: Connection) -> None:
    await connection.execute("ALTER TABLE duetime_jobs SET (autovacuum_enabled = false)")
    await insert(connection, due=JOBS, later=0)
    for state in ("running", "succeeded"):
        for first in range(1, JOBS, 100):
            await connection.execute(
                f"UPDATE duetime_jobs SET state = '{state}' WHERE id BETWEEN '{job_id(first)}' AND '{job_id(first + 99)}'"
            )
    # Where pages are filled up at first, each is split, and this is 117.
    assert await connection.fetchval("SELECT pg_relation_size('duetime_jobs_pkey')") < 100 * JOBS
