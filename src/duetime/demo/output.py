"""What the demo prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from duetime import Event, current_job

_LONGEST: Final = 200
_OUTCOMES: Final = {
    "job.succeeded": ("ok", 32),
    "job.retrying": ("failed, is tried again", 33),
    "job.failed": ("failed for good", 31),
    "job.interrupted": ("stopped, runs again", 33),
    "job.lost": ("lost with its process, runs again", 31),
}
"""What is said of the end of a run, and in which colour of the terminal."""


def print_run(**arguments: object) -> None:
    """Print one line about the job that calls this: process, task, arguments and how late it started."""
    job = current_job()
    call = _cut(", ".join(f"{name}={value!r}" for name, value in arguments.items()))
    late = job.lateness.total_seconds() * 1000
    _print(f"{_short_name(job.task)}({call})  try {job.attempt}  {late:.1f} ms late")


def print_outcome(event: Event) -> None:
    """Print one line about the end of a run, in colour on a terminal."""
    if event.kind in _OUTCOMES and event.task is not None:
        text, colour = _OUTCOMES[event.kind]
        error = "" if event.error is None else f": {_cut(event.error)}"
        _print(f"{_short_name(event.task)}  try {event.attempt}  {_coloured(text, colour)}{error}")


def _short_name(task: str) -> str:
    return task.rpartition(".")[2]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _coloured(text: str, colour: int) -> str:
    plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def _print(text: str) -> None:
    # One write, so that the lines of four processes do not mix.
    os.write(sys.stdout.fileno(), f"pid {os.getpid()}  {text}\n".encode("utf-8", "backslashreplace"))


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
