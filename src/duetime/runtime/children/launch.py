"""Starts a child process with a line to it."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple, cast

from duetime.runtime.children.address import Home
from duetime.runtime.children.messages import Setup, to_order_line
from duetime.runtime.children.orphan import lifeline

# The path has to be known before anything can be imported by it. It comes over the line: a command line has a limit.
_BOOT = (
    "import json, os, socket, sys; line = socket.socket(fileno=os.dup(0)); orders = line.makefile('rb'); "
    "setup = json.loads(orders.readline() or sys.exit(1)); sys.path[:] = setup['path']; "
    "from duetime.runtime.children.serve import main; main(line, orders, setup, int(sys.argv[1]))"
)


class Launched(NamedTuple):
    """A process that was started, and what leads to it."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    lifeline: socket.socket
    """Closed, it kills the process."""


def launch() -> Launched:
    """Start a fresh interpreter that serves the other end of its line, once it was introduced."""
    # Only here: it is large, and most workers start no children.
    from multiprocessing import spawn

    flags = cast("Callable[[], list[str]]", vars(subprocess)["_args_from_interpreter_flags"])()
    line, its_line = socket.socketpair()
    held, its_lifeline = lifeline()
    with its_line, its_lifeline:
        try:
            # Safe from what lies in the current folder (-P), and a group of its own: Ctrl-C in a terminal leaves it
            # alone, and a kill takes along what its job started.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [spawn.get_executable(), *flags, "-P", "-c", _BOOT, str(its_lifeline.fileno())],
                stdin=its_line.fileno(),
                pass_fds=[its_lifeline.fileno()],
                process_group=0,
            )
        except BaseException:
            line.close()
            held.close()
            raise
    return Launched(process, line, held)


def introduction(homes: Iterable[Home]) -> bytes:
    """Return the first line that a child has to hear."""
    return to_order_line(
        Setup(
            path=[entry for entry in sys.path if isinstance(entry, str)],
            argv=sys.argv,
            homes=list(homes),
            log_level=logging.getLogger().level,
        )
    )
