"""Times a worker from its first claim to its last accepted settlement, as the bare loop is timed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from benchmarks.watch import Watch
from duetime.model.job import Claim, Token
from duetime.model.outcome import Settlement
from duetime.stores.base import ClaimRequest, Store


class Stopwatch:
    """Listens at the store's door; it adds little per batch, nothing per job."""

    def __init__(self, store: Store, *, expected: int) -> None:
        self._claim = store.claim
        self._settle = store.settle
        self._watch: Watch | None = None
        self._left = expected
        self._took: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        store.claim = self.claim  # type: ignore[method-assign]
        store.settle = self.settle  # type: ignore[method-assign]

    async def took(self, *, within: float) -> float:
        """Wait for the last settlement and return the seconds since the first claim."""
        async with asyncio.timeout(within):
            return await self._took

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Claim, and note when that was first asked for."""
        if self._watch is None:
            self._watch = Watch()
        return await self._claim(demand)

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Settle, and note when the last answer came."""
        accepted = await self._settle(settlements)
        self._left -= len(accepted)
        if self._left == 0 and self._watch is not None:
            self._took.set_result(self._watch.seconds())
        return accepted
