"""Asks the store for jobs, and remembers the questions whose answers were lost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duetime.errors import StoreUnavailable
from duetime.model.job import Claim, Token
from duetime.runtime.identity import Identity
from duetime.runtime.timekeeper import Timekeeper, monotonic
from duetime.stores.base import Demand, LimitedClaims, NextDue

if TYPE_CHECKING:
    from duetime.stores.base import JobStore


class Asking:
    """A worker's claims, from the question to the answer."""

    def __init__(self, store: JobStore, identity: Identity, time: Timekeeper) -> None:
        self._store = store
        self._identity = identity
        self._time = time
        self._asked: str | None = None
        self._lost: set[str] = set()
        self.unanswered: list[str] = []
        """The claim ids to be looked up."""

    async def claim(self, demand: Demand) -> list[Claim]:
        """Ask for jobs without limits."""
        if not demand.queues:
            return []
        with self._remembered(demand):
            sent = monotonic()
            claims = await self._store.claim(demand)
        return self._taken(demand, claims, sent)

    async def claim_limited(self, demand: Demand) -> LimitedClaims:
        """Ask for jobs under limits."""
        with self._remembered(demand):
            sent = monotonic()
            found = await self._store.claim_limited(demand)
        return found._replace(claims=self._taken(demand, found.claims, sent))

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Ask when the next job falls due, and learn the time: no answer carries it faster than that of a read."""
        sent = monotonic()
        found = await self._store.next_due(queues, tasks)
        self._time.observe(sent, monotonic(), found.now)
        return found

    async def look_up(self, claim_id: str) -> list[Claim]:
        """Return what a claim whose answer was lost has brought; nothing if the lease was lost meanwhile."""
        worker = self._identity.worker_id
        found = await self._store.claims_under(worker, claim_id)
        if worker != self._identity.worker_id:
            return []
        self.unanswered.remove(claim_id)
        return found

    def awaits(self, token: Token) -> bool:
        """Whether a claim may still be on its way here."""
        return token.claim_id == self._asked

    def recall(self, strays: frozenset[Token]) -> frozenset[Token]:
        """Have strays looked up that answers were lost of, and return them."""
        ours = frozenset(token for token in strays if token.claim_id in self._lost)
        self.unanswered += {token.claim_id for token in ours} - {*self.unanswered}
        return ours

    def forget(self) -> None:
        """Look nothing up any more: what was handed out is for others to take over."""
        self.unanswered.clear()
        self._lost.clear()

    @contextmanager
    def _remembered(self, demand: Demand) -> Generator[None]:
        self._asked = demand.claim_id
        try:
            yield
        except StoreUnavailable:
            self.unanswered.append(demand.claim_id)
            self._lost.add(demand.claim_id)
            raise
        finally:
            self._asked = None

    def _taken(self, demand: Demand, claims: list[Claim], sent: int) -> list[Claim]:
        if demand.worker != self._identity.worker_id:
            # The lease was lost meanwhile: these claims are for others to take over.
            return []
        if claims:
            self._time.observe(sent, monotonic(), claims[0].claimed_at)
        return claims
