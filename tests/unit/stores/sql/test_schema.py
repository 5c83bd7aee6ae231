from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import asyncpg
import pytest

from duetime.errors import SchemaMismatch, StoreUnusable
from duetime.stores.base import SchemaStatus, Store
from duetime.stores.open import open_store
from duetime.stores.sql.schema import Migration, column_texts, pending_sql
from duetime.stores.sql.statements.loader import FOLDER
from duetime.stores.sql.store import SqlStore
from duetime.testing.conformance.kit import hire, put, take
from tests.support.mariadb import connected, fetch

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


async def test_a_store_brings_its_tables_along(sql_url: str) -> None:
    store = open_store(sql_url)
    await store.open()
    assert await store.schema_status() == SchemaStatus(found=1, wanted=1)
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
    with pytest.raises(SchemaMismatch, match="version 99, this code knows up to 1; upgrade duetime"):
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


GROWTH = Migration(
    2,
    "second",
    "ALTER TABLE duetime_jobs ADD COLUMN colour text;\n"
    "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (2, 'second', 'x', 0);\n",
)
"""A step that a later version could bring."""


def later_version(url: str, *, auto_migrate: bool = True) -> SqlStore:
    store = open_store(url, auto_migrate=auto_migrate)
    assert isinstance(store, SqlStore)
    store._steps = (*store._steps, GROWTH)
    return store


async def test_what_is_stored_in_older_tables_is_kept_and_can_be_claimed(sql_url: str) -> None:
    store = open_store(sql_url)
    await store.open()
    job_id = await put(store)
    await store.close()
    later = later_version(sql_url)
    await later.open()
    assert await later.schema_status() == SchemaStatus(found=2, wanted=2)
    await hire(later, "w1")
    assert [claim.job_id for claim in await take(later)] == [job_id]
    await later.close()


async def test_older_tables_are_left_alone_by_a_store_that_may_not_migrate(sql_url: str) -> None:
    await closed(open_store(sql_url))
    with pytest.raises(SchemaMismatch, match="version 1, this code needs 2; run `duetime migrate"):
        await later_version(sql_url, auto_migrate=False).open()
    store = later_version(sql_url)
    await store.open(check=False)
    assert (await store.schema_status()).pending == ("0002_second",)
    assert "ADD COLUMN colour" in await store.pending_sql()
    await store.close()


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
    assert [found for found, _ in answers] == ["1\n"] * 5, answers


COMMENTS = column_texts((FOLDER / "migrations/0001_first.sql").read_text("utf-8"))
SHOWN_BY_POSTGRES = """
    SELECT c.relname, a.attname, col_description(c.oid, a.attnum) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relname LIKE 'duetime%' AND c.relkind = 'r' AND a.attnum > 0
"""
SHOWN_BY_MARIADB = """
    SELECT table_name, column_name, column_comment FROM information_schema.columns WHERE table_schema = database()
"""
ONLY_ON_MARIADB = {
    ("jobs", "gated"), ("jobs", "held_key"), ("hints", "slot"), ("hints", "told"), ("hints", "said"),
}  # fmt: skip


async def test_every_column_says_what_it_holds_and_the_same_in_every_database(sql_url: str) -> None:
    await closed(open_store(sql_url))
    found = await shown_comments(sql_url)
    assert [column for column, said in found.items() if not said] == []
    own = ONLY_ON_MARIADB if sql_url.startswith("mariadb") else set()
    assert {column: said for column, said in found.items() if column not in own} == COMMENTS
    assert own <= found.keys()


async def shown_comments(url: str) -> dict[tuple[str, str], str | None]:
    """What a database says of each column to someone who looks at a table."""
    if url.startswith("sqlite"):
        return dict(comments_in_file(Path(url.removeprefix("sqlite:///"))))
    if url.startswith("mariadb"):
        async with connected(url) as connection:
            rows = await fetch(connection, SHOWN_BY_MARIADB)
    else:
        session = await asyncpg.connect(url, statement_cache_size=0)
        rows = await session.fetch(SHOWN_BY_POSTGRES)
        await session.close()
    return {(table.removeprefix("duetime_"), column): said for table, column, said in rows}


def comments_in_file(path: Path) -> Iterator[tuple[tuple[str, str], str | None]]:
    with closing(sqlite3.connect(path)) as file:
        for name, sql in file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            for (column,) in file.execute("SELECT name FROM pragma_table_info(?)", [name]):
                said = re.search(rf"^    {column} .* -- (.*)$", sql, re.MULTILINE)
                yield (name.removeprefix("duetime_"), column), None if said is None else said[1]


async def closed(store: Store) -> None:
    await store.open()
    await store.close()


def schema(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return [(name, " ".join(sql.split())) for name, sql in found]
