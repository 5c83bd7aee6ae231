"""Runs the statements of a script on an asyncpg connection."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from duetime.model.clock import Clock
from duetime.stores.sql.driver import Script, Statement
from duetime.stores.sql.postgres.connect import Connection
from duetime.stores.sql.postgres.notify import Notification

T = TypeVar("T")


@cache
def _said_aloud(statement: Statement) -> str:
    count = len(statement.params)
    return f"WITH written AS ({statement.sql}) SELECT pg_notify(${count + 1}, ${count + 2})"


async def play(
    connection: Connection, steps: Script[T], clock: Clock | None, *, aloud: Notification | None = None
) -> T:
    """Run a script to its end; with a clock of our own, all of it at one moment.

    `aloud` is said when the only statement of the script, whose rows nobody reads, commits.
    """
    now = clock.now() if clock else None
    try:
        query = next(steps)
        while True:
            statement, params = query
            values = [now if name == "now" else params[name] for name in statement.params]
            if aloud is None:
                rows: list[Any] = await connection.fetch(statement.sql, *values)
            else:
                rows = await connection.fetch(_said_aloud(statement), *values, *aloud)
            query = steps.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
