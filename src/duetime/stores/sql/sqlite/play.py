"""Runs the statements of a script on a SQLite connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, TypeVar

from duetime.model.instants import Instant
from duetime.stores.sql.driver import Query, Row, Script, Statement, play

T = TypeVar("T")


def play_at(connection: sqlite3.Connection, script: Script[T], now: Instant) -> T:
    """Run a script to its end, all of it at one moment of the store's clock."""
    cursor = plain_cursor(connection)

    def execute(query: Query) -> list[Row]:
        values: Any = {**query.params, "now": now}
        if query.statement.columns:
            return _each_row(cursor, query.statement, values)
        return _rows(cursor.execute(query.statement.sql, values))

    return play(script, execute)


def plain_cursor(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """Return a cursor whose rows are tuples, whatever the owner of the connection likes to read."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor


def _rows(cursor: sqlite3.Cursor) -> list[Row]:
    """Return what a statement answers; one that returns no rows answers how many it has changed."""
    return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()


def _each_row(cursor: sqlite3.Cursor, statement: Statement, values: Mapping[str, Any]) -> list[Row]:
    """Run a statement for each row of its batch and return those that have changed something."""
    rest = [values[name] for name in statement.params[len(statement.columns) :]]
    return [row for row in values["rows"] if cursor.execute(statement.sql, (*row, *rest)).rowcount]
