"""Files of tests, and the data of their servers, are kept in memory where there is room.

Tests kill processes and servers, never the machine: what they write need not wait for a disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - files in it have names that nobody guesses
ROOM = 4 * 2**30
"""A container has 64 MB of it unless it is told otherwise, which is not enough."""


def choose_folder() -> None:
    """Have everything temporary put into memory, also by the processes that tests start; `TMPDIR` says otherwise."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


choose_folder()
