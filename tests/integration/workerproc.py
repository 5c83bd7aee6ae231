"""One worker, as the only thing that a process does."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from typing import Any
from unittest import mock

from duetime.failpoints import arm
from duetime.runtime import identity
from tests.integration import ledger
from tests.integration.tasks import App


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


def run(plan: dict[str, Any], leash: socket.socket) -> None:
    """Follow the plan until a signal comes."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    threading.Thread(target=end_with_parent, args=(leash,), daemon=True).start()
    arm(plan["failpoint"])
    if plan["host_key"] is not None:
        # A worker that says it is on another host: nobody can look at its process.
        mock.patch.object(identity, "host_key", return_value=plan["host_key"]).start()
    asyncio.run(serve(plan))
