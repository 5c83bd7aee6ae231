"""Where worker processes come from: forked, in milliseconds, from one process that has imported everything."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration import workerproc
from tests.integration.tasks import App

ROOT = Path(__file__).parents[2]
MOST = 2**20
"""Bytes of a request: a plan and an environment."""
PRELOADED = ("duetime.model", "duetime.runtime", "duetime.scheduler")


class Born(NamedTuple):
    """A process, and the line that holds it: closed at our end it ends the process, and it is closed by its end."""

    pid: int
    leash: socket.socket


class Nursery:
    """Asks for processes; those that are left end with the test process."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def bear(self, plan: dict[str, Any], *, environment: dict[str, str], log: Path) -> Born:
        """Start a worker process that follows the plan and writes what it says into a file."""
        request = json.dumps({"plan": plan, "environment": environment}).encode()
        leash, its_leash = socket.socketpair()
        with its_leash, log.open("wb") as said:
            socket.send_fds(self._line, [request], [its_leash.fileno(), said.fileno()])
            answer = self._line.recv(64)
        if not answer:
            raise ChildProcessError("the process that worker processes are forked from has ended")
        return Born(int(answer), leash)


@contextmanager
def opened() -> Iterator[Nursery]:
    """Run the process that worker processes are forked from."""
    line, its_line = socket.socketpair()
    with line:
        with its_line:
            descriptor = its_line.fileno()
            process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", __name__, str(descriptor)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
            )
        yield Nursery(line)
    process.wait()


class Order(NamedTuple):
    """What a process is forked for."""

    plan: dict[str, Any]
    leash: socket.socket


def serve(line: socket.socket) -> Order | None:
    """Answer requests until nobody is left to ask; return, in a process that was forked for one, what it is."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(line, MOST, 2)
        if not request:
            return None
        leash, log = descriptors
        order = json.loads(request)
        # Never used: it imports the driver and reads the statements, once for all processes.
        App(order["plan"]["url"])
        if child := os.fork():
            line.sendall(str(child).encode())
            os.close(leash)
            os.close(log)
            continue
        line.close()
        for standard in (sys.stdout, sys.stderr):
            os.dup2(log, standard.fileno())
        os.close(log)
        os.environ.clear()
        os.environ.update(order["environment"])
        # Programs that its jobs start must not keep it open.
        os.set_inheritable(leash, False)
        return Order(order["plan"], socket.socket(fileno=leash))


def main() -> None:
    """Be the process that others are forked from, or one of those."""
    for package in PRELOADED:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    # Nobody asks how a process has ended, and none stays behind as a zombie.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    order = serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        workerproc.run(order.plan, order.leash)


if __name__ == "__main__":
    main()
