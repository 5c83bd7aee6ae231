"""An application for the command line, and ways to run the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from click.testing import CliRunner, Result

from duetime.cli import main

APP = """
from __future__ import annotations

import asyncio
import datetime
import os
import time

import duetime.runtime.worker
from duetime import Scheduler

# How long a stop waits for what does not end; the tests are in a hurry.
duetime.runtime.worker.DRAIN_TIMEOUT = 0.2

scheduler = Scheduler("sqlite:///jobs.db")
something = 7


def say(line: str) -> None:
    os.write(1, f"{line}\\n".encode())


@scheduler.task
async def greet(name: str, times: int = 1, day: datetime.date | None = None, more: list[int] | None = None) -> str:
    say(f"hello {name} {times} {day!r} {more}")
    return name


@scheduler.task
def plain(value) -> None:
    say(f"plain {value!r}")


@scheduler.task
async def slow() -> None:
    say("slow began")
    await asyncio.sleep(60)


@scheduler.task
def stuck() -> None:
    say("stuck began")
    time.sleep(60)


@scheduler.task
async def block() -> None:
    say("block began")
    time.sleep(60)


@scheduler.task
async def fail() -> None:
    raise RuntimeError("bell \\x07 and \\x1b[31mred")
"""

URL = ("--url", "sqlite:///jobs.db")


def duetime(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def from_json(*arguments: str) -> Any:
    return json.loads(duetime(*arguments, "--json").stdout)


def worker(*arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A real worker whose output and log can be read."""
    return program("worker", *arguments)


@contextmanager
def program(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until it is stopped, in a process of its own."""
    command = [sys.executable, "-m", "duetime.cli", name, "shop:scheduler", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], text: str) -> str:
    """Read what a process says until a line has the text, and return that line."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return line
    raise AssertionError(f"it never said {text!r}:\n{''.join(seen)}")
