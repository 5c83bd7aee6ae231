"""Copies the write-ahead log into the database, in a way in which SQLite's WAL-reset bug cannot occur.

SQLite before 3.51.3 can damage a file when a checkpoint begins on a log that was copied in full already, while the commit
of another connection restarts that log. So no connection of ours checkpoints by itself. Where the log has grown, one
connection takes the write lock and writes nothing, and a second one checkpoints meanwhile: to restart the log takes the
write lock. The log was copied in full then, and the next commit restarts and shortens it.

A log that has grown long behind a reader would keep writers waiting for as long as it takes to copy it. Most of it is
copied before that, while others write. There the first connection only reads. Either its view has a mark in the log, and
no commit restarts a log with a mark in it; or all of the log was copied before, then its view is of the database alone,
and SQLite copies nothing under such a view.

When the last connection is closed, SQLite checkpoints by itself, with an exclusive lock on the file: no other one is open.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from typing import Final, NamedTuple

from duetime.errors import StoreError, StoreUnavailable
from duetime.stores.sql.sqlite.connection import become_writer

MEGABYTE: Final = 1024 * 1024
LOG_LIMIT: Final = 2 * MEGABYTE
"""Above this size the log is copied; it is cut to this size when it restarts."""
LONG_LOG: Final = 16 * MEGABYTE
"""Above this size most of the log is copied before writers have to wait."""

SETTINGS: Final = ("PRAGMA wal_autocheckpoint = 0", f"PRAGMA journal_size_limit = {LOG_LIMIT}")
"""For every connection."""

_LONGEST_WAIT: Final = 1.0
_LONGEST_HOLD: Final = 0.05
"""Seconds for which writers wait, at most, until short readers have ended."""
_FIRST_HOLD: Final = 0.005
_PARTS: Final = 8
_SHORT: Final = 1_000
"""Frames that are copied within milliseconds."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0

_log = logging.getLogger("duetime.store")


class CheckpointProgress(NamedTuple):
    """How many frames the log has, and how many of them are in the database."""

    frames: int
    copied: int

    @property
    def in_full(self) -> bool:
        """Whether the next commit can restart the log; if not, a reader needs what is in it, or a checkpoint of others runs."""
        return 0 <= self.frames == self.copied


class Checkpointer:
    """Copies the log whenever a commit leaves it too large, on the connection that writes and another one."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], *, on_writer: Callable[[Callable[..., None]], object]
    ) -> None:
        """Take a function that makes a connection, and one that runs work on the connection that writes."""
        self._connect = connect
        self._on_writer = on_writer
        self._pid = os.getpid()
        self.busy = False
        """Whether one is under way."""
        self._begun: Future[None] | None = None
        self._copier: sqlite3.Connection | None = None
        """Kept from one checkpoint to the next: to open one takes a third of the time, while writers wait."""
        self._over = False
        self._not_before = -math.inf
        self._pause = _FIRST_PAUSE
        self._hold = 0.0
        self._warned = False

    def notice(self, size: int) -> None:
        """Have the log copied if it is too large after a commit."""
        if size <= LOG_LIMIT:
            # Restarted since the last one, or not long yet.
            self._not_before = -math.inf
            self._hold = 0.0
            return
        # A forked child may neither use the connections of its parent nor open others.
        if self.busy or time.monotonic() < self._not_before or os.getpid() != self._pid:
            return
        self.busy = True
        if size > LONG_LOG:
            begun: Future[None] = Future()
            begun.set_running_or_notify_cancel()
            thread = threading.Thread(
                target=self._begin, args=(size, begun), name="duetime-sqlite-checkpoint", daemon=True
            )
            # There may be no other thread, as when the process ends.
            with suppress(RuntimeError):
                thread.start()
                self._begun = begun
                return
        self._on_writer(partial(self._run, size=size))

    async def ended(self) -> None:
        """Wait for the thread that copies, which a forked child does not have."""
        if self._begun is not None and os.getpid() == self._pid:
            await asyncio.wrap_future(self._begun)

    def end(self, _: sqlite3.Connection) -> None:
        """Copy no more, and close the connection that copies; in the thread of the one that writes, which is still open."""
        self._over = True
        if self._copier is not None:
            self._copier.close()

    def copy(self, writer: sqlite3.Connection) -> CheckpointProgress:
        """Copy all that no reader needs, in the thread of the connection that writes.

        A reader with an old view keeps the log from being copied in full, any reader of the log keeps it from being
        restarted. While the lock is held none comes that does the first, and once all is copied, none that does the
        second. So a short wait is enough where short readers follow one another.
        """
        if self._copier is None:
            self._copier = self._connect()
        become_writer(writer, timeout=_LONGEST_WAIT)
        try:
            deadline = time.monotonic() + _LONGEST_HOLD
            while not (done := _checkpoint(self._copier)).in_full and time.monotonic() < deadline:
                time.sleep(_FIRST_HOLD)
            time.sleep(self._hold)
            return done
        finally:
            writer.execute("ROLLBACK")

    def copy_most(self) -> None:
        """Copy until little is left or a reader is in the way, while others write."""
        before = 0
        with closing(self._connect()) as guard, closing(self._connect()) as copier:
            for _ in range(_PARTS):
                guard.execute("BEGIN")
                guard.execute("PRAGMA schema_version").fetchall()
                copied = _checkpoint(copier).copied
                guard.execute("ROLLBACK")
                if copied - before <= _SHORT:
                    return
                before = copied

    def _begin(self, size: int, begun: Future[None]) -> None:
        try:
            # The copy of the rest logs what is wrong.
            with suppress(sqlite3.Error, StoreError):
                self.copy_most()
        finally:
            self._on_writer(partial(self._run, size=size))
            begun.set_result(None)

    def _run(self, writer: sqlite3.Connection, *, size: int) -> None:
        if self._over:
            return
        try:
            done = self.copy(writer)
        except StoreUnavailable:
            # Another process writes for long.
            self._back_off()
        except (sqlite3.Error, StoreError) as error:
            self._back_off()
            self._warn(f"the write-ahead log could not be copied into the database: {error}")
        else:
            # A short log in a large file was restarted by a connection without our settings.
            self._back_off(none=done.in_full and done.frames >= _SHORT // 2)
            if done.in_full:
                self._warned = False
                # Longer if the next commit cannot restart it, because of those that read from its end.
                self._hold = min(_LONGEST_HOLD, max(_FIRST_HOLD, self._hold * 2))
            elif size > LONG_LOG:
                self._warn(
                    f"the write-ahead log has grown to {size // MEGABYTE} MB, because a transaction keeps reading "
                    "from an old view of the file; end it"
                )
        finally:
            self.busy = False

    def _back_off(self, *, none: bool = False) -> None:
        self._pause = _FIRST_PAUSE if none else min(_LONGEST_PAUSE, self._pause * 2)
        self._not_before = time.monotonic() + self._pause

    def _warn(self, text: str) -> None:
        """Log what is wrong once, until it is well again."""
        if not self._warned:
            self._warned = True
            _log.warning("%s", text)


def _checkpoint(copier: sqlite3.Connection) -> CheckpointProgress:
    _, frames, copied = copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return CheckpointProgress(frames, copied)
