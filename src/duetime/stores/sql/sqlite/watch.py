"""Sees the commits of other processes to a SQLite file.

The kernel tells when the write-ahead log is written, which is a moment before the commit can be seen;
`PRAGMA data_version` tells when it can. So each event is followed by a few looks at the version, soon and then
further apart, the last ones for a disk that takes long to confirm a commit. Without events nothing is looked at, and
after those of our own commits little.
Where the kernel does not tell, the version is polled instead.

Who enqueues through Duetime also touches the log once the commit can be seen, which the kernel tells as well: those
jobs need no look, and their commits are seen by all whom a write would reach, with nothing to set up or to clean away.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Protocol

from duetime.stores.sql.sqlite.filesystem import StrPath, log_of
from duetime.stores.sql.sqlite.inotify import LogEvents, touch

DataVersion = Callable[[], Awaitable[int]]

_LOOKS = (0.0, 0.0, 0.001, 0.001, 0.002, 0.005, 0.01, 0.04, 0.16, 0.64)
"""The pauses before the looks that follow an event; event loops round what is shorter than 1 ms up to it."""
_STORM = 4
"""The pause between looks while events keep coming."""
_OWN_STORM = 0.02
"""The pause when look after look has found nothing: they are our own commits, and we are busy anyway."""
_OWN_LOOKS = 5
_KNOWN_STEP = 6
"""Where the row of looks goes on behind a commit of others that was seen: another may be hidden behind it."""
_OWN_STEP = 7
"""The same behind one of our own: whoever wrote before it is seen by the first look, who waited for it by the next two."""
_JUST_NOW = 0.01
"""Seconds within which the event of our own commit is read."""
_LULL = 0.02
"""After so many seconds without an event, the next one is looked at immediately."""
_CALM = 1.0
"""After so many seconds without an event, our own is most likely a heartbeat with nobody beside it: one look is enough."""
_SHORTEST_POLL = 0.001
_LONGEST_POLL = 0.05
_POLL_GROWTH = 1.25


def _nothing() -> None:
    pass


def _never(_moment: float) -> bool:
    return False


class Nudges:
    """What tells other processes of new jobs, through their watches of the log."""

    def __init__(self, path: StrPath) -> None:
        self._log = log_of(path)
        self._sent = 0

    def send(self) -> None:
        """Tell the others; cheap enough to be done from an event loop."""
        self._sent += 1
        touch(self._log)

    def heard_by(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Return what is to be called for each touch; it calls the listener, but not for our own."""
        known = self._sent

        def touched() -> None:
            nonlocal known
            own, known = self._sent != known, self._sent
            # One of another process that comes together with our own is found by the looks.
            if not own:
                listener()

        return touched


async def commits(
    path: StrPath,
    data_version: DataVersion,
    *,
    on_touch: Callable[[], None] = _nothing,
    writes_since: Callable[[float], bool] = _never,
) -> AsyncGenerator[None]:
    """Yield after each time that one or more commits of other connections became visible.

    `on_touch` is called at once when a process touches the log, ours included. `writes_since` tells whether this process
    writes, or has done so since a moment of the monotonic clock.
    """
    with _pace(path, on_touch, EventPace(writes_since)) as pace:
        seen, changed = await data_version(), False
        while True:
            await pace.next_look(changed=changed)
            version = await data_version()
            changed, seen = version != seen, version
            if changed:
                yield


class Pace(Protocol):
    """Decides when it is worth looking."""

    async def next_look(self, *, changed: bool) -> None:
        """Return when the time has come; `changed` is what the look before this one found."""
        ...


class EventPace:
    """Looks after events only, each event being followed by the row of looks, or by its end once there was a commit."""

    def __init__(self, writes_since: Callable[[float], bool] = _never) -> None:
        self._writes_since = writes_since
        self._event = asyncio.Event()
        self._of_others = False
        self._calm_until = -_CALM
        self._last_event = asyncio.get_running_loop().time()
        self._last_of_others = -_LULL
        self._after_lull = False
        self._step = len(_LOOKS)
        self._fruitless = 0

    def notice(self) -> None:
        """Take note that the log was written."""
        now = asyncio.get_running_loop().time()
        self._event.set()
        pause, self._last_event = now - self._last_event, now
        if pause >= _CALM:
            # One commit may be several events, but many commits are no heartbeat.
            self._calm_until = now + _JUST_NOW
        # Who writes is the only one who can, so that most likely it was ourselves.
        if not self._writes_since(time.monotonic() - _JUST_NOW):
            self._of_others = True
            self._after_lull |= now - self._last_of_others >= _LULL
            self._last_of_others = now

    async def next_look(self, *, changed: bool) -> None:
        """Return when the next look of the row is due; never while there was no event."""
        self._fruitless = 0 if changed else self._fruitless + 1
        if changed:
            # What the event was about is seen; only what others wrote at the same moment may be hidden behind it.
            self._step = max(self._step, _KNOWN_STEP)
        while True:
            if self._event.is_set():
                self._event.clear()
                if self._of_others:
                    if self._after_lull:
                        self._step = self._fruitless = 0
                    self._step = min(self._step, _STORM)
                    self._after_lull = self._of_others = False
                elif self._step > _STORM and self._last_event < self._calm_until:
                    self._step = len(_LOOKS) - 1
                elif self._step > _STORM:
                    await asyncio.sleep(_OWN_STORM)
                    self._step = _OWN_STEP
                    break
            if self._step <= _STORM:
                await asyncio.sleep(_OWN_STORM if self._fruitless > _OWN_LOOKS else _LOOKS[self._step])
                break
            if not await self._event_within(_LOOKS[self._step] if self._step < len(_LOOKS) else None):
                break
        self._step += 1

    async def _event_within(self, pause: float | None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                return await self._event.wait()
        return False


class PollPace:
    """Looks often while commits are seen and ever more seldom while none are."""

    def __init__(self) -> None:
        self._pause = _SHORTEST_POLL

    async def next_look(self, *, changed: bool) -> None:
        """Return after the present pause, jittered so that many processes do not look in step."""
        self._pause = _SHORTEST_POLL if changed else min(self._pause * _POLL_GROWTH, _LONGEST_POLL)
        await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))


@contextlib.contextmanager
def _pace(path: StrPath, on_touch: Callable[[], None], pace: EventPace) -> Generator[Pace]:
    try:
        events = LogEvents(log_of(path), on_write=pace.notice, on_touch=on_touch)
    except (OSError, NotImplementedError):
        # No inotify on this system or none left for this user, or an event loop that cannot watch files.
        yield PollPace()
        return
    with contextlib.closing(events):
        yield pace
