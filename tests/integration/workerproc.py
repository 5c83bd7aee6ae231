"""One worker, as the only thing that a process does."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

from duetime.failpoints import arm
from duetime.runtime import identity
from tests.integration import ledger
from tests.integration.tasks import App

_NETWORK = 0x40000000
"""`CLONE_NEWNET`, which Python 3.11 has no name for."""


async def serve(plan: dict[str, Any]) -> None:
    """Work until a signal comes; a second one hurries."""
    app = App(
        plan["url"],
        ticking=plan["ticking"],
        waiting=plan["waiting"],
        cpu=plan["cpu"],
        schedules=plan["declares"],
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    worker_running = app.scheduler.worker(**plan["settings"])
    async with worker_running as worker:

        def on_signal() -> None:
            if stop.is_set():
                worker.hurry()
            stop.set()

        loop.add_signal_handler(signal.SIGTERM, on_signal)
        ledger.write("ready", job=worker.id)
        signalled, told = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(worker.asked_to_stop())
        await asyncio.wait({signalled, told}, return_when=asyncio.FIRST_COMPLETED)
    ledger.write("stopped", job=worker.id)


def end_with_parent(leash: socket.socket) -> None:
    """End when the test that started this process ends, however it ends."""
    leash.recv(1)
    os._exit(1)


def set_clock(offset: float) -> None:
    """Let the wall clock of this process be wrong by some seconds."""
    right, right_ns = time.time, time.time_ns

    def wrong() -> float:
        return right() + offset

    def wrong_ns() -> int:
        return right_ns() + int(offset * 1e9)

    mock.patch.object(time, "time", wrong).start()
    mock.patch.object(time, "time_ns", wrong_ns).start()


def enter_network(name: str) -> None:
    """Move this thread, and those it starts, into a network namespace that `ip netns` has made."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open("rb") as namespace:
        if libc.setns(namespace.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {name}")


def run(plan: dict[str, Any], leash: socket.socket) -> None:
    """Follow the plan until a signal comes."""
    if plan["network"] is not None:
        enter_network(plan["network"])
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    threading.Thread(target=end_with_parent, args=(leash,), daemon=True).start()
    arm(plan["failpoint"])
    if plan["host_key"] is not None:
        # A worker that says it is on another host: nobody can look at its process.
        mock.patch.object(identity, "host_key", return_value=plan["host_key"]).start()
    if plan["clock_offset"]:
        set_clock(plan["clock_offset"])
    asyncio.run(serve(plan))
