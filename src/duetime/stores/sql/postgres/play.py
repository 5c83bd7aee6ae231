"""Runs the statements of a script on an asyncpg connection."""

from __future__ import annotations

from typing import Any, TypeVar

import asyncpg

from duetime.model.clock import Clock
from duetime.stores.sql.driver import Script

T = TypeVar("T")


async def play(connection: asyncpg.Connection[asyncpg.Record], steps: Script[T], clock: Clock | None) -> T:
    """Run a script to its end; with a clock of our own, all of it at one moment."""
    now = clock.now() if clock else None
    try:
        query = next(steps)
        while True:
            statement, params = query
            values = [now if name == "now" else params[name] for name in statement.params]
            rows: list[Any] = await connection.fetch(statement.sql, *values)
            query = steps.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
