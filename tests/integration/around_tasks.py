"""A task for child processes, and code around it that is bound to a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from duetime import JobContext, Scheduler

scheduler = Scheduler("sqlite:///unused.db")
local = threading.local()


@scheduler.around
def connection(job: JobContext) -> Iterator[None]:
    local.connection = f"for {job.id}"
    yield
    del local.connection


@scheduler.task(name="count", cpu=True)
def count() -> str:
    connection: str = local.connection
    return connection
