"""From a URL to a lock."""

from __future__ import annotations

import os
import threading
from typing import Final
from urllib.parse import unquote

from duetime.errors import ConfigError, Unsupported
from duetime.locks.base import DEFAULT_TTL, DistributedLock
from duetime.locks.file import FileLock
from duetime.locks.stored import StoredLocks
from duetime.model.text import check_namespace
from duetime.model.time import Duration
from duetime.model.urls import scheme_of
from duetime.stores.open import open_store

_stores: Final[dict[str, StoredLocks]] = {}
"""By place."""
_stores_lock: Final = threading.Lock()


def open_lock(
    url: str,
    name: str,
    *,
    ttl: Duration = DEFAULT_TTL,
    timeout: Duration | None = None,
    namespace: str = "duetime",
) -> DistributedLock:
    """Return a lock that is kept at `url`: a database, or a folder as `file:///var/lock/app`.

    Locks of one database share a connection, which is made with the first use and closed when the process ends. A
    table for locks is made there, and nothing else. `timeout` is how long `async with` waits for the lock.
    """
    if scheme_of(url) == "file":
        return FileLock(name, _folder(url), ttl=ttl, timeout=timeout)
    return stored_locks(url, namespace=namespace).lock(name, ttl=ttl, timeout=timeout)


def stored_locks(url: str, *, namespace: str) -> StoredLocks:
    """Return the locks of a database, the same for each who asks."""
    check_namespace(namespace)
    if scheme_of(url) == "file":
        raise Unsupported(
            "locks in files are not listed; ask a lock for its owner(), or look into the folder"
        )
    # A URL that cannot work is refused here, not at the first use.
    open_store(url, namespace=namespace)
    if url in {"sqlite://", "sqlite:///", "sqlite:///:memory:"}:
        raise ConfigError("a lock in memory is shared with no other process; name a file: sqlite:///locks.db")
    with _stores_lock:
        place = place_of(url, namespace=namespace)
        if place not in _stores:
            _stores[place] = StoredLocks(place, lambda: open_store(url, namespace=namespace))
        return _stores[place]


def place_of(url: str, *, namespace: str) -> str:
    """Name a database and a namespace in it; the path of a file begins in the present folder."""
    return f"{os.path.abspath(os.curdir) if url.startswith('sqlite:') else ''}{url}#{namespace}"


def _folder(url: str) -> str:
    rest = url.partition("://")[2]
    if not rest.startswith("/"):
        raise ConfigError("a folder for locks is named from the root: file:///var/lock/app")
    return os.path.normpath(unquote(rest))
