"""Stores that tell what their verbs send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from benchmarks.statements import Sent, tapped
from duetime.model.job import Claim
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import hire, job, take

JOBS = 100


class Tapped(NamedTuple):
    """A store with one worker, and what was sent to its database since."""

    store: Store
    sent: list[Sent]
    engine: str

    def names(self) -> list[str]:
        """Return what was sent since this was asked last."""
        names = [name for _, _, name in self.sent]
        self.sent.clear()
        return names

    async def claimed(self) -> Sequence[Claim]:
        """Claim jobs, to see what comes then."""
        await self.store.enqueue([job() for _ in range(JOBS)])
        claims = await take(self.store)
        assert len(claims) == JOBS
        self.sent.clear()
        return claims


@asynccontextmanager
async def tapping(url: str) -> AsyncIterator[Tapped]:
    """Open a store, with one worker."""
    store = open_store(url)
    await store.open()
    await hire(store, "w1")
    yield Tapped(store, tapped(store), url.partition(":")[0])
    await store.close()
