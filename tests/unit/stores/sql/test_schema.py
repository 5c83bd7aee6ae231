from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import asyncpg
import pytest

from duetime.errors import SchemaMismatch, StoreUnusable
from duetime.model.states import State
from duetime.stores.base import SchemaStatus, Store
from duetime.stores.open import open_store
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.schema import Migration, migrations, pending_sql
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.testing.conformance.kit import hire, take

pytestmark = pytest.mark.no_tables

STEP = Migration(
    2, "second", "-- A comment; with a semicolon.\nCREATE TABLE a (\n    n integer\n);\n\nDROP TABLE b;\n"
)


def test_a_step_is_split_into_its_statements() -> None:
    assert STEP.statements() == ["CREATE TABLE a (\n    n integer\n)", "DROP TABLE b"]


def test_the_text_of_missing_steps_is_one_transaction() -> None:
    first = Migration(1, "first", "CREATE TABLE b (n integer);\n")
    text = pending_sql((first, STEP), found=1)
    assert "TABLE b (" not in text
    assert text.startswith("BEGIN;\n")
    assert text.endswith("COMMIT;\n")
    assert STEP.text in text


def test_there_is_no_text_when_nothing_is_missing() -> None:
    assert pending_sql((STEP,), found=2) == ""


def newest_of(url: str) -> int:
    """The version of the tables; MariaDB's began as the fourth of the others."""
    return 2 if url.startswith("mariadb") else 4


async def test_a_store_brings_its_tables_along(sql_url: str) -> None:
    store = open_store(sql_url)
    await store.open()
    newest = newest_of(sql_url)
    assert await store.schema_status() == SchemaStatus(found=newest, wanted=newest)
    assert await store.pending_sql() == ""
    await store.close()


async def test_a_store_that_may_not_migrate_names_the_command(sql_url: str) -> None:
    await closed(open_store(sql_url, namespace="other"))
    with pytest.raises(SchemaMismatch, match=r"no tables yet.*duetime migrate --url"):
        await open_store(sql_url, auto_migrate=False).open()


def test_a_store_that_may_not_migrate_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "typo.db"
    with pytest.raises(
        StoreUnusable, match=r"no file .*typo\.db; check the URL, or make it: duetime migrate"
    ):
        asyncio.run(open_store(f"sqlite:///{path}", auto_migrate=False).open())
    assert list(tmp_path.iterdir()) == []


async def test_namespaces_have_tables_of_their_own(sql_url: str) -> None:
    await closed(open_store(sql_url, namespace="one"))
    with pytest.raises(SchemaMismatch):
        await open_store(sql_url, namespace="two", auto_migrate=False).open()
    await closed(open_store(sql_url, namespace="one", auto_migrate=False))


async def test_tables_that_are_newer_than_the_code_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await closed(open_store(f"sqlite:///{path}"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (99, 'later', '9.9', 0)"
        )
    with pytest.raises(SchemaMismatch, match="version 99, this code knows up to 4; upgrade duetime"):
        await open_store(f"sqlite:///{path}").open()


async def test_the_printed_text_makes_the_tables_that_migrate_makes(tmp_path: Path) -> None:
    printed, migrated = tmp_path / "printed.db", tmp_path / "migrated.db"
    store = open_store(f"sqlite:///{printed}")
    await store.open(check=False)
    text = await store.pending_sql()
    await store.close()
    with closing(sqlite3.connect(printed, isolation_level=None)) as connection:
        connection.executescript(text)
    await closed(open_store(f"sqlite:///{migrated}"))
    assert schema(printed) == schema(migrated)
    await closed(open_store(f"sqlite:///{printed}", auto_migrate=False))


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_what_is_stored_in_older_tables_is_kept_and_can_be_claimed(
    grown_url: str, version: int
) -> None:
    dialect = SQLITE if grown_url.startswith("sqlite:") else POSTGRES
    await run(grown_url, "".join(step.text for step in migrations(dialect, "duetime")[:version]))
    for state in State:
        await run(
            grown_url,
            "INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash)"
            f" VALUES ('{state}', 'greet', '{{}}', 'default', 5, '{state}', 0, 0, 'retry')",
        )
    store = open_store(grown_url)
    await store.open()
    assert await store.counts() == {("default", state): 1 for state in State}
    await hire(store, "w1")
    assert [claim.job_id for claim in await take(store)] == ["pending"]
    await store.close()


async def run(url: str, text: str) -> None:
    """Run statements as somebody else would."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.executescript(text)
        return
    connection = await asyncpg.connect(url)
    await connection.execute(text)
    await connection.close()


OPEN = """
import asyncio, sys
from duetime.stores.open import open_store

async def run(url):
    store = open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    await store.open()
    print((await store.schema_status()).found)
    await store.close()

asyncio.run(run(sys.argv[1]))
"""


def test_many_processes_may_open_a_new_database_at_once(sql_url: str) -> None:
    command = [sys.executable, "-c", OPEN, sql_url]
    processes = [subprocess.Popen(command, text=True, stdin=PIPE, stdout=PIPE, stderr=PIPE) for _ in range(5)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=50) for process in processes]
    assert [found for found, _ in answers] == [f"{newest_of(sql_url)}\n"] * 5, answers


async def closed(store: Store) -> None:
    await store.open()
    await store.close()


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return [(name, " ".join(sql.split())) for name, sql in found]
