"""Who holds the locks of a database's log, where the system tells."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from duetime.stores.sql.sqlite.errors import StrPath

_LOCKS: Final = "/proc/locks"
_WRITER = range(120, 121)
_READ_MARKS = range(124, 128)
"""The bytes of the file `-shm` that the writer locks, and those that readers of the log lock."""

_log = logging.getLogger("duetime.store")

lent: Final[set[object]] = set()
"""The handlers' transactions that are open in this process: these may keep others from writing for seconds."""


class _Lock(NamedTuple):
    process: str
    first: int
    last: float

    def covers(self, places: range) -> bool:
        return self.first < places.stop and self.last >= places.start


def readers(path: StrPath) -> list[str]:
    """Return the ids of the processes that read from the log."""
    return sorted({lock.process for lock in _locks(path) if lock.covers(_READ_MARKS)})


def own_transaction(path: StrPath) -> str | None:
    """Return what to say where a transaction of this process, but no handler's, keeps others from writing.

    To wait for it may be in vain: it may be that of the very caller who waits.
    """
    me = str(os.getpid())
    if lent or not any(lock.process == me and lock.covers(_WRITER) for lock in _locks(path)):
        return None
    return (
        f"a transaction of this process keeps {path} locked; to store a job in it, use options(tx=...) with its "
        "connection or session, else end it before you enqueue"
    )


def warn_of_own_transaction(path: StrPath) -> None:
    """Log it while someone waits for such a transaction."""
    if (text := own_transaction(path)) is not None:
        _log.warning("%s", text)


def _locks(path: StrPath) -> Iterator[_Lock]:
    """Yield the locks on the file that processes share the log by; none where the system does not tell."""
    try:
        inode = f":{os.stat(f'{os.path.realpath(path)}-shm').st_ino}"
        with open(_LOCKS, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return
    # As in: 7: POSIX ADVISORY READ 4711 fd:01:1234 124 124
    for _, kind, _, _, process, place, first, last in (words for words in lines if len(words) == 8):  # noqa: PLR2004
        if kind == "POSIX" and place.endswith(inode):
            yield _Lock(process, int(first), math.inf if last == "EOF" else int(last))
