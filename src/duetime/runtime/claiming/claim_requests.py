"""What a worker asks its store for, by the room it has, and the requests whose answers were lost."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

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
from duetime.stores.base import ClaimRequest, JobStore, LimitedClaims, NextDue


class ClaimGroup(NamedTuple):
    """Tasks that are claimed together, because they need the same."""

    tasks: tuple[str, ...]
    in_child: bool = False


class ClaimRequests:
    """A worker's claims, from the request to the answer."""

    def __init__(
        self,
        store: JobStore,
        *,
        identity: WorkerIdentity,
        time: StoreClock,
        handlers: Mapping[str, Handler],
        queues: tuple[str, ...],
        slots: Slots,
        held: HeldClaims,
        limits: Mapping[str, Gate],
    ) -> None:
        self._store = store
        self._identity = identity
        self._time = time
        self._handlers = handlers
        self._queues = queues
        self._slots = slots
        self._held = held
        self._limits = limits
        self._on_its_way: str | None = None
        self._lost: set[str] = set()
        self.unanswered: list[str] = []
        """The claim ids to be looked up."""

    def groups(self) -> Sequence[ClaimGroup]:
        """Return the tasks to ask for; those of child processes apart, so that no more come than children are free.

        In random order, because with few slots the first may take them all.
        """
        cpu: list[str] = []
        plain: list[str] = []
        for name, handler in self._handlers.items():
            (cpu if handler.options.cpu else plain).append(name)
        self._slots.cpu_tasks = frozenset(cpu)
        groups = [ClaimGroup(tuple(plain))] if plain or not cpu else []
        if cpu:
            groups.append(ClaimGroup(tuple(cpu), in_child=True))
            random.shuffle(groups)
        return groups

    def room(self, group: ClaimGroup) -> int:
        """How many jobs of a group may start now."""
        return self._slots.children_free if group.in_child else self._slots.free

    def room_to_hold(self, group: ClaimGroup) -> int:
        """How many claims of a group may be held until they are due: no job waits for a child process."""
        if not group.in_child:
            return max(self._slots.total, self._held.room)
        return self._slots.children_free - self._held.count(lambda claim: claim.task in self._slots.cpu_tasks)

    def queue_room_to_hold(self, queue: str, most: int) -> int:
        """How many more jobs of a queue may be held, up to `most`."""
        left = self._slots.left(queue)
        return (
            most if left is None else min(most, left - self._held.count(lambda claim: claim.queue == queue))
        )

    def request(
        self,
        group: ClaimGroup,
        limit: int,
        *,
        hold: bool = False,
        ahead: Micros = 0,
        below_priority: int = 10,
    ) -> ClaimRequest:
        """Return a request for due jobs that start at once, or that wait here for slots if they are to be held.

        `ahead`: for jobs that fall due within this time instead, to be held.
        """
        room = partial(self.queue_room_to_hold, most=limit) if hold else self._slots.room
        # In random order: a full queue must not starve the others.
        queues = random.sample(self._queues, len(self._queues)) if len(self._queues) > 1 else self._queues
        return ClaimRequest(
            worker=self._identity.worker_id,
            claim_id=new_token(),
            queues=tuple([(queue, min(limit, n)) for queue in queues if (n := room(queue)) > 0]),
            limit=limit,
            tasks=group.tasks,
            ahead=ahead,
            unstarted=hold and not ahead,
            below_priority=below_priority,
            limits=self._limits,
        )

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim jobs without limits."""
        return (await self._send(request)).claims if request.queues else []

    async def claim_limited(self, request: ClaimRequest) -> LimitedClaims:
        """Claim jobs under limits."""
        return await self._send(request, limited=True)

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
        return token.claim_id == self._on_its_way

    def recall(self, strays: frozenset[Token]) -> frozenset[Token]:
        """Have strays looked up whose answers were lost here, and return them."""
        ours = frozenset(token for token in strays if token.claim_id in self._lost)
        self.unanswered += {token.claim_id for token in ours} - {*self.unanswered}
        return ours

    def forget(self) -> None:
        """Look nothing up any more: what was handed out is for others to take over."""
        self.unanswered.clear()
        self._lost.clear()

    async def _send(self, request: ClaimRequest, *, limited: bool = False) -> LimitedClaims:
        """Send a request; if its answer is lost, its claims are looked up later."""
        self._on_its_way = request.claim_id
        sent = monotonic()
        try:
            if limited:
                found = await self._store.claim_limited(request)
            else:
                found = LimitedClaims(await self._store.claim(request), again_at=None)
        except StoreUnavailable:
            self.unanswered.append(request.claim_id)
            self._lost.add(request.claim_id)
            raise
        finally:
            self._on_its_way = None
        if request.worker != self._identity.worker_id:
            # The lease was lost meanwhile: these claims are for others to take over.
            return found._replace(claims=[])
        if found.claims:
            self._time.observe(sent, monotonic(), found.claims[0].claimed_at)
        return found
