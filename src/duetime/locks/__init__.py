"""Locks between processes, with or without a scheduler: `open_lock(url, name)`."""

from __future__ import annotations

from duetime.locks.base import Attempt, BlockingLock, DistributedLock, LockOwner
from duetime.locks.open import open_lock

__all__ = ["Attempt", "BlockingLock", "DistributedLock", "LockOwner", "open_lock"]
