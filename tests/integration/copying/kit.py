"""Short words for what tests of copies need."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, NamedTuple

import pytest

from duetime import failpoints
from duetime.errors import StoreUnavailable
from duetime.failpoints import InjectedFault
from duetime.model.stored.copy import LAST_KEY, RecordKind, WholeRecord
from duetime.scheduler.transfer.store_copy import (
    COPY_TARGET,
    CopyProgress,
    CopyReport,
    NamedStore,
    copy_store,
)
from duetime.stores.base import Store
from duetime.stores.open import open_store

JOBS: Final = int(os.environ.get("COPY_JOBS", "2000"))
SCHEDULES: Final = int(os.environ.get("COPY_SCHEDULES", "100"))
BATCH: Final = 1_000
ALL: Final = 2**31 - 1

Records = Mapping[RecordKind, list[WholeRecord]]


@asynccontextmanager
async def opened(url: str, *, namespace: str = "duetime") -> AsyncGenerator[NamedStore]:
    store = open_store(url, namespace=namespace)
    await store.open()
    try:
        yield NamedStore(store, url)
    finally:
        await store.close()


async def records(store: Store) -> Records:
    return {kind: await store.stretch(kind, after="", until=LAST_KEY, limit=ALL) for kind in RecordKind}


async def fill(store: Store, story: Records) -> None:
    for kind, whole in story.items():
        for first in range(0, len(whole), BATCH):
            await store.exchange(kind, [], whole[first : first + BATCH])


async def run(source: NamedStore, target: NamedStore, *, drain: int | None = None) -> CopyReport:
    return await copy_store(source, target, drain=drain, who="me", progress=silent)


@contextmanager
def failing(setting: str) -> Generator[None]:
    """Expect that something fails because it is told to."""
    failpoints.arm(setting)
    try:
        with pytest.raises((InjectedFault, StoreUnavailable), match="told to fail"):
            yield
    finally:
        failpoints.arm(None)


def silent(_kind: RecordKind, _count: int) -> None:
    """Nobody looks."""


def before(key: str) -> str:
    """A key behind which this one is the next."""
    return f"{key[:-1]}{chr(ord(key[-1]) - 1)}{LAST_KEY}"


def without_marks(found: Records) -> Records:
    """The records of a target, but for what tells of the copy."""
    return {
        kind: [record for record in some if COPY_TARGET not in record.row] for kind, some in found.items()
    }


async def copied(source: Store, target: Store) -> bool:
    """Whether two stores have the same records."""
    return await records(source) == without_marks(await records(target))


class Story(NamedTuple):
    """What a store has after days of work, and where."""

    url: str
    records: Records


def elsewhere(act: Callable[[], Awaitable[object]]) -> None:
    """Let something happen in another event loop, to its end, while this one waits."""

    async def to_its_end() -> None:
        await act()

    thread = threading.Thread(target=lambda: asyncio.run(to_its_end()))
    thread.start()
    thread.join()


def at(wanted: RecordKind, walk: int, act: Callable[[], Awaitable[object]]) -> CopyProgress:
    """Let something happen behind a kind in the first or in the second walk."""
    walks = Counter[RecordKind]()

    def progress(kind: RecordKind, _count: int) -> None:
        walks[kind] += 1
        if kind is wanted and walks[kind] == walk:
            elsewhere(act)

    return progress
