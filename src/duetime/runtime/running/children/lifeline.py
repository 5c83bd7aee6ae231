"""A child process and what its job has started do not outlive its worker, however that ends."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from weakref import WeakSet

_F_SETSIG = 10

_open_ends: WeakSet[socket.socket] = WeakSet()


def open_lifeline() -> tuple[socket.socket, socket.socket]:
    """Return our end of a line on which nothing is ever said, and the child's: ours is closed when we die."""
    ours, theirs = socket.socketpair()
    _open_ends.add(ours)
    return ours, theirs


def die_with_worker(lifeline: int) -> None:
    """Be killed, with the whole group, when the other end is closed; elsewhere the end of the orders has to tell."""
    os.set_inheritable(lifeline, False)  # noqa: FBT003 - takes no keyword
    if sys.platform == "linux":
        import fcntl

        # By the kernel: code that never lets go of the interpreter would keep a thread of ours from seeing the end.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    already = select.poll()
    already.register(lifeline, select.POLLIN)
    if already.poll(0):
        os._exit(1)


def _close_inherited() -> None:
    # A process that a handler forks from the worker must not keep the worker's children alive.
    for end in _open_ends:
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
