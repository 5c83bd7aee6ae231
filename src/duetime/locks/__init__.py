"""Locks between processes, with or without a scheduler: `open_lock(url, name)`."""

from __future__ import annotations

from duetime.locks.base import BlockingLock, DistributedLock, LockOwner
from duetime.locks.open import open_lock
from duetime.model.locks import Attempt

__all__ = ["Attempt", "BlockingLock", "DistributedLock", "LockOwner", "open_lock"]
