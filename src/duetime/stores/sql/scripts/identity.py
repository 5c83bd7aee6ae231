"""Who a store is, seen from our own connections and from callers' transactions."""

from __future__ import annotations

from duetime.stores.sql.borrowing import another_database
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements


def identity(sql: Statements) -> Script[str | None]:
    """Return what the store is called, or None where there are no tables of ours."""
    tables = yield Query(sql.has_schema, {})
    if not tables[0][0]:
        return None
    found = yield Query(sql.store_id, {})
    name: str | None = found[0][0]
    return name


def check(sql: Statements, expected: str) -> Script[None]:
    """Raise `InvalidTransaction` unless the connection sees the store that is meant; it sees some store's tables."""
    found = yield Query(sql.store_id, {})
    if not found or found[0][0] != expected:
        raise another_database()
