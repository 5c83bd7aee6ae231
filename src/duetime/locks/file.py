"""Locks in files, for the processes of one machine.

The operating system's lock on the file is held only while the record in it is read and written. If it were the lock itself,
a process that stands still would keep it for ever. The file is never removed: a process that had it open would own a
lock that no one else sees.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Final
from urllib.parse import quote

import msgspec

from duetime.errors import ConfigError, InvalidName, StoreUnavailable
from duetime.locks.base import DEFAULT_TTL, DistributedLock, LockOwner, log
from duetime.model.locks import Attempt
from duetime.model.time import SECOND, Duration, Instant, Micros, SystemClock, to_datetime
from duetime.runtime.identity import boot_id, host_key, is_gone, process_started
from duetime.runtime.store_clock import boottime

_LONGEST_NAME: Final = 250
_LONGEST_WAIT: Final[Micros] = 5 * SECOND
_PAUSE: Final = 0.002
_LARGEST_RECORD: Final = 4096
_MOUNTS: Final = "/proc/self/mountinfo"
_NETWORKS: Final = ("nfs", "cifs", "smb", "9p", "afs", "fuse.sshfs")

_clock: Final = SystemClock()
_boot: Final = cache(boot_id)


class FileLock(DistributedLock):
    """A lock in a file of a folder; processes of other machines do not see it."""

    longest_pause = 0.25

    def __init__(
        self, name: str, folder: str, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None
    ) -> None:
        """`folder` has to be there, on a local disk."""
        super().__init__(name, ttl=ttl, timeout=timeout)
        check_folder(folder)
        self._folder = os.path.realpath(folder)
        self._path = os.path.join(self._folder, f"{quote(name, safe='')}.lock")
        if len(os.path.basename(self._path)) > _LONGEST_NAME:
            raise InvalidName(f"lock name {name[:40]!r}… is too long for the name of a file; shorten it")

    @property
    def place(self) -> str:
        """The folder."""
        return self._folder

    async def try_take(self, *, token: str, holder: str, instead_of: str | None = None) -> Attempt:
        """Write us down as the owner, unless the last one is alive and in time."""
        async with self._locked() as file:
            last = file.read()
            if last is not None and last.token != instead_of and not last.is_over():
                return Attempt(None, last.deadline - boottime())
            now = _clock.now()
            fence = now if last is None else max(last.fence + 1, now)
            pid = os.getpid()
            file.write(
                _Record(
                    token=token,
                    holder=holder,
                    host_key=host_key(),
                    pid=pid,
                    pid_started=process_started(pid),
                    boot=_boot(),
                    fence=fence,
                    since=now,
                    deadline=boottime() + self.ttl,
                )
            )
            return Attempt(fence, self.ttl)

    async def try_extend(self, *, token: str) -> bool:
        """Put the deadline off."""
        return await self._change(token, ttl=self.ttl)

    async def try_release(self, *, token: str) -> bool:
        """Let the deadline be over; the record stays, for its fence."""
        return await self._change(token, ttl=0)

    async def owner(self) -> LockOwner | None:
        """Return who holds it."""
        async with self._locked() as file:
            record = file.read()
        if record is None or record.is_over():
            return None
        return LockOwner(
            name=self.name,
            holder=record.holder,
            fence=record.fence,
            since=to_datetime(record.since),
            deadline=to_datetime(_clock.now() + record.deadline - boottime()),
            token=record.token,
        )

    async def cleanup(self) -> int:
        """Remove nothing: a lock file stays."""
        return 0

    async def _change(self, token: str, *, ttl: Micros) -> bool:
        async with self._locked() as file:
            record = file.read()
            if record is None or record.token != token or record.is_over():
                return False
            file.write(replace(record, deadline=boottime() + ttl if ttl else 0))
            return True

    @asynccontextmanager
    async def _locked(self) -> AsyncGenerator[_RecordFile]:
        """Open the file, and have it alone for a moment."""
        file = _RecordFile(self._path)
        try:
            until = boottime() + _LONGEST_WAIT
            while not file.try_lock():
                if boottime() > until:
                    raise StoreUnavailable(
                        f"{self._path} is in use; a process seems to have been stopped in the middle"
                    )
                await asyncio.sleep(_PAUSE)
            yield file
        finally:
            file.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What a lock file says."""

    token: str
    holder: str
    host_key: str | None
    """Equal for processes that see the same processes."""
    pid: int
    pid_started: str | None
    boot: str
    fence: int
    since: Instant
    deadline: Micros
    """On the clock that counts from the start of the machine, also while it sleeps."""

    def is_over(self) -> bool:
        """Whether the deadline has passed, the machine was started anew, or the process is seen to be gone."""
        if self.deadline <= boottime() or self.boot != _boot():
            return True
        return (
            self.host_key is not None and self.host_key == host_key() and is_gone(self.pid, self.pid_started)
        )


class _RecordFile:
    """An open lock file."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
        except OSError as error:
            raise StoreUnavailable(f"the lock file {path} cannot be opened: {error.strerror}") from error

    def try_lock(self) -> bool:
        import fcntl

        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def read(self) -> _Record | None:
        text = os.pread(self._fd, _LARGEST_RECORD, 0)
        try:
            return msgspec.json.decode(text, type=_Record) if text else None
        except msgspec.MsgspecError:
            log.warning("the lock file %s holds no record of a lock; it is taken as free", self._path)
            return None

    def write(self, record: _Record) -> None:
        text = msgspec.json.encode(record)
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))

    def close(self) -> None:
        os.close(self._fd)


def check_folder(folder: str) -> None:
    """Raise `ConfigError` for a folder in which locks cannot be kept."""
    if importlib.util.find_spec("fcntl") is None:
        raise ConfigError("this system cannot lock files as we do; keep locks in a database")
    if not os.path.isdir(folder):
        raise ConfigError(f"the folder for locks {folder} is not there; make it: mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"the folder for locks {folder} is not writable for this user")
    kind = _file_system(os.path.realpath(folder))
    if kind.startswith(_NETWORKS):
        raise ConfigError(
            f"the folder for locks {folder} is on {kind}, a network file system; name a local folder, or keep locks in a "
            "database that all machines reach"
        )


def _file_system(folder: str) -> str:
    """Return the kind of file system that a folder is on, or nothing where that cannot be known."""
    found: list[tuple[int, str]] = []
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                before, _, after = line.partition(" - ")
                point = before.split(" ")[4].replace("\\040", " ")
                if f"{folder}/".startswith(f"{point.rstrip('/')}/"):
                    found.append((len(point), after.split(" ")[0]))
    except OSError:
        return ""
    return max(found, default=(0, ""))[1]
