"""Waiting for others who write."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Final

from duetime.errors import StoreUnavailable
from duetime.stores.sql.sqlite.errors import has_moved_on, is_busy

_SHORTEST_WAIT: Final = 0.0002
_LONGEST_WAIT: Final = 0.001


def tries(execute: Callable[[], object], *, patience: float) -> Generator[float]:
    """Do something as soon as nobody is in the way, and yield how long to wait before each further try.

    SQLite's own way of waiting starves whoever comes late; short even waits are fair. After so many seconds, or when
    waiting is in vain, what SQLite raises is raised.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            execute()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or has_moved_on(error) or time.monotonic() > deadline:
                raise
        yield random.uniform(_SHORTEST_WAIT, _LONGEST_WAIT)


def become_writer(connection: sqlite3.Connection, *, patience: float) -> None:
    """Begin a transaction that is the one writer, or raise `StoreUnavailable`."""
    begin = partial(connection.execute, "BEGIN IMMEDIATE")
    try:
        # Nearly always nobody is in the way.
        begin()
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        wait_to_write(begin, patience=patience)


def wait_to_write(execute: Callable[[], object], *, patience: float) -> None:
    """Do what only the one writer can once others let us be it, or raise `StoreUnavailable` if they never do."""
    try:
        for wait in tries(execute, patience=patience):
            time.sleep(wait)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        message = (
            f"another process has kept the database locked for {patience:.0f} seconds; end what holds it"
        )
        raise StoreUnavailable(message) from error
