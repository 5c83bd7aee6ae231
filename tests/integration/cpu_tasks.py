"""Tasks for child processes: plain functions at the top of a module, where a child finds them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from contextvars import copy_context
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import NoReturn

from duetime import Cancel, Snooze, current_job
from tests.integration.tasks import say

_LOOK = 0.005
_kept: list[bytes] = []


@dataclass
class Order:
    number: int
    day: date


@dataclass
class Seen:
    pid: int
    job: str
    attempt: int
    fence: int
    due_at: datetime
    started_at: datetime
    order: Order


def who() -> int:
    return os.getpid()


def surroundings() -> int:
    """Return a sum of what the process was started with."""
    return zlib.crc32(ascii([sys.argv, sys.path]).encode())


def lock_fence() -> int | None:
    return current_job().lock_fence


def look(order: Order) -> Seen:
    job = current_job()
    return Seen(os.getpid(), job.id, job.attempt, job.fence, job.due_at, job.started_at, order)


def meet(mine: str, other: str) -> int:
    """End when another job is running, too."""
    Path(mine).touch()
    while not Path(other).exists():
        time.sleep(_LOOK)
    return os.getpid()


def start_program(pid_file: str) -> None:
    """Wait for a program that does not end by itself."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pid_file).write_text(str(program.pid), encoding="ascii")
    say("start")
    program.wait()


def die_first(how: str) -> int:
    """Take the process down at the first try."""
    if current_job().attempt == 1:
        if how == "fork" and os.fork() == 0:
            time.sleep(600)
        if how != "kill":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def keep(megabytes: int) -> int:
    """Hold memory until the process ends."""
    _kept.append(b"x" * (megabytes << 20))
    return os.getpid()


def tell() -> None:
    try:
        os.environ["NOTHING"]
    except KeyError:
        logging.getLogger("cpu").exception("in %s", current_job().id)


def leave_talker(gate: str, done: str) -> None:
    """Leave a thread that logs once a gate opens, as if the job still ran."""

    def talk() -> None:
        while not Path(gate).exists():
            time.sleep(_LOOK)
        logging.getLogger("cpu").error("late")
        Path(done).touch()

    threading.Thread(target=copy_context().run, args=[talk], daemon=True).start()


def let_talk(gate: str, done: str) -> None:
    """Log, and let the thread of an earlier job do so."""
    logging.getLogger("cpu").error("mine")
    Path(gate).touch()
    while not Path(done).exists():
        time.sleep(_LOOK)


def put_off() -> int:
    """Ask for another run, and return which one it was."""
    if current_job().fence == 1:
        raise Snooze("10ms")
    return current_job().fence


def report(gate: str) -> None:
    """Say how far it is, often, and wait for a gate half way."""
    job = current_job()
    for step in range(1, 1_001):
        job.progress(step / 2_000, f"step {step}")
    while not Path(gate).exists():
        time.sleep(_LOOK)
    job.progress(1, "done")


def misbehave(how: str) -> int:
    """Do to the process what a guest should not."""
    if how == "output":
        sys.stdout.close()
    elif how == "note":
        current_job().progress(0.5, "\ud800")
    elif how == "words":
        raise Cancel("\ud800")
    elif how == "log":
        logging.getLogger("\ud800").error("\ud800 %s %s", 1)  # noqa: PLE1206 - the offence is the point
    elif how == "fork" and os.fork() == 0:
        logging.getLogger("fork").error("not on our line")
        time.sleep(600)
    return os.getpid()


def fail() -> NoReturn:
    raise SystemExit("of its own")


def signal_something(*, back: bool) -> Snooze:
    """Put the job off: by what is returned, or by what is raised."""
    if back:
        return Snooze("1h")
    raise Snooze("1h")
