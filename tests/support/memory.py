"""Files of tests, and the data of their servers, are kept in memory where there is room.

Tests kill processes and servers, never the machine: what they write need not wait for a disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it is made by us, or not at all
ROOM = 4 * 2**30
"""A container has 64 MB of it unless it is told otherwise, which is not enough."""
_PREFIX = "duetime-tests-"


def choose_folder() -> None:
    """Have everything temporary put into memory, also by the processes that tests start; `TMPDIR` says otherwise."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return
    _remove_what_is_left()
    folder = MEMORY / f"{_PREFIX}{os.getpid()}"
    folder.mkdir()
    # Like every folder for temporary files: servers run under an account of their own, and have some, too.
    folder.chmod(0o1777)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def _remove_what_is_left() -> None:
    """Give back the memory of runs before this one: what failed in them may be looked at until the next."""
    for folder in MEMORY.glob(f"{_PREFIX}*"):
        pid = int(folder.name.removeprefix(_PREFIX))
        if pid == os.getpid() or not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


choose_folder()
