"""What SQLite's errors mean for the caller."""

from __future__ import annotations

import sqlite3

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault
from duetime.stores.sql.sqlite.filesystem import StrPath

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_TRANSIENT = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT}
_FOREIGN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_FORBIDDEN = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN}

TRANSLATED = (sqlite3.Error, InjectedFault)
"""What `translate` returns another error for."""


def primary_code(error: sqlite3.Error) -> int:
    """Return the error's code without its extension, or 0."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way for the moment."""
    return primary_code(error) in _BUSY


def has_moved_on(error: BaseException) -> bool:
    """Whether the file has changed since the transaction first read, so that waiting is in vain."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT


def misses_table(error: BaseException) -> bool:
    """Whether the database does not have our tables, or has them from another version."""
    return str(error).startswith(("no such table", "no such column"))


def translate(error: BaseException, path: StrPath | None) -> BaseException:
    """Return the error to raise instead; what is not the database's comes back as it is."""
    if isinstance(error, InjectedFault):
        return StoreUnavailable(str(error))
    if not isinstance(error, sqlite3.Error):
        return error
    return _judge(primary_code(error), f"{path or 'the database in memory'}", error)


def _judge(code: int, where: str, error: sqlite3.Error) -> StoreError:
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"the disk that holds {where} is full; free some space there")
    if code in _BUSY:
        return StoreUnavailable(
            f"{where} is locked by somebody else ({error}); see who has it open: fuser {where}"
        )
    if code in _TRANSIENT:
        return StoreUnavailable(f"{where}: {error}; see what the system's log says of its disk")
    if code in _FOREIGN:
        return StoreUnusable(f"{where} is not a SQLite database or is damaged ({error}); name another file")
    if code in _FORBIDDEN:
        return StoreUnusable(
            f"{where} cannot be written ({error}); check the rights of the file and its folder"
        )
    return StoreError(f"{where}: {error}")
