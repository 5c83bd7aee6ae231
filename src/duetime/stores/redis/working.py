"""The verbs of a Redis store about workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from duetime.errors import StoreMoved
from duetime.model.blame import Suspect, blamed
from duetime.model.instants import Instant, Micros
from duetime.model.job import JobId, Token
from duetime.model.worker import WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import Hint, Orphan, Peer, Pulse, Rescue, Sight, Wants
from duetime.stores.redis import rows
from duetime.stores.redis.claims import ORPHANS, Adopted
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts

_RESCUED: Final = 1_000
"""How many jobs one call takes over, if no dead worker had more."""
_RECONSIDERED: Final = 100
"""How many jobs one call looks at that could not be read before."""


class Working(Part):
    """A part of `RedisStore`."""

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock; raises `StoreMoved` where the work goes on elsewhere."""
        request = {"worker": rows.worker_info(worker), "lease": lease}
        # Others watch its process from now on, to be there when it dies.
        facts, _ = await self._calls.write("register", FACTS, request, hints=[Hint("workers")])
        if "moved" in facts:
            raise StoreMoved(facts["moved"])
        now: Instant = facts["now"]
        return now

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: Wants | None = None
    ) -> Pulse:
        """Renew the lease of a living worker and look around on the way; a dead one stays dead."""
        said = {name: value for name, value in asdict(stats).items() if value is not None}
        asked = None if wants is None else asdict(wants)
        request = {"worker": worker, "lease": lease, "stats": said, "wants": asked}
        facts, held = await self._calls.write("pulse", FACTS, request)
        sight = None
        if wants is not None:
            sight = Sight(
                facts.get("due_at"),
                facts.get("fires_at"),
                facts.get("resumes_at"),
                facts.get("orphans", False),
            )
        return _pulse(facts, held, sight=sight)

    async def attend(self, worker: WorkerId) -> Pulse:
        """Answer as `pulse` does without renewing anything."""
        return _pulse(*await self._calls.read("attend", FACTS, {"worker": worker}))

    async def retire(self, worker: WorkerId) -> None:
        """Mark a worker as stopped."""
        await self._calls.write("retire", FACTS, {"worker": worker})

    async def peers(self, worker: WorkerId, host_key: str | None, *, soon: Micros) -> list[Peer]:
        """Return the other living workers on the same host, and those elsewhere whose lease ends within `soon`."""
        request = {"worker": worker, "host_key": host_key, "soon": soon}
        _, found = await self._calls.read("peers", FACTS, request)
        return [Peer(*row) for row in found]

    async def bury(self, workers: Sequence[WorkerId]) -> list[WorkerId]:
        """Mark living workers as dead and return those that were alive until now."""
        if not workers:
            return []
        facts, _ = await self._calls.write("bury", FACTS, {"workers": workers})
        return list(facts["dead"])

    async def rescue(self, worker: WorkerId, claim_id: str) -> Rescue:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        found, _ = await self._calls.read("forsaken", FACTS)
        if found["aside"]:
            await self._calls.write("reconsider", FACTS, {"most": _RECONSIDERED})
        request = {"worker": worker, "claim_id": claim_id, "most": _RESCUED}
        dead: list[WorkerId] = []
        adopted: list[Adopted] = []
        more: bool = found["orphans"]
        while more:
            facts, some = await self._calls.write("rescue", ORPHANS, request)
            dead += facts["dead"]
            adopted += some
            more = facts["more"]
        suspects = _suspects(adopted)
        return Rescue(
            dead,
            [
                Orphan(claim, before, started_at, claim.job_id in suspects, claim.due_at <= claim.claimed_at)
                for claim, before, started_at in adopted
            ],
        )


def _pulse(facts: Facts, held: Sequence[Sequence[Any]], *, sight: Sight | None = None) -> Pulse:
    if not facts["alive"]:
        return Pulse(alive=False, now=facts["now"])
    return Pulse(
        alive=True,
        now=facts["now"],
        held=frozenset(Token(*row[:3]) for row in held),
        cancelling=frozenset(row[0] for row in held if row[3] is not None),
        commands=facts["commands"],
        limited=facts.get("limited", False),
        workers=facts.get("workers", 0),
        newest=facts.get("newest", 0),
        lease_ends=facts.get("lease_ends"),
        sight=sight,
    )


def _suspects(adopted: Iterable[Adopted]) -> frozenset[JobId]:
    started: defaultdict[str, list[Suspect]] = defaultdict(list)
    for claim, before, started_at in adopted:
        if before and (started_at is not None or claim.due_at <= claim.claimed_at):
            started[before].append(Suspect(claim.job_id, claim.crashes))
    return frozenset(job_id for group in started.values() if (job_id := blamed(group)) is not None)
