"""Events of one file that comes and goes, straight from Linux."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable

from duetime.stores.sql.sqlite.filesystem import StrPath, folder_of

_MODIFY, _ATTRIB, _CLOSE_NOWRITE, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x10, 0x400, 0x800
_CREATE, _MOVED_TO = 0x100, 0x80
_FILE_EVENTS = _MODIFY | _ATTRIB | _CLOSE_NOWRITE | _DELETE_SELF | _MOVE_SELF
_FOLDER_EVENTS = _CREATE | _MOVED_TO
_HEADER = struct.Struct("iIII")
_READ_SIZE = 65536


class LogEvents:
    """Calls back in the running event loop when a file was written or touched, also after it was removed and made anew.

    Raises `OSError` or `NotImplementedError` where the system, its limits or the event loop do not allow it.
    """

    def __init__(self, file: StrPath, *, on_write: Callable[[], None], on_touch: Callable[[], None]) -> None:
        self._file = file
        self._on_write = on_write
        self._on_touch = on_touch
        self._file_watch: int | None = None
        self._folder_watch: int | None = None
        self._libc = _libc()
        self._fd: int = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._loop = asyncio.get_running_loop()
        try:
            self._arm()
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
        masks = set(_masks(data))
        if _CLOSE_NOWRITE in masks:
            self._on_touch()
        before = self._file_watch
        if not masks <= {_MODIFY, _CLOSE_NOWRITE}:
            # A folder that is gone cannot be watched; whoever uses the database will say so.
            with contextlib.suppress(OSError):
                self._arm()
        # A file that is removed while somebody has it open tells no more than one that is touched.
        if not masks <= {_ATTRIB, _CLOSE_NOWRITE} or self._file_watch != before:
            self._on_write()

    def _arm(self) -> None:
        """Watch the file, or its folder until the file is there."""
        if not self._watch_file():
            self._folder_watch = self._watch(folder_of(self._file), _FOLDER_EVENTS)
            # It may have come after the first try and before the folder was watched.
            self._watch_file()

    def _watch_file(self) -> bool:
        try:
            self._file_watch = self._watch(self._file, _FILE_EVENTS)
        except FileNotFoundError:
            self._file_watch = None
            return False
        if self._folder_watch is not None:
            self._libc.inotify_rm_watch(self._fd, self._folder_watch)
            self._folder_watch = None
        return True

    def _watch(self, path: StrPath, events: int) -> int:
        return self._checked(self._libc.inotify_add_watch(self._fd, os.fsencode(path), events))

    @staticmethod
    def _checked(answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


def touch(file: StrPath) -> None:
    """Let those know who watch a file, by opening and closing it; one that is not there has nobody to tell.

    SQLite opens its log for writing, so that nobody else is heard. To set the time of the file instead was measured to
    make enqueuing one by one dearer. Never to be done to a file that SQLite locks: to close it
    would drop the locks of this process.
    """
    try:  # noqa: SIM105 -- done for every job, and `suppress` takes as long as the rest
        os.close(os.open(file, os.O_RDONLY))
    except OSError:
        pass


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "inotify is a part of Linux")
    return ctypes.CDLL(None, use_errno=True)


def _masks(data: bytes) -> list[int]:
    """Read the kinds of the events; each is followed by a name of the length it tells."""
    masks: list[int] = []
    position = 0
    while position < len(data):
        _, mask, _, name_length = _HEADER.unpack_from(data, position)
        masks.append(mask)
        position += _HEADER.size + name_length
    return masks
