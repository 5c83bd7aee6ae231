"""The verbs of a Redis store that hand out jobs."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.instants import Instant
from duetime.model.job import Claim, Token
from duetime.model.worker import WorkerId
from duetime.stores.base import Demand, NextDue
from duetime.stores.redis import rows
from duetime.stores.redis.claims import CLAIMS
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS


class Claiming(Part):
    """A part of `RedisStore`."""

    async def claim(self, demand: Demand) -> list[Claim]:
        """Atomically hand out jobs."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return []
        return await self._calls.write("claim", CLAIMS, rows.demand(demand), rows=demand.limit)

    async def claims_under(self, worker: WorkerId, claim_id: str) -> list[Claim]:
        """Return what a claim of a worker whose answer was lost had handed out and is still held."""
        asked = {"worker": worker, "claim_id": claim_id}
        return await self._calls.read("claims_under", CLAIMS, asked)

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        """Record that claims taken ahead have been started, fenced."""
        if tokens:
            request = {"tokens": [rows.token(token) for token in tokens], "started_at": started_at}
            await self._calls.write("mark_started", FACTS, request, rows=len(tokens))

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Tell when the next pending job of these queues falls due."""
        facts, _ = await self._calls.read("next_due", FACTS, {"queues": queues, "tasks": tasks})
        return NextDue(facts["now"], facts.get("due_at"), facts.get("limited_at"), facts["limited"])
