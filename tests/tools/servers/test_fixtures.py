from __future__ import annotations

import pytest

from duetime.stores.open import open_store
from tests.support.stores import SQL
from tools.servers import Postgres

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


def test_each_test_gets_a_database_of_its_own(postgres: Postgres, postgres_database: str) -> None:
    assert postgres_database in postgres.execute("SELECT datname FROM pg_database").splitlines()


@pytest.mark.no_tables
def test_a_test_may_ask_for_an_empty_database(postgres: Postgres, postgres_database: str) -> None:
    assert postgres.execute(TABLES, database=postgres_database) == "0"


async def test_a_database_comes_with_tables_and_nothing_in_them(postgres_url: str) -> None:
    store = open_store(postgres_url, auto_migrate=False)
    await store.open()
    assert await store.workers() == []
    await store.close()


def test_store_addresses_name_the_store(store_url: str) -> None:
    assert store_url.startswith(("sqlite:///", "postgresql://", "mariadb://", "redis://"))


def test_tests_of_transactions_leave_out_no_store_that_has_them(
    store_url: str, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["store_url"]
    assert open_store(store_url).capabilities.transactions == (kind in SQL)
