"""Which SQLite there must be."""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from duetime.errors import StoreUnusable

OLDEST: Final = (3, 35, 0)
"""The first version that returns what an UPDATE changed."""
FIXED: Final = (3, 51, 3)
"""The first version in which two processes that write and checkpoint at once cannot damage the file."""

_log = logging.getLogger("duetime.stores.sqlite")
_warned = False


def require_version() -> None:
    """Raise `StoreUnusable` where SQLite is too old, and warn once where it has a bug that can bite us."""
    global _warned  # noqa: PLW0603 -- once per process
    version = sqlite3.sqlite_version_info
    if version < OLDEST:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old; use a Python that has SQLite 3.35 or later"
        )
    if version < FIXED and not _warned:
        _warned = True
        _log.warning(
            "SQLite %s has a bug that can damage a database when several processes write to it at the same time "
            "(fixed in 3.51.3); use one process per file, a newer SQLite, or PostgreSQL",
            sqlite3.sqlite_version,
        )
