"""What can be wrong with a SQLite and its file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from typing import TYPE_CHECKING, Final

from duetime.errors import StoreUnavailable
from duetime.stores.base import DoctorCheck
from duetime.stores.sql.sqlite.checkpoint import LOG_LIMIT
from duetime.stores.sql.sqlite.filesystem import StrPath, filesystem_type

if TYPE_CHECKING:
    from duetime.stores.sql.sqlite.database import Database


MEGABYTE: Final = 1_000_000
LEAST_FREE: Final = 100 * MEGABYTE
"""The free space of a disk that is not nearly full, in bytes."""

_COPY_TRIES: Final = 5
_BETWEEN_TRIES: Final = 0.2
_LOCKS: Final = "/proc/locks"
_READ_MARKS: Final = range(124, 128)
"""The bytes of the file `-shm` that readers of the log lock."""
_SYNCHRONOUS: Final = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def examine(connection: sqlite3.Connection, database: Database) -> list[DoctorCheck]:
    """Look at the version, the settings, the file, its log and its content."""
    checks = [_version()]
    if (path := database.path) is not None:
        checks += [_durability(connection), _log(connection, database, path), _place(path), _mode(path)]
    return [*checks, _integrity(connection)]


def _version() -> DoctorCheck:
    return DoctorCheck(name="version", ok=True, detail=f"SQLite {sqlite3.sqlite_version}")


def _log(connection: sqlite3.Connection, database: Database, path: StrPath) -> DoctorCheck:
    """Tell how large the log is, and if it is too large, whether a reader keeps it from being copied into the file."""
    size = database.look()
    text = f"{size / MEGABYTE:.1f} MB"
    try:
        if size <= LOG_LIMIT or _is_copied(connection, database):
            return DoctorCheck(name="log", ok=True, detail=text)
    except StoreUnavailable as error:
        return DoctorCheck.refused("log", error)
    readers = _readers(f"{os.path.realpath(path)}-shm")
    return DoctorCheck(
        name="log",
        ok=False,
        detail=f"{text}, and it grows as long as a transaction reads from an old view of the file",
        fix=f"end it: process {' or '.join(readers)}" if readers else f"see who has it open: fuser -v {path}",
    )


def _is_copied(connection: sqlite3.Connection, database: Database) -> bool:
    """Whether the log can be copied in full within a second."""
    database.checkpoints.copy_most()
    for _ in range(_COPY_TRIES):
        if database.checkpoints.copy(connection).in_full:
            return True
        time.sleep(_BETWEEN_TRIES)
    return False


def _readers(shared: str) -> list[str]:
    """Return the ids of the processes that read from the log, where the system tells."""
    inode = f":{os.stat(shared).st_ino}"
    try:
        with open(_LOCKS, encoding="ascii") as file:
            locks = [line.split() for line in file]
    except OSError:
        return []
    # As in: 7: POSIX ADVISORY READ 4711 fd:01:1234 124 124
    return sorted(
        {
            lock[4]
            for lock in locks
            if lock[1] == "POSIX" and lock[5].endswith(inode) and int(lock[6]) in _READ_MARKS
        }
    )


def _durability(connection: sqlite3.Connection) -> DoctorCheck:
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = _SYNCHRONOUS.get(connection.execute("PRAGMA synchronous").fetchone()[0], "unknown")
    safe = level in {"FULL", "EXTRA"}
    return DoctorCheck(
        name="durability",
        ok=journal == "wal" and safe,
        detail=f"journal mode {journal}, synchronous {level}",
        fix=None if safe else "a power cut can undo the last commits; drop synchronous=NORMAL from the URL",
    )


def _place(path: StrPath) -> DoctorCheck:
    free = shutil.disk_usage(path).free
    place = f"{path} on {filesystem_type(path) or 'an unknown one'}, {free // MEGABYTE:,} MB free"
    return _check(
        "file system", free >= LEAST_FREE, place, "free some space there before nothing can be written"
    )


def _mode(path: StrPath) -> DoctorCheck:
    mode = os.stat(path).st_mode & 0o777
    return _check(
        "file mode",
        not mode & 0o077,
        f"{mode:04o}",
        f"others can read the arguments of jobs: chmod 600 {path}",
    )


def _integrity(connection: sqlite3.Connection) -> DoctorCheck:
    answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    return _check(
        "integrity", answer == "ok", answer, "restore a backup, or recover with: sqlite3 FILE .recover"
    )


def _check(name: str, ok: bool, detail: str, fix: str) -> DoctorCheck:  # noqa: FBT001 -- what it is about
    return DoctorCheck(name=name, ok=ok, detail=detail, fix=None if ok else fix)
