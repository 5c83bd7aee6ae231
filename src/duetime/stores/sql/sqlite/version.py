"""Which SQLite there must be."""

from __future__ import annotations

import sqlite3
from typing import Final

from duetime.errors import StoreUnusable

OLDEST: Final = (3, 35, 0)
"""The first version that returns what an UPDATE changed."""


def require_version() -> None:
    """Raise `StoreUnusable` where SQLite is too old."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old; use a Python that has SQLite 3.35 or later"
        )
