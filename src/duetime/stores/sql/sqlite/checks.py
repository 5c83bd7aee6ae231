"""What can be wrong with a SQLite and its file, before it is opened and while it is open."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
from typing import TYPE_CHECKING, Final

from duetime.errors import NoSuchFile, StoreUnavailable, StoreUnusable
from duetime.stores.base import DoctorCheck
from duetime.stores.sql.sqlite.checkpoint import LOG_LIMIT
from duetime.stores.sql.sqlite.errors import StrPath
from duetime.stores.sql.sqlite.lock_holders import readers

if TYPE_CHECKING:
    from duetime.stores.sql.sqlite.database import Database


MEGABYTE: Final = 1_000_000
LEAST_FREE: Final = 100 * MEGABYTE
"""The free space of a disk that is not nearly full, in bytes."""

_COPY_TRIES: Final = 5
_BETWEEN_TRIES: Final = 0.2
_SYNCHRONOUS: Final = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
_MOUNTS: Final = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_NETWORK = frozenset({
    "9p", "afs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "lustre",
    "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs",
})  # fmt: skip


def prepare(path: StrPath, *, make: bool = True) -> None:
    """Create the file, readable for its owner only, or say why it cannot be used; unless `make`, it must be there."""
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        raise StoreUnusable(f"{path} is a folder; name a file in it")
    if not os.path.isdir(folder):
        raise StoreUnusable(f"the folder {folder} does not exist; create it: mkdir -p {folder}")
    if not make and not os.path.exists(path):
        raise NoSuchFile(
            f"there is no file {path}; check the URL, or make it: duetime migrate --url sqlite:///{path}"
        )
    kind = filesystem_type(path)
    if kind in _NETWORK:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), where SQLite cannot lock safely; "
            "use a local disk, or PostgreSQL"
        )
    # An existing file is never opened here: closing it again would drop the locks that SQLite holds on it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreUnusable(
            f"{path} cannot be created ({error.strerror}); give this user the right to write in {folder}"
        ) from None
    # The write-ahead log is in the same folder.
    for place in (folder, path):
        if not os.access(place, os.W_OK):
            raise StoreUnusable(f"{place} cannot be written; give this user the right to write to it")


def filesystem_type(path: StrPath, mounts: str | None = None) -> str | None:
    """Return the type of the file system a path is on, or `None` where that cannot be told."""
    if mounts is None:
        try:
            with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
                mounts = file.read()
        except OSError:
            return None
    resolved, longest, found = os.path.realpath(path), -1, None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        # The fifth field is the mount point.
        _, _, _, _, escaped, *_ = [*left.split(" "), *[""] * 5]
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), escaped)
        # A later mount on the same point hides the earlier one.
        if point and f"{resolved}/".startswith(f"{point.rstrip('/')}/") and len(point) >= longest:
            longest, found = len(point), right.split(" ")[0]
    return found


def examine(connection: sqlite3.Connection, database: Database) -> list[DoctorCheck]:
    """Look at the version, the settings, the file, its log and its content."""
    checks = [DoctorCheck.of("version", ok=True, detail=f"SQLite {sqlite3.sqlite_version}")]
    if (path := database.path) is not None:
        checks += [_durability(connection), _log(connection, database, path), *_file(path)]
    answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    fix = "restore a backup, or recover with: sqlite3 FILE .recover"
    return [*checks, DoctorCheck.of("integrity", answer == "ok", answer, fix)]


def _log(connection: sqlite3.Connection, database: Database, path: StrPath) -> DoctorCheck:
    """Tell how large the log is, and if it is too large, whether a reader keeps it from being copied into the file."""
    size = database.look()
    text = f"{size / MEGABYTE:.1f} MB"
    try:
        if size <= LOG_LIMIT or _is_copied(connection, database):
            return DoctorCheck.of("log", ok=True, detail=text)
    except StoreUnavailable as error:
        return DoctorCheck.refused("log", error)
    holders = " or ".join(readers(path))
    fix = f"end it: process {holders}" if holders else f"see who has it open: fuser -v {path}"
    detail = f"{text}, and it grows as long as a transaction reads from an old view of the file"
    return DoctorCheck.of("log", ok=False, detail=detail, fix=fix)


def _is_copied(connection: sqlite3.Connection, database: Database) -> bool:
    """Whether the log can be copied in full within a second."""
    database.checkpoints.copy_most()
    for _ in range(_COPY_TRIES):
        if database.checkpoints.copy(connection).in_full:
            return True
        time.sleep(_BETWEEN_TRIES)
    return False


def _durability(connection: sqlite3.Connection) -> DoctorCheck:
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = _SYNCHRONOUS.get(connection.execute("PRAGMA synchronous").fetchone()[0], "unknown")
    durable = journal == "wal" and level in {"FULL", "EXTRA"}
    lax = "a power cut can undo the last commits; drop synchronous=NORMAL from the URL"
    fix = lax if journal == "wal" else "put the file where write-ahead logs work, such as a local disk"
    return DoctorCheck.of("durability", durable, f"journal mode {journal}, synchronous {level}", fix)


def _file(path: StrPath) -> list[DoctorCheck]:
    free, mode = shutil.disk_usage(path).free, os.stat(path).st_mode & 0o777
    place = f"{path} on {filesystem_type(path) or 'an unknown one'}, {free // MEGABYTE:,} MB free"
    others = f"others can read the arguments of jobs: chmod 600 {path}"
    full = "free some space there before nothing can be written"
    return [
        DoctorCheck.of("file system", free >= LEAST_FREE, place, full),
        DoctorCheck.of("file mode", not mode & 0o077, f"{mode:04o}", others),
    ]
