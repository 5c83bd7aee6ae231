"""Where the server programs are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# Debian keeps PostgreSQL's own programs off PATH, one folder per version, and others in an administrator's.
FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/sbin")

PROGRAMS = ("postgres", "pgbouncer", "mariadbd", "redis-server", "etcd", "openssl")


class ServerMissing(Exception):
    """A server program is not on this machine; the text says how to get it."""


def find(name: str) -> Path:
    """Return the program's path, the newest where there are several."""
    hidden = [program for folder in FOLDERS for program in Path("/").glob(f"{folder[1:]}/{name}")]
    usable = [program for program in hidden if os.access(program, os.X_OK)]
    if usable:
        return max(usable, key=_version)
    if on_path := shutil.which(name):
        return Path(on_path)
    raise ServerMissing(
        f"no `{name}` here. Try: sudo apt install postgresql pgbouncer mariadb-server redis-server etcd-server "
        "(as root, `make servers`)"
    )


def _version(program: Path) -> int:
    """Read 15 out of /usr/lib/postgresql/15/bin/postgres, so that 15 is newer than 9."""
    return max(
        (int(digits) for part in program.parts if (digits := "".join(filter(str.isdigit, part)))), default=0
    )
