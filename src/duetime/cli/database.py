"""A connection for commands that know a URL and no scheduler."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from duetime.scheduler.scheduler import DEFAULT_URL, Scheduler
from duetime.stores.base import Store
from duetime.stores.open import open_store


@asynccontextmanager
async def connected(url: str | None, namespace: str, *, make: bool = False) -> AsyncGenerator[Store, None]:
    """Connect to a database whatever its tables are like; unless `make`, a SQLite file must be there."""
    store = open_store(url or DEFAULT_URL, namespace=namespace, auto_migrate=make)
    await store.open(check=False)
    try:
        yield store
    finally:
        await store.close()


def client(url: str | None, namespace: str) -> Scheduler:
    """Return a client without tasks; it refuses tables that do not fit instead of changing them."""
    return Scheduler(url or DEFAULT_URL, namespace=namespace, auto_migrate=False)
