"""Starts a child process with a line to it."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from multiprocessing import spawn
from typing import cast

from duetime.runtime.children.address import Home
from duetime.runtime.children.messages import Setup, to_order_line

# The path has to be known before anything can be imported by it. It comes over the line: a command line has a limit.
_BOOT = (
    "import json, os, socket, sys; line = socket.socket(fileno=os.dup(0)); orders = line.makefile('rb'); "
    "setup = json.loads(orders.readline() or sys.exit(1)); sys.path[:] = setup['path']; "
    "from duetime.runtime.children.serve import main; main(line, orders, setup)"
)


def launch() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a fresh interpreter that serves the other end of the returned socket, once it was introduced.

    To be called in the thread of the event loop: Linux ends the child with the thread that started it.
    """
    flags = cast("Callable[[], list[str]]", vars(subprocess)["_args_from_interpreter_flags"])()
    ours, theirs = socket.socketpair()
    try:
        # Safe from what lies in the current folder (-P), and a group of its own: Ctrl-C in a terminal leaves it alone,
        # and a kill takes along what its job started.
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [spawn.get_executable(), *flags, "-P", "-c", _BOOT],
            stdin=theirs.fileno(),
            process_group=0,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def introduction(homes: Iterable[Home]) -> bytes:
    """Return the first line that a child has to hear."""
    return to_order_line(
        Setup(
            parent=os.getpid(),
            path=[entry for entry in sys.path if isinstance(entry, str)],
            argv=sys.argv,
            homes=list(homes),
            log_level=logging.getLogger().level,
        )
    )
