"""What the demo prints."""

from __future__ import annotations

import os
import sys

from duetime import current_job

_LONGEST = 200


def print_run(**arguments: object) -> None:
    """Print one line about the job that calls this: process, task, arguments and how late it started."""
    job = current_job()
    call = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    if len(call) > _LONGEST:
        call = f"{call[:_LONGEST]}…"
    task = job.task.rpartition(".")[2]
    late = job.lateness.total_seconds() * 1000
    line = f"pid {os.getpid()}  {task}({call})  try {job.attempt}  {late:.1f} ms late\n"
    # One write, so that the lines of four processes do not mix.
    os.write(sys.stdout.fileno(), line.encode("utf-8", "backslashreplace"))


def things_to_try(address: str) -> list[str]:
    """Return commands for someone who has just started the demo."""
    address = address.rstrip("/")
    return [
        f"curl -X PUT '{address}/send_email_notification?user_id=1234&message=hello'",
        f"curl {address}/jobs",
        "duetime jobs list --url sqlite:///duetime-demo.db",
        "duetime jobs tail --url sqlite:///duetime-demo.db",
    ]


def welcome(address: str, database: str) -> str:
    """Return what to print at the start."""
    commands = "\n".join(f"  {command}" for command in things_to_try(address))
    return f"""\
Duetime demo: four processes at {address}, one database: {database}

Each line below is one run: which process, which task, how late. A job runs every minute, one every 20
seconds that fails half of the time and is tried again, a slow one every 45 seconds, one a day.

Try, in another terminal:
{commands}

Or kill -9 one of the processes: nothing is lost. Ctrl-C stops them all.
"""
