"""Identifiers that are made before the database is asked, so that a lost answer can be looked up."""

from __future__ import annotations

import os
import struct
import threading
import time

from duetime.model.time import MILLISECOND, Instant

_TAIL_BITS = 62
_VARIANT = 0b10 << _TAIL_BITS
"""What the second half of an id begins with."""
_TAIL_END = 0b11 << _TAIL_BITS
_BLOCK = 1024
_STEPS = struct.Struct(f"={_BLOCK // 4}I")
_SLACK_MS = 86_400_000


class _Entropy:
    """Hands out random bytes of the system from small blocks: each call of the system lets other threads run first."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the block: a forked child must not hand out the same bytes as its parent."""
        self._lock = threading.Lock()
        self._block = b""
        self._used = 0

    def __call__(self, count: int) -> bytes:
        with self._lock:
            start = self._used
            if start + count > len(self._block):
                self._block, start = os.urandom(_BLOCK), 0
            self._used = start + count
            return self._block[start : self._used]


_entropy = _Entropy()


class _Sequence:
    """Hands out 128-bit numbers in the layout of UUID version 7 that rise within one process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again: in a forked child, the thread that holds the lock may not exist, and the tail is its parent's."""
        self._lock = threading.Lock()
        self._last_ms = 0
        self._head = ""
        """The first half of the ids of this millisecond."""
        self._tail = _TAIL_END
        """The second half of the last one, as a number."""
        self._steps = list[int]()

    def __call__(self) -> str:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if now_ms > self._last_ms:
                self._begin(now_ms)
            else:
                # Rising by a random step keeps ids of one millisecond in order and hard to guess.
                if not self._steps:
                    self._steps.extend(_STEPS.unpack(os.urandom(_BLOCK)))
                self._tail += self._steps.pop() + 1
                if self._tail >= _TAIL_END:
                    self._begin(self._last_ms + 1)
            return f"{self._head}{self._tail:x}"

    def _begin(self, ms: int) -> None:
        drawn = _entropy(10)
        self._last_ms = ms
        self._head = f"{ms:012x}7{drawn.hex()[:3]}"
        self._tail = _VARIANT | int.from_bytes(drawn[2:]) >> 2


new_job_id = _Sequence()
"""Return a new job id: 32 hexadecimal digits, a UUID version 7, rising within a process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_entropy.reset)
    os.register_at_fork(after_in_child=new_job_id.reset)


def first_id_of(moment: Instant) -> str:
    """Return an id that is smaller than those of all jobs enqueued from then on.

    An id has the time of the process that made it, which is some time before it was stored, by another clock than the
    store's: a day is allowed for that. The clock of a store may be far ahead of that of the ids.
    """
    return f"{max(0, min(moment // MILLISECOND, time.time_ns() // 1_000_000) - _SLACK_MS):012x}"


def new_token() -> str:
    """Return 128 random bits in hexadecimal: a claim id or a worker id."""
    return _entropy(16).hex()
