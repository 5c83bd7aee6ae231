"""A web application that sends mail later, and has some things to do regularly."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from functools import partial
from typing import Any, Final

from fastapi import FastAPI, Request

from duetime import Event, JobRecord, Scheduler, cron, current_job, every
from duetime.demo import things_to_try

DELAY = float(os.environ.get("DEMO_DELAY", "10"))
SHELVES = 15
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
    _print(f"{_after_dot(job.task)}({call})  try {job.attempt}  {late:.1f} ms late")


def print_outcome(event: Event) -> None:
    """Print one line about the end of a run, in colour on a terminal."""
    if event.kind in _OUTCOMES and event.task is not None:
        text, colour = _OUTCOMES[event.kind]
        error = "" if event.error is None else f": {_cut(event.error)}"
        _print(f"{_after_dot(event.task)}  try {event.attempt}  {_coloured(text, colour)}{error}")


def _after_dot(task: str) -> str:
    return task.rpartition(".")[2]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _coloured(text: str, colour: int) -> str:
    plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def _print(text: str) -> None:
    # One write, so that the lines of four processes do not mix.
    os.write(sys.stdout.fileno(), f"pid {os.getpid()}  {text}\n".encode("utf-8", "backslashreplace"))


scheduler = Scheduler("sqlite:///duetime-demo.db")
app = FastAPI(title="Duetime demo", lifespan=partial(scheduler.lifespan, grace=3))
scheduler.events.subscribe(print_outcome)


@scheduler.task(retries=3, timeout=30)
async def send_email(user_id: int, message: str) -> str:
    """Send a mail, or at least say so."""
    print_run(user_id=user_id, message=message)
    return f"sent to user {user_id}"


@scheduler.schedule(cron("* * * * *"))
async def every_minute() -> None:
    """Run at the full minute, once, however many processes there are."""
    print_run()


@scheduler.schedule(cron("30 9 * * *", tz="Europe/Berlin"))
def daily_report() -> None:
    """Run at half past nine in Berlin, summer and winter; a plain function runs in a thread."""
    print_run()


@scheduler.schedule(every("20s"))
@scheduler.task(retries=[2, 2, 2])
async def fetch_rates() -> None:
    """Ask a service that sometimes does not answer; two seconds later it is asked again."""
    print_run()
    if random.random() < 0.5:  # noqa: PLR2004 - every other time
        raise ConnectionError("the service does not answer")


@scheduler.schedule(every("45s"))
async def rebuild_index() -> None:
    """Take a while, and say how far it is; nothing else waits for it."""
    print_run()
    for shelf in range(1, SHELVES + 1):
        await asyncio.sleep(1)
        await current_job().progress(shelf / SHELVES, f"shelf {shelf}")


@app.put("/send_email_notification")
async def send_email_notification(user_id: int, message: str) -> dict[str, Any]:
    """Schedule a mail in ten seconds; it is sent even if every process ends meanwhile and one starts again."""
    job = await send_email.options(delay=DELAY).enqueue(user_id, message)
    record = await job.record()
    return {"job": job.id, "due_at": record.due_at, "accepted_by": os.getpid()}


@app.get("/jobs")
async def recent_jobs() -> list[dict[str, Any]]:
    """List the newest jobs."""
    return [_job_values(job) for job in await scheduler.jobs.list(limit=20)]


def _job_values(job: JobRecord) -> dict[str, Any]:
    late = None if job.lateness is None else job.lateness.total_seconds() * 1000
    names = ("task", "arguments", "state", "due_at", "attempt", "progress", "result", "error")
    return {"job": job.id, "late_ms": late, **{name: getattr(job, name) for name in names}}


@app.get("/")
async def index(request: Request) -> dict[str, Any]:
    """Say what this is and what to try."""
    return {"name": "Duetime demo", "process": os.getpid(), "try": things_to_try(str(request.base_url))}
