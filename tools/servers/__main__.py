"""Find the servers, install the missing ones where we may, and say what is absent."""

from __future__ import annotations

import os
import subprocess
import sys

from tools import apt
from tools.servers.binaries import PROGRAMS, ServerMissing, find

PACKAGES = {
    "postgres": "postgresql",
    "pgbouncer": "pgbouncer",
    "mariadbd": "mariadb-server",
    "redis-server": "redis-server",
    "etcd": "etcd-server",
    "openssl": "openssl",
}


def main() -> None:
    """Exit with an error only under `CI`; elsewhere the tests skip, loudly, what they cannot start."""
    if (missing := _missing()) and apt.available():
        try:
            apt.install(*(PACKAGES[name] for name in missing))
        except subprocess.CalledProcessError as error:
            print(f"Could not install {', '.join(missing)}: {error}", file=sys.stderr)
        missing = _missing()
    for name, reason in missing.items():
        print(f"MISSING {name}: {reason}", file=sys.stderr)
    if missing and os.environ.get("CI"):
        sys.exit(1)


def _missing() -> dict[str, str]:
    reasons: dict[str, str] = {}
    for name in PROGRAMS:
        try:
            find(name)
        except ServerMissing as missing:
            reasons[name] = str(missing)
    return reasons


main()
