"""Gives the scheduler of an application another database for the time of a test."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from duetime.errors import ConfigError
from duetime.model.time import Clock
from duetime.scheduler.scheduler import Scheduler
from duetime.testing.clock import FakeClock
from duetime.testing.hand import RestingWorker

MEMORY = "sqlite://"
"""A database in memory that is gone when the scheduler is closed."""


@contextmanager
def sandbox(scheduler: Scheduler, *, clock: Clock | None = None, url: str = MEMORY) -> Generator[Scheduler]:
    """Let a scheduler use an empty database in memory, and a clock that stands still, while the block lasts.

    It is not opened by this: the block may use it in any event loop, or without one by its `.sync` verbs. While the
    clock is a `FakeClock`, workers that are made of it, such as the one in `lifespan`, run nothing: `drain` does.
    """
    if scheduler.is_open:
        text = "the scheduler is open; close it before sandbox(scheduler), or enter the sandbox first"
        raise ConfigError(text)
    before = scheduler.url, scheduler.clock, scheduler.make_worker
    scheduler.url, scheduler.clock = url, FakeClock() if clock is None else clock
    if isinstance(scheduler.clock, FakeClock):
        scheduler.make_worker = RestingWorker
    try:
        yield scheduler
    finally:
        scheduler.sync.close()
        scheduler.url, scheduler.clock, scheduler.make_worker = before
