"""What is done on a sqlite3 connection: a script run to its end, and the wait for others who write."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeVar

from duetime.errors import StoreUnavailable
from duetime.model.time import Instant
from duetime.stores.sql.driver import Query, Row, Script, Statement, play
from duetime.stores.sql.sqlite.errors import has_moved_on, is_busy

_SHORTEST_WAIT: Final = 0.0002
_LONGEST_WAIT: Final = 0.001


def waits_for_writers(execute: Callable[[], object], *, timeout: float) -> Generator[float]:
    """Do something as soon as no other connection is in the way, and yield how long to wait before each further try.

    SQLite's own way of waiting starves connections that come late; short even waits are fair. After `timeout` seconds,
    or when waiting is in vain, what SQLite raises is raised.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            execute()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or has_moved_on(error) or time.monotonic() > deadline:
                raise
        yield random.uniform(_SHORTEST_WAIT, _LONGEST_WAIT)


def become_writer(connection: sqlite3.Connection, *, timeout: float) -> None:
    """Begin a transaction that is the one writer, or raise `StoreUnavailable`."""
    wait_to_write(partial(connection.execute, "BEGIN IMMEDIATE"), timeout=timeout)


def wait_to_write(execute: Callable[[], object], *, timeout: float) -> None:
    """Do what only the one writer can, once no other connection writes; raise `StoreUnavailable` after a time."""
    try:
        for wait in waits_for_writers(execute, timeout=timeout):
            time.sleep(wait)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        message = f"another process has kept the database locked for {timeout:.0f} seconds; end what holds it"
        raise StoreUnavailable(message) from error


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
