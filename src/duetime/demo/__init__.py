"""An example to run: a web application in four processes with schedules and jobs on one SQLite file."""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from duetime.errors import ConfigError, DuetimeError

HOST = "127.0.0.1"
DEFAULT_PORT = 10001
PROCESSES = 4

_LAST_PORT = 65_535
_STOP_WITHIN = 8.0


def run(port: int | str = DEFAULT_PORT) -> int:
    """Serve the example application until SIGINT or SIGTERM and return the exit code."""
    try:
        number = _check_port(port)
        _check_packages()
        _check_free(number)
        asyncio.run(_check_database())
    except DuetimeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    import uvicorn

    print(welcome(f"http://{HOST}:{number}", str(Path("duetime-demo.db").resolve())), flush=True)
    with _stop_in_time() as stopping:
        uvicorn.run(
            "duetime.demo.app:app",
            host=HOST,
            port=number,
            workers=PROCESSES,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
    return 0 if stopping.is_set() else 1


def _check_port(port: int | str) -> int:
    if not str(port).isdecimal() or not 1 <= int(port) <= _LAST_PORT:
        raise ConfigError(f"PORT must be a whole number from 1 to {_LAST_PORT}, not {port!r}")
    return int(port)


def _check_packages() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} not installed; run: pip install 'duetime[web]'")


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            fix = f"choose another, e.g. PORT={port % _LAST_PORT + 1}"
            raise ConfigError(f"port {port} cannot be used: {error.strerror}; {fix}") from None


async def _check_database() -> None:
    """Make the tables here, where a folder that cannot be written to is one message and not four."""
    from duetime.demo.app import scheduler

    async with scheduler:
        pass


@contextmanager
def _stop_in_time() -> Generator[threading.Event]:
    """Kill the processes that are left some time after a signal; tell whether there was one.

    uvicorn's supervisor takes the signals itself and waits for its processes without a limit, so this listens
    where Python notes the signals before it calls any handler.
    """
    reader, writer = socket.socketpair()
    writer.settimeout(0)
    before = signal.set_wakeup_fd(writer.fileno())
    stopping = threading.Event()
    threading.Thread(target=_watch, args=(reader, stopping), daemon=True).start()
    try:
        yield stopping
    finally:
        signal.set_wakeup_fd(before)
        writer.close()


def _watch(signals: socket.socket, stopping: threading.Event) -> None:
    with signals:
        while caught := signals.recv(1):
            if caught[0] == getattr(signal, "SIGHUP", None):
                # The terminal is gone: uvicorn would start its processes anew.
                os.kill(os.getpid(), signal.SIGTERM)
            elif caught[0] in (signal.SIGINT, signal.SIGTERM) and not stopping.is_set():
                stopping.set()
                killer = threading.Timer(_STOP_WITHIN, _kill_children)
                killer.daemon = True
                killer.start()


def _kill_children() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def things_to_try(address: str) -> list[str]:
    """Return commands for someone who has just started the demo."""
    address, command = address.rstrip("/"), _duetime_command()
    return [
        f"curl -X PUT '{address}/send_email_notification?user_id=1234&message=hello'",
        f"curl {address}/jobs",
        f"{command} jobs list --url sqlite:///duetime-demo.db",
        f"{command} jobs tail --url sqlite:///duetime-demo.db",
    ]


def _duetime_command() -> str:
    """Return how to call the command line that belongs to this Python, from the folder of the demo."""
    script = Path(sys.executable).with_name("duetime")
    if not script.exists():
        return "duetime"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def welcome(address: str, database: str) -> str:
    """Return what to print at the start."""
    commands = "\n".join(f"  {command}" for command in things_to_try(address))
    return f"""\
Duetime demo: four processes at {address}, one database: {database}

Each run has a line when it starts, with its process, its task and how late it is, and one when it has ended. A job
runs every minute, one every 20 seconds that fails half of the time and is tried again, a slow one every 45 seconds,
one a day.

Try, in another terminal and in this folder:
{commands}

Or kill -9 one of the processes: nothing is lost. Ctrl-C stops them all.
"""
