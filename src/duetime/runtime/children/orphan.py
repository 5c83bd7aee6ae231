"""A child process does not outlive its parent, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Be killed when the parent dies; where the system cannot promise that, the end of the line has to tell."""
    if sys.platform == "linux":
        # Code that never lets go of the interpreter would keep a thread from seeing the end of the line.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
