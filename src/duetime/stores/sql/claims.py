"""Hands out jobs, and remembers how far claims have come through a backlog.

An index may keep the entries of jobs that were claimed until the server cleans up, about once a minute. A claim that begins
at the oldest due time walks over all of them: in a drain of a million jobs that is more than the claim itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, TypeAlias

from duetime.errors import StoreError
from duetime.model.job import Claim, Token
from duetime.model.time import Instant
from duetime.model.worker import WorkerId
from duetime.stores.base import ClaimRequest, NextDue
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    encode_batch,
    encode_batch_for,
    read_checked_claim,
    read_claim,
    read_moment,
    unpack_claims,
)
from duetime.stores.sql.verbs import SqlSubject, read, write

BacklogPosition: TypeAlias = tuple[str, int, Instant]
"""A queue, a priority, and the due time at which to begin."""

_LONG_BACKLOG: Final = 1_000
"""From how many jobs on, claimed without a break, a backlog is worth remembering."""
_TRUSTED_FOR: Final = 1.0
"""For how many seconds floors hold: jobs that come to lie behind, such as those that go back, are found after this."""


class SqlClaims(SqlSubject):
    """Hands out jobs."""

    @cached_property
    def _backlogs(self) -> Backlogs:
        return Backlogs()

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Atomically hand out jobs."""
        if demand.pointless:
            return []
        one_statement = self._dialect.claims_per_statement
        floors = self._backlogs.floors(demand) if one_statement else []
        script = partial(_claim, self._sql, demand, one_statement=one_statement, floors=floors)
        try:
            claims = await self._driver.write(script, atomic=not one_statement, rows=demand.limit)
        except StoreError as error:
            if "BLOB" not in str(error):
                raise
            await self._quote_blobs()
            claims = await self._driver.write(script, atomic=not one_statement, rows=demand.limit)
        if one_statement:
            self._backlogs.note(demand, claims)
        return claims

    @write()
    def _quote_blobs(self) -> Script[None]:
        """Make jobs claimable that hold bytes where they should not."""
        yield Query(self._sql.quote_blobs, {})

    @read()
    def claims_under(self, worker: WorkerId, claim_id: str) -> Script[list[Claim]]:
        """Return what a claim whose answer was lost had handed out and is still held."""
        found = yield Query(self._sql.claims_under, {"worker": worker, "claim_id": claim_id})
        return [read_checked_claim(row) for row in found]

    @write(atomic=False, rows=len)
    def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> Script[None]:
        """Record that claims taken ahead have been started, fenced."""
        rows = encode_batch_for(self._sql.mark_started, tokens)
        yield Query(self._sql.mark_started, {"rows": rows, "started_at": started_at})

    @read()
    def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> Script[NextDue]:
        """Tell when the next pending job of these queues falls due."""
        in_queues, of_tasks = (encode_batch((name,) for name in names) for names in (queues, tasks))
        found = yield Query(self._sql.next_due, {"queues": in_queues, "tasks": of_tasks})
        now, due_at, *others, limited = found[0]
        future = [at for one in others if (at := read_moment(one)) is not None]
        return NextDue(now, read_moment(due_at), min(future, default=None), bool(limited))


def _claim(
    sql: Statements, demand: ClaimRequest, *, one_statement: bool, floors: Sequence[BacklogPosition] = ()
) -> Script[list[Claim]]:
    """Hand out jobs queue by queue until the limit is reached, or all at once where the database can."""
    groups = (demand.queues,) if one_statement else tuple((queue,) for queue in demand.queues)
    common = {
        "worker": demand.worker,
        "claim_id": demand.claim_id,
        "tasks": encode_batch((task,) for task in demand.tasks),
        "ahead": demand.ahead,
        "unstarted": int(demand.unstarted or demand.ahead > 0),
        "below_priority": demand.below_priority,
        "floors": encode_batch(floors),
    }
    claims: list[Claim] = []
    for group in groups:
        limit = min(demand.limit - len(claims), sum(most for _, most in group))
        if limit <= 0:
            continue
        choice = common | {"queues": encode_batch(group), "limit": limit}
        found = yield Query(sql.claim, choice)
        if one_statement:
            claims += map(read_claim, found)
            continue
        packed, chosen = found[0]
        if some := unpack_claims(packed):
            yield Query(sql.take, {**choice, "chosen": chosen})
            claims += some
    if one_statement:
        # Databases return changed rows in any order.
        rank = {queue: place for place, (queue, _) in enumerate(demand.queues)}
        claims.sort(key=lambda claim: (rank[claim.queue], claim.priority, claim.due_at, claim.job_id))
    return claims


@dataclass(slots=True)
class _Backlog:
    """What claims of one kind have met since one of them came back with less than it had asked for."""

    taken: int = 0
    floors: dict[tuple[str, int], Instant] = field(default_factory=dict[tuple[str, int], Instant])
    trusted_until: float = 0.0


class Backlogs:
    """The backlogs that this store's claims have met, by kind of claim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._met: dict[object, _Backlog] = {}

    def floors(self, demand: ClaimRequest) -> list[BacklogPosition]:
        """Tell where a claim may begin; nowhere in particular, now and then and unless there is a long backlog."""
        backlog = self._met.get(_kind_of_claim(demand))
        if backlog is None or backlog.taken < _LONG_BACKLOG or demand.ahead:
            return []
        if self._clock() >= backlog.trusted_until:
            backlog.floors.clear()
        return [(*place, due_at) for place, due_at in backlog.floors.items()]

    def note(self, demand: ClaimRequest, claims: Sequence[Claim]) -> None:
        """Learn from the answer to a claim."""
        if demand.ahead:
            return
        if len(claims) < demand.limit:
            # The backlog has come to an end, or what is left of it lies behind.
            self._met.pop(_kind_of_claim(demand), None)
            return
        backlog = self._met.setdefault(_kind_of_claim(demand), _Backlog())
        if not backlog.floors:
            backlog.trusted_until = self._clock() + _TRUSTED_FOR
        backlog.taken += len(claims)
        # The first of a batch rather than its last: what goes back is soon met again.
        backlog.floors.update({(claim.queue, claim.priority): claim.due_at for claim in reversed(claims)})


def _kind_of_claim(demand: ClaimRequest) -> object:
    # Each kind leaves other jobs behind.
    return demand.worker, demand.tasks, demand.unstarted, demand.below_priority
