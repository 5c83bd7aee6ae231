"""What can be wrong with a SQLite and its file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import Final

from duetime.stores.base import Check
from duetime.stores.sql.sqlite.filesystem import StrPath, filesystem_type
from duetime.stores.sql.sqlite.version import FIXED

MEGABYTE: Final = 1_000_000
LEAST_FREE: Final = 100 * MEGABYTE
"""Less than so much on a disk is nearly nothing, in bytes."""

_SYNCHRONOUS: Final = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def examine(connection: sqlite3.Connection, path: StrPath | None) -> list[Check]:
    """Look at the version, the settings, the file and its content."""
    checks = [_version()]
    if path is not None:
        checks += [_durability(connection), _place(path), _mode(path)]
    return [*checks, _integrity(connection)]


def _version() -> Check:
    fixed = sqlite3.sqlite_version_info >= FIXED
    text = f"SQLite {sqlite3.sqlite_version}"
    if fixed:
        return Check(name="version", ok=True, detail=text)
    return Check(
        name="version",
        ok=False,
        detail=f"{text} can damage a database that several processes write to at the same time",
        fix="use SQLite 3.51.3 or later, one process per file, or PostgreSQL",
    )


def _durability(connection: sqlite3.Connection) -> Check:
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = _SYNCHRONOUS.get(connection.execute("PRAGMA synchronous").fetchone()[0], "unknown")
    safe = level in {"FULL", "EXTRA"}
    return Check(
        name="durability",
        ok=journal == "wal" and safe,
        detail=f"journal mode {journal}, synchronous {level}",
        fix=None if safe else "a power cut can undo the last commits; drop synchronous=NORMAL from the URL",
    )


def _place(path: StrPath) -> Check:
    free = shutil.disk_usage(path).free
    return Check(
        name="file system",
        ok=free >= LEAST_FREE,
        detail=f"{path} on {filesystem_type(path) or 'an unknown one'}, {free // MEGABYTE:,} MB free",
        fix=None if free >= LEAST_FREE else "free some space there before nothing can be written",
    )


def _mode(path: StrPath) -> Check:
    mode = os.stat(path).st_mode & 0o777
    private = not mode & 0o077
    return Check(
        name="file mode",
        ok=private,
        detail=f"{mode:04o}",
        fix=None if private else f"others can read the arguments of jobs: chmod 600 {path}",
    )


def _integrity(connection: sqlite3.Connection) -> Check:
    answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return Check(
        name="integrity",
        ok=answer == "ok",
        detail=answer,
        fix=None if answer == "ok" else "restore a backup, or recover with: sqlite3 FILE .recover",
    )
