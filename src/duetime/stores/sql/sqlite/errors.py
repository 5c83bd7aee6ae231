"""What SQLite's errors mean for the caller."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TypeAlias

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault

StrPath: TypeAlias = str | os.PathLike[str]

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DISK = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT}
_OTHER_FILE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_NO_RIGHT = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN}
_LOCKED: Final = "{where} is locked by another connection ({error}); see who has it open: fuser {where}"
_DAMAGED: Final = "{where} is not a SQLite database or is damaged ({error}); name another file"
_CLOSED: Final = "{where} cannot be written ({error}); check the rights of the file and its folder"
_MEANINGS: Final[tuple[tuple[set[int], type[StoreError], str], ...]] = (
    ({sqlite3.SQLITE_FULL}, StoreUnavailable, "the disk that holds {where} is full; free some space there"),
    (_BUSY, StoreUnavailable, _LOCKED),
    (_DISK, StoreUnavailable, "{where}: {error}; see what the system's log says of its disk"),
    (_OTHER_FILE, StoreUnusable, _DAMAGED),
    (_NO_RIGHT, StoreUnusable, _CLOSED),
)
"""What the codes of errors mean."""


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


def met_no_text(error: BaseException) -> bool:
    """Whether an error was that bytes are no text."""
    return isinstance(error, sqlite3.OperationalError) and "decode to UTF-8" in str(error)


@contextmanager
def translated(path: StrPath | None) -> Generator[None]:
    """Raise SQLite's errors as our own."""
    try:
        yield
    except (sqlite3.Error, InjectedFault) as error:
        raise translate(error, path) from error


def translate(error: BaseException, path: StrPath | None) -> BaseException:
    """Return the error to raise instead of one of SQLite's; others stay as they are."""
    if isinstance(error, InjectedFault):
        meant: StoreError = StoreUnavailable(str(error))
    elif isinstance(error, sqlite3.Error):
        where, code = path or "the database in memory", primary_code(error)
        found = ((kind, text) for codes, kind, text in _MEANINGS if code in codes)
        kind, text = next(found, (StoreError, "{where}: {error}"))
        meant = kind(text.format(where=where, error=error))
    else:
        return error
    meant.__cause__ = error
    return meant
