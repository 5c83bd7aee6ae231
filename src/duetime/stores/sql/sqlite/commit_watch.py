"""Sees the commits of other processes to a SQLite file.

The kernel tells when the write-ahead log is written, which is a moment before the commit can be seen;
`PRAGMA data_version` tells when it can. So each event is followed by a few looks at the version, soon and then
further apart, the last ones for a disk that takes long to confirm a commit. Without events nothing is looked at, and
after those of our own commits little.
Where the kernel does not tell, the version is polled instead.

A process that enqueues through Duetime also touches the log once the commit can be seen, which the kernel tells as
well: those jobs need no look.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import random
import struct
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

from duetime.stores.sql.sqlite.errors import StrPath

DataVersion: TypeAlias = Callable[[], Awaitable[int]]

_LOOKS = (0.0, 0.0, 0.001, 0.001, 0.002, 0.005, 0.01, 0.02, 0.16, 0.64)
"""The pauses before the looks that follow an event; event loops round what is shorter than 1 ms up to it."""
_BURST_STEP = 4
"""Where the row begins while events keep coming."""
_KNOWN_STEP = 6
"""Where it goes on after a commit of others that was seen: another one may follow closely."""
_OWN_STEP = 7
"""Where it begins after a commit of our own: a look sees what was written before it, the next two what waited for it."""
_JUST_NOW = 0.01
"""Seconds within which the event of our own commit is read."""
_QUIET_AFTER = 0.02
"""After this time without an event of others, in seconds, we look immediately at the next one."""
_SHORTEST_POLL = 0.001
_LONGEST_POLL = 0.05
_POLL_GROWTH = 1.25

_MODIFY, _ATTRIB, _CLOSE_NOWRITE, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x10, 0x400, 0x800
_EVENTS = _MODIFY | _ATTRIB | _CLOSE_NOWRITE | _DELETE_SELF | _MOVE_SELF
_HEADER = struct.Struct("iIII")
_READ_SIZE = 65536


def log_of(path: StrPath) -> str:
    """Return the path of the log: SQLite follows links, and keeps it next to the file itself."""
    return f"{os.path.realpath(path)}-wal"


async def commits(
    path: StrPath,
    data_version: DataVersion,
    *,
    on_touch: Callable[[], None] = lambda: None,
    writes_since: Callable[[float], bool] = lambda _: False,
) -> AsyncGenerator[None]:
    """Yield after each time that one or more commits of other connections became visible.

    `on_touch` is called at once when a process touches the log, ours included. `writes_since` tells whether this process
    writes, or has done so since a moment of the monotonic clock.
    """
    pace: EventTiming | PollTiming = (timing := EventTiming(writes_since))
    with contextlib.ExitStack() as ends:
        try:
            events = LogFileEvents(log_of(path), on_write=timing.notice, on_touch=on_touch)
            ends.callback(events.close)
        except (OSError, NotImplementedError):
            # No log, no inotify on this system or none left for this user, or an event loop that cannot watch files.
            pace = PollTiming()
        seen, changed = await data_version(), False
        while True:
            await pace.next_look(changed=changed)
            version = await data_version()
            changed, seen = version != seen, version
            if changed:
                yield


class EventTiming:
    """Looks after events only, each event being followed by the row of looks, or by its end once there was a commit."""

    def __init__(self, writes_since: Callable[[float], bool] = lambda _: False) -> None:
        self._writes_since = writes_since
        self._event = asyncio.Event()
        self._last_of_others = -_QUIET_AFTER
        self._step = len(_LOOKS)

    def notice(self) -> None:
        """Take note that the log was written: by us if we write or just did, since no one else can meanwhile."""
        now, step = time.monotonic(), _OWN_STEP
        if not self._writes_since(now - _JUST_NOW):
            step = 0 if now - self._last_of_others >= _QUIET_AFTER else _BURST_STEP
            self._last_of_others = now
        if step < self._step:
            self._step = step
            self._event.set()

    async def next_look(self, *, changed: bool) -> None:
        """Return when the next look of the row is due; never while there was no event."""
        if changed and not self._event.is_set():
            # What the event was about is seen; only what others wrote at the same moment may be hidden behind it.
            self._step = max(self._step, _KNOWN_STEP)
        self._event.clear()
        while self._step > _BURST_STEP:
            if not await self._event_within(_LOOKS[self._step] if self._step < len(_LOOKS) else None):
                break
            self._event.clear()
        else:
            await asyncio.sleep(_LOOKS[self._step])
        self._step += 1

    async def _event_within(self, pause: float | None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                return await self._event.wait()
        return False


class PollTiming:
    """Looks often while commits are seen and ever more seldom while none are."""

    def __init__(self) -> None:
        self._pause = _SHORTEST_POLL

    async def next_look(self, *, changed: bool) -> None:
        """Return after the present pause, varied so that many processes do not look at the same time."""
        self._pause = _SHORTEST_POLL if changed else min(self._pause * _POLL_GROWTH, _LONGEST_POLL)
        await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))


class LogFileEvents:
    """Calls back in the running event loop when a log was written, touched or removed.

    The log is there as long as the database is open. Raises `OSError` or `NotImplementedError` where there is none, or
    where the system, its limits or the event loop do not allow a watch.
    """

    def __init__(self, log: StrPath, *, on_write: Callable[[], None], on_touch: Callable[[], None]) -> None:
        self._on_write = on_write
        self._on_touch = on_touch
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, "inotify is a part of Linux")
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._loop = asyncio.get_running_loop()
        try:
            _checked(libc.inotify_add_watch(self._fd, os.fsencode(log), _EVENTS))
            self._loop.add_reader(self._fd, self._read)
        except BaseException:
            os.close(self._fd)
            raise

    def close(self) -> None:
        """Stop calling back."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_SIZE)
        except BlockingIOError:
            return
        masks = _masks(data)
        if _CLOSE_NOWRITE in masks:
            self._on_touch()
        if masks != {_CLOSE_NOWRITE}:
            self._on_write()


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def _masks(data: bytes) -> set[int]:
    """Read the kinds of the events; each is followed by a name of the length it tells."""
    masks, position = set[int](), 0
    while position < len(data):
        _, mask, _, name_length = _HEADER.unpack_from(data, position)
        masks.add(mask)
        position += _HEADER.size + name_length
    return masks
