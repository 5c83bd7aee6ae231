"""Install Debian packages without a question asked and without a service started."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

CREATE_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")
START_POLICY = Path("/usr/sbin/policy-rc.d")


def available() -> bool:
    """True when this process may install Debian packages."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> None:
    """Install the packages; raises `CalledProcessError` when one cannot be had."""
    _apt("update")
    with _no_service_starts():
        if "postgresql" in packages:
            # First the part that owns the setting: it makes the server package leave out its own cluster.
            _apt("install", "-y", "--no-install-recommends", "postgresql-common")
            with _no_main_cluster():
                _apt("install", "-y", "--no-install-recommends", *packages)
        else:
            _apt("install", "-y", "--no-install-recommends", *packages)


def _apt(*arguments: str) -> None:
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def _no_service_starts() -> Iterator[None]:
    if START_POLICY.exists():
        yield  # The machine has a policy of its own.
        return
    START_POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    START_POLICY.chmod(0o755)
    try:
        yield
    finally:
        START_POLICY.unlink()


@contextlib.contextmanager
def _no_main_cluster() -> Iterator[None]:
    before = CREATE_CLUSTER.read_text(encoding="utf-8")
    CREATE_CLUSTER.write_text(f"{before}\ncreate_main_cluster = false\n", encoding="utf-8")
    try:
        yield
    finally:
        CREATE_CLUSTER.write_text(before, encoding="utf-8")
