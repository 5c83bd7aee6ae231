"""What a worker asks its store for, by the room it has, and the requests whose answers were lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from duetime.errors import StoreUnavailable
from duetime.model.ids import new_token
from duetime.model.job import Claim, Token
from duetime.model.limits import Gate
from duetime.model.time import Micros
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import Slots
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base import ClaimRequest, LimitedClaims, NextDue

if TYPE_CHECKING:
    from duetime.stores.base import JobStore


class ClaimGroup(NamedTuple):
    """Tasks that are claimed together, because they need the same."""

    tasks: tuple[str, ...]
    in_child: bool = False


def claim_groups(handlers: Mapping[str, Handler], slots: Slots) -> Sequence[ClaimGroup]:
    """Return the tasks to ask for; those of child processes apart, so that no more come than children are free.

    In random order, because with few slots the first may take them all.
    """
    cpu = tuple(name for name, handler in handlers.items() if handler.options.cpu)
    slots.cpu_tasks = frozenset(cpu)
    if not cpu:
        return (ClaimGroup(tuple(handlers)),)
    plain = tuple(name for name in handlers if name not in cpu)
    found = [ClaimGroup(cpu, in_child=True), ClaimGroup(plain)]
    return random.sample(found, 2) if plain else found[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandBuilder:
    """Words the questions of a worker to its store."""

    identity: WorkerIdentity
    handlers: Mapping[str, Handler]
    queues: tuple[str, ...]
    slots: Slots
    hold: HeldClaims
    limits: Mapping[str, Gate]

    def lanes(self) -> Sequence[ClaimGroup]:
        """Return the tasks to ask for together."""
        return claim_groups(self.handlers, self.slots)

    def room(self, lane: ClaimGroup) -> int:
        """How many jobs of a lane may start now."""
        return self.slots.children_free if lane.in_child else self.slots.free

    def share(self, lane: ClaimGroup) -> int:
        """How many claims of a lane may be held for slots to come: children are not waited for."""
        if not lane.in_child:
            return max(self.slots.total, self.hold.room)
        return self.slots.children_free - self.hold.count(lambda claim: claim.task in self.slots.cpu_tasks)

    def may_hold(self, queue: str, most: int) -> int:
        """How many of so many jobs of a queue may be held for slots to come, beside those that are."""
        left = self.slots.left(queue)
        return most if left is None else min(most, left - self.hold.count(lambda claim: claim.queue == queue))

    def now(self, lane: ClaimGroup, limit: int, *, below_priority: int = 10) -> ClaimRequest:
        """Ask for due jobs that start at once."""
        return self._demand(lane, limit, self.slots.room, below_priority=below_priority)

    def in_advance(self, lane: ClaimGroup, limit: int) -> ClaimRequest:
        """Ask for due jobs that wait here for slots to come."""
        return self._demand(lane, limit, partial(self.may_hold, most=limit), unstarted=True)

    def ahead(self, lane: ClaimGroup, limit: int, *, window: Micros) -> ClaimRequest:
        """Ask for jobs that fall due within the window."""
        return self._demand(lane, limit, partial(self.may_hold, most=limit), ahead=window)

    def _demand(
        self,
        lane: ClaimGroup,
        limit: int,
        room: Callable[[str], int],
        *,
        ahead: Micros = 0,
        unstarted: bool = False,
        below_priority: int = 10,
    ) -> ClaimRequest:
        return ClaimRequest(
            worker=self.identity.worker_id,
            claim_id=new_token(),
            queues=tuple((queue, min(limit, n)) for queue in self._shuffled() if (n := room(queue)) > 0),
            limit=limit,
            tasks=lane.tasks,
            ahead=ahead,
            unstarted=unstarted,
            below_priority=below_priority,
            limits=self.limits,
        )

    def _shuffled(self) -> Sequence[str]:
        """The queues in random order: a full one must not starve the others."""
        return random.sample(self.queues, len(self.queues)) if len(self.queues) > 1 else self.queues


class ClaimRequests:
    """A worker's claims, from the question to the answer."""

    def __init__(self, store: JobStore, identity: WorkerIdentity, time: StoreClock) -> None:
        self._store = store
        self._identity = identity
        self._time = time
        self._asked: str | None = None
        self._lost: set[str] = set()
        self.unanswered: list[str] = []
        """The claim ids to be looked up."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Ask for jobs without limits."""
        if not demand.queues:
            return []
        with self._remembered(demand):
            sent = monotonic()
            claims = await self._store.claim(demand)
        return self._taken(demand, claims, sent)

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
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
    def _remembered(self, demand: ClaimRequest) -> Generator[None]:
        self._asked = demand.claim_id
        try:
            yield
        except StoreUnavailable:
            self.unanswered.append(demand.claim_id)
            self._lost.add(demand.claim_id)
            raise
        finally:
            self._asked = None

    def _taken(self, demand: ClaimRequest, claims: list[Claim], sent: int) -> list[Claim]:
        if demand.worker != self._identity.worker_id:
            # The lease was lost meanwhile: these claims are for others to take over.
            return []
        if claims:
            self._time.observe(sent, monotonic(), claims[0].claimed_at)
        return claims
