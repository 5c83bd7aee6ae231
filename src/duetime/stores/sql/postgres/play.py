"""Runs the statements of a script on an asyncpg connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeAlias, TypeVar

import asyncpg

from duetime.failpoints import failpoint
from duetime.model.clock import Clock
from duetime.model.instants import Instant
from duetime.stores.sql.driver import Lone, Query, Script

T = TypeVar("T")
_Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


async def play_alone(connection: _Connection, lone: Lone[T], clock: Clock | None, within: float | None) -> T:
    """Run a script of one statement, which is its own transaction, without the script."""
    failpoint(f"before:{lone.verb}")
    await _ask(connection, lone.query, clock.now() if clock else None, within)
    failpoint(f"after:{lone.verb}")
    return lone.answer


async def play(
    connection: _Connection, steps: Script[T], clock: Clock | None, within: float | None = None
) -> T:
    """Run a script to its end, each statement within a time; with a clock of our own, all of it at one moment."""
    now = clock.now() if clock else None
    try:
        query = next(steps)
        while True:
            query = steps.send(await _ask(connection, query, now, within))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def _ask(
    connection: _Connection, query: Query, now: Instant | None, within: float | None
) -> Awaitable[list[Any]]:
    statement, params = query
    values = [now if name == "now" else params[name] for name in statement.params]
    return connection.fetch(statement.sql, *values, timeout=within)
