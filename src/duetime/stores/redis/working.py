"""The verbs of a Redis store about workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from duetime.model.blame import Suspect, blamed
from duetime.model.instants import Instant, Micros
from duetime.model.job import Claim, JobId, Token
from duetime.model.worker import WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import Hint, Orphan, Peer, Pulse, Sight, Wants
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS, Facts


class Working(Part):
    """A part of `RedisStore`."""

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock."""
        request = {"worker": rows.worker_info(worker), "lease": lease}
        # Others watch its process from now on, to be there when it dies.
        facts, _ = await self._calls.write("register", FACTS, request, hints=[Hint("workers")])
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

    async def peers(self, worker: WorkerId, host_key: str | None) -> list[Peer]:
        """Return the other living workers whose death may be seen before their lease ends."""
        _, found = await self._calls.read("peers", FACTS, {"worker": worker, "host_key": host_key})
        return [Peer(id_, pid, started, same_host=True, session_lost=False) for id_, pid, started in found]

    async def bury(self, workers: Sequence[WorkerId]) -> None:
        """Mark living workers as dead."""
        if workers:
            await self._calls.write("bury", FACTS, {"workers": workers})

    async def rescue(self, worker: WorkerId, claim_id: str) -> list[Orphan]:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        facts, _ = await self._calls.read("forsaken", FACTS)
        if not facts["orphans"]:
            return []
        _, adopted = await self._calls.write("rescue", rows.ORPHANS, {"worker": worker, "claim_id": claim_id})
        suspects = _suspects(adopted)
        return [
            Orphan(claim, before, started_at, claim.job_id in suspects)
            for claim, before, started_at in adopted
        ]


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
        sight=sight,
    )


def _suspects(adopted: Iterable[tuple[Claim, str, Instant | None]]) -> frozenset[JobId]:
    started: defaultdict[str, list[Suspect]] = defaultdict(list)
    for claim, before, started_at in adopted:
        if before and started_at is not None:
            started[before].append(Suspect(claim.job_id, claim.crashes))
    return frozenset(job_id for group in started.values() if (job_id := blamed(group)) is not None)
