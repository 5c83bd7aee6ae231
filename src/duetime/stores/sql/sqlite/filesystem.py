"""The file a SQLite database lives in, before SQLite touches it."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Final, TypeAlias

from duetime.errors import NoSuchFile, StoreUnusable

StrPath: TypeAlias = str | os.PathLike[str]

_MOUNTS: Final = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_NETWORK = frozenset({
    "9p", "afs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "lustre",
    "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs",
})  # fmt: skip


def prepare(path: StrPath, *, make: bool = True) -> None:
    """Create the file, readable for its owner only, or say why it cannot be used; unless `make`, it must be there."""
    folder = folder_of(path)
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
    with contextlib.suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise
        except OSError as error:
            raise StoreUnusable(
                f"{path} cannot be created ({error.strerror}); give this user the right to write in {folder}"
            ) from None
    # The write-ahead log is in the same folder.
    for place in (folder, path):
        if not os.access(place, os.W_OK):
            raise StoreUnusable(f"{place} cannot be written; give this user the right to write to it")


def log_of(path: StrPath) -> str:
    """Return the path of the log: SQLite follows links, and keeps it next to the file itself."""
    return f"{os.path.realpath(path)}-wal"


def folder_of(path: StrPath) -> str:
    """Return the folder that a file lies in."""
    return os.path.dirname(path) or os.curdir


def filesystem_type(path: StrPath, mounts: str | None = None) -> str | None:
    """Return the type of the file system a path is on, or `None` where that cannot be told."""
    if mounts is None:
        try:
            with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
                mounts = file.read()
        except OSError:
            return None
    resolved = os.path.realpath(path)
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if not right or len(fields) < 5:  # noqa: PLR2004 -- the fifth field is the mount point
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        # A later mount on the same point hides the earlier one.
        below = f"{resolved}/".startswith(f"{point.rstrip('/')}/")
        if below and (found is None or len(point) >= found[0]):
            found = (len(point), right.split(" ")[0])
    return found[1] if found else None
