"""Locks between processes, with or without a scheduler: `open_lock(url, name)`."""

from __future__ import annotations

from duetime.locks.base import Attempt, BlockingLock, DistributedLock, LockOwner
from duetime.locks.file import FileLock
from duetime.locks.open import open_lock
from duetime.locks.stored import StoredLocks, StoreLock

__all__ = [
    "Attempt",
    "BlockingLock",
    "DistributedLock",
    "FileLock",
    "LockOwner",
    "StoreLock",
    "StoredLocks",
    "open_lock",
]
