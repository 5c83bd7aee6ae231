from __future__ import annotations

from tools.servers import Postgres


def test_each_test_gets_an_empty_database_of_its_own(postgres: Postgres, postgres_database: str) -> None:
    assert postgres_database in postgres.execute("SELECT datname FROM pg_database").splitlines()
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres.execute(tables, database=postgres_database) == "0"


def test_store_addresses_name_the_store(store_url: str) -> None:
    assert store_url.startswith(("sqlite:///", "postgresql://"))
