"""`duetime doctor` names what is wrong with a database, whatever it is, and says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.time import SystemClock
from duetime.stores.open import open_store
from duetime.stores.sql.sqlite.database import Database
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.sqlite.driver import SqliteDriver
from duetime.stores.sql.store import SqlStore
from duetime.testing.conformance.kit import put
from tests.acceptance.kit import URL, duetime, from_json
from tools.servers import Postgres


def findings(url: str) -> dict[str, tuple[bool, str | None]]:
    """What is said of each thing that was looked at: whether it is well, and the fix if it is not."""
    shown = json.loads(duetime("doctor", url, "--json").stdout)
    return {found["name"]: (found["ok"], found["fix"]) for found in shown}


def test_the_database_is_named_as_an_argument_or_as_an_option(folder: Path) -> None:
    (folder / "other.db").touch()
    assert "Fix: duetime migrate --url sqlite:///other.db" in duetime("doctor", "sqlite:///other.db").stdout
    duetime("migrate", *URL)
    assert findings(URL[1])["writes"] == (True, None)
    assert findings(URL[1]).keys() == {found["name"] for found in from_json("doctor", *URL)}


@pytest.mark.no_tables
def test_a_store_of_each_kind_is_looked_at_and_written_to(store_url: str) -> None:
    duetime("migrate", "--url", store_url, "--namespace", "other")
    assert findings(store_url)["schema"] == (False, f"duetime migrate --url {store_url}")
    duetime("migrate", "--url", store_url)
    found = findings(store_url)
    assert found["schema"] == found["writes"] == (True, None)
    assert "version" in found


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("sqlite:////nowhere/jobs.db", "create it: mkdir -p /nowhere"),
        ("sqlite:///shop.py", "name another file"),
        ("sqlite:///.", "name a file in it"),
        ("sqlite:///typo.db", "check the URL, or make it: duetime migrate --url sqlite:///typo.db"),
    ],
)
@pytest.mark.covers("unexplained-database")
def test_a_database_that_cannot_be_opened_is_a_finding_like_any_other(
    folder: Path, url: str, fix: str
) -> None:
    assert findings(url) == {"database": (False, fix)}
    shown = duetime("doctor", url)
    assert shown.exit_code == 4
    assert f"Fix: {fix}" in shown.stdout


@pytest.mark.covers("unexplained-database")
async def test_a_full_disk_is_named(folder: Path) -> None:
    database = Database("jobs.db")
    driver = SqliteDriver(database, clock=SystemClock())
    store = SqlStore(driver, SQLITE, namespace="duetime", clock=SystemClock(), url=URL[1], auto_migrate=True)
    await store.open()
    try:
        # No more pages than there are, as on a disk that has no room for another one.
        await database.writer.do(lambda connection: connection.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(StoreUnavailable, match=r"the disk that holds jobs\.db is full; free some space"):
            await put(store, payload=json.dumps("x" * 100_000))
        (written,) = [check for check in await store.doctor() if check.name == "writes"]
        assert (written.ok, written.fix) == (False, "free some space there")
    finally:
        await store.close()


@pytest.mark.covers("unexplained-database")
async def test_a_right_that_is_missing_is_named(postgres: Postgres, postgres_database: str) -> None:
    store = open_store(postgres.url(postgres_database))
    await store.open()
    await store.close()
    reader = f"reader_{postgres_database}"
    postgres.execute(f"CREATE ROLE {reader} LOGIN")
    postgres.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}", database=postgres_database)
    store = open_store(postgres.url(postgres_database).replace("postgres@", f"{reader}@"), auto_migrate=False)
    await store.open()
    try:
        (written,) = [check for check in await store.doctor() if check.name == "writes"]
        assert not written.ok
        assert reader in f"{written.detail} {written.fix}"
    finally:
        await store.close()
        postgres.execute(f"DROP OWNED BY {reader}; DROP ROLE {reader}", database=postgres_database)
