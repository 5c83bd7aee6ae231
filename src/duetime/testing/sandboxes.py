"""Gives the scheduler of an application another database, or a place of its own in one, for the time of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from duetime.errors import ConfigError, NoSuchFile, StoreUnavailable
from duetime.model.ids import new_token
from duetime.model.time import Clock
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.hand import RestingWorker

MEMORY = "sqlite://"
"""A database in memory that is gone when the scheduler is closed."""
_PATIENCE = 10.0


@contextmanager
def sandbox(scheduler: Scheduler, *, clock: Clock | None = None, url: str = MEMORY) -> Generator[Scheduler]:
    """Let a scheduler use an empty database in memory, and a clock that stands still, while the block lasts.

    With a `url` it uses that database: its tables get a name of their own there, and are removed when the block ends.
    Nothing else in it is touched, the application's own jobs included.

    It is not opened by this: the block may use it in any event loop, or without one by its `.sync` verbs. While the
    clock is a `FakeClock`, workers that are made of it, such as the one in `lifespan`, run nothing: `drain` does.
    """
    if scheduler.is_open:
        text = "the scheduler is open; close it before sandbox(scheduler), or enter the sandbox first"
        raise ConfigError(text)
    clock = FakeClock() if clock is None else clock
    settings = {
        "url": url,
        "namespace": f"duetime_test_{new_token()[:16]}",
        "clock": clock,
        "auto_migrate": True,
        "lock_url": None,
        "make_worker": RestingWorker if isinstance(clock, FakeClock) else scheduler.make_worker,
    }
    before = {name: getattr(scheduler, name) for name in settings}
    _set(scheduler, settings)
    try:
        scheduler.make_store()  # Refuses a URL that cannot work.
        yield scheduler
    finally:
        try:
            scheduler.sync.close()
            if url != MEMORY:
                scheduler.auto_migrate = False
                _run(_remove(scheduler.make_store()))
        finally:
            _set(scheduler, before)


def _set(scheduler: Scheduler, settings: Mapping[str, object]) -> None:
    vars(scheduler).update(settings)
    # They know where they are kept.
    vars(scheduler).pop("locks", None)


def _run(coroutine: Coroutine[object, object, None]) -> None:
    """Run a coroutine in a thread of its own, since there may be an event loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, coroutine).result()


async def _remove(store: Store) -> None:
    """Remove what a sandbox has made; a file is never made for that."""
    try:
        async with asyncio.timeout(_PATIENCE):
            with suppress(NoSuchFile):
                await store.open(check=False)
                await store.uninstall()
    except TimeoutError:
        text = "the tables of the sandbox are still in use; end your transactions before the sandbox ends"
        raise StoreUnavailable(text) from None
    finally:
        await store.close()
