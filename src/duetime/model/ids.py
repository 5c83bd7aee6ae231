"""Ids: made before the database is asked, so that a lost answer can be looked up, and read as people write them."""

from __future__ import annotations

import os
import re
import struct
import threading
import time
from typing import Final, TypeAlias
from uuid import UUID

from duetime.errors import InvalidOption
from duetime.model.text import shown
from duetime.model.time import MILLISECOND, Instant

_TIME_SHIFT = 80
_MARKS = 7 << 76 | 0b10 << 62
"""The version and the variant of the UUID."""
_BLOCK = 1024
_WORDS = struct.Struct(f"={_BLOCK // 4}I")
_SLACK_MS = 86_400_000
_AHEAD_MS = 600_000
"""How far the clock that an id was made by may be ahead of the store's."""


class _JobIds:
    """Hands out 128-bit numbers in the layout of UUID version 7 that rise within one process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again: in a forked child, the thread that holds the lock may not exist, and the words are its parent's."""
        self._lock = threading.Lock()
        self._last = 0
        self._words = list[int]()
        """Random words of 32 bits, drawn in blocks: each call of the system lets other threads run first."""

    def __call__(self) -> str:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            words = self._words
            if len(words) < 3:  # noqa: PLR2004 - the most that are taken at once
                words += _WORDS.unpack(os.urandom(_BLOCK))
            if now_ms > self._last >> _TIME_SHIFT:
                tail = (words.pop() & 0xFFF) << 64 | words.pop() >> 3 << 32 | words.pop()
                made = now_ms << _TIME_SHIFT | _MARKS | tail
            else:
                # Rising by a random step keeps ids of one millisecond in order and hard to guess. The bit that was left
                # free has room for a billion steps.
                made = self._last + words.pop() + 1
            self._last = made
        return f"{made:032x}"


new_job_id = _JobIds()
"""Return a new job id: 32 hexadecimal digits, a UUID version 7, rising within a process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=new_job_id.reset)


def first_id_of(moment: Instant) -> str:
    """Return an id that is smaller than those of all jobs enqueued from then on.

    An id has the time of the process that made it, some time before it was stored and by another clock than the
    store's: a day is allowed for that. The clock of a store may be far ahead of that of the ids.
    """
    return f"{max(0, min(moment // MILLISECOND, time.time_ns() // 1_000_000) - _SLACK_MS):012x}"


def last_id_of(moment: Instant, *, now: Instant) -> str | None:
    """Return an id that is larger than those of all jobs enqueued before then; `None` where that cannot be told.

    An id is older than its job, unless clocks differ: ten minutes are allowed for that, so that what was enqueued later
    is not searched for long. `now` is the time of the store, which may be far from that of the processes that make ids.
    """
    made_ms, now_ms = time.time_ns() // 1_000_000, now // MILLISECOND
    return None if abs(made_ms - now_ms) > _AHEAD_MS // 2 else f"{moment // MILLISECOND + _AHEAD_MS:012x}"


def new_token() -> str:
    """Return 128 random bits in hexadecimal: a claim id or a worker id."""
    return os.urandom(16).hex()


GivenId: TypeAlias = str | UUID
"""The id of a job or worker as people write it."""


def own_id(given: GivenId) -> str:
    """Return an id that a caller has made for a new job, or raise `InvalidOption`: lists are in the order of ids."""
    made = read_id(given)
    if re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{19}", made):
        age = time.time_ns() // 1_000_000 - int(made[:12], 16)
        if -_AHEAD_MS // 2 <= age <= _SLACK_MS:
            return made
    raise InvalidOption(
        f"an id of one's own is a UUID of version 7 that was made today, not {shown(given)}; key= needs no id"
    )


_BEGINNING: Final = re.compile(r"[0-9a-f]{1,32}")
_WHOLE: Final = 32


def read_id(given: GivenId) -> str:
    """Return an id as it is stored; it may have dashes and capitals. Other text, which no job has, stays as it is."""
    if isinstance(given, UUID):
        return given.hex
    if not isinstance(given, str):
        raise InvalidOption(f"an id must be text such as {'0' * 32!r}, or a UUID, not {shown(given)}")
    start = read_beginning(given)
    return start if start is not None and is_whole(start) else given


def read_beginning(given: str) -> str | None:
    """Return the beginning of an id, or all of it, as it is stored; `None` for what no id begins with."""
    digits = given.replace("-", "").lower()
    return digits if _BEGINNING.fullmatch(digits) else None


def is_whole(start: str) -> bool:
    """Whether the beginning of an id is all of it."""
    return len(start) == _WHOLE
