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

import msgspec

from duetime.runtime.children.address import Home
from duetime.runtime.children.messages import Setup

# The path has to be known before anything can be imported by it.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from duetime.runtime.children.serve import main; main()"
)


def launch(homes: Iterable[Home]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a fresh interpreter that serves the other end of the returned socket.

    To be called in the thread of the event loop: Linux ends the child with the thread that started it.
    """
    setup = Setup(
        parent=os.getpid(),
        path=[entry for entry in sys.path if isinstance(entry, str)],
        argv=sys.argv,
        homes=list(homes),
        log_level=logging.getLogger().level,
    )
    flags = cast("Callable[[], list[str]]", vars(subprocess)["_args_from_interpreter_flags"])()
    ours, theirs = socket.socketpair()
    try:
        # A group of its own: Ctrl-C in a terminal leaves it alone, and a kill takes along what its job started.
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [spawn.get_executable(), *flags, "-c", _BOOT, msgspec.json.encode(setup).decode()],
            stdin=theirs.fileno(),
            process_group=0,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours
