"""Runs the statements of a script on a SQLite connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

from duetime.model.instants import Instant
from duetime.stores.sql.driver import Query, Row, Script, Statement, play

T = TypeVar("T")


def play_at(connection: sqlite3.Connection, script: Script[T], now: Instant) -> T:
    """Run a script to its end, all of it at one moment of the store's clock."""
    cursor = plain_cursor(connection)

    def execute(query: Query) -> list[Row]:
        if query.statement.columns:
            return _each_row(cursor, query, now)
        return _rows(cursor.execute(query.statement.sql, values_of(query, now)))

    return play(script, execute)


def values_of(query: Query, now: Instant) -> tuple[Any, ...]:
    """Return the values of a query in the order of its parameters."""
    return tuple(map({**query.params, "now": now}.__getitem__, query.statement.params))


def by_row(statement: Statement, values: Mapping[str, Any]) -> Callable[[Row], tuple[Any, ...]]:
    """Return what puts a row of the batch and the values that all rows share in the order of the parameters."""
    shared = tuple(dict.fromkeys(name for name in statement.params if name not in statement.columns))
    names, rest = (*statement.columns, *shared), [values[name] for name in shared]
    in_order = itemgetter(*map(names.index, statement.params))
    return lambda row: in_order((*row, *rest))


def plain_cursor(connection: sqlite3.Connection) -> sqlite3.Cursor:
    """Return a cursor whose rows are tuples, whatever the owner of the connection likes to read."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor


def _rows(cursor: sqlite3.Cursor) -> list[Row]:
    """Return what a statement answers; one that returns no rows answers how many it has changed."""
    return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()


def _each_row(cursor: sqlite3.Cursor, query: Query, now: Instant) -> list[Row]:
    """Run a statement for each row of its batch and return those that have changed something."""
    batch: Any = query.params["rows"]
    sql, values_with = query.statement.sql, by_row(query.statement, {**query.params, "now": now})
    return [row for row in batch if cursor.execute(sql, values_with(row)).rowcount]
