"""The verbs of a Redis store about limits: goes round the gates, some at each look, and remembers how far it has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetime.model import durations
from duetime.model.instants import Instant
from duetime.model.job import Claim
from duetime.model.limit import Gate, schedule_at
from duetime.model.worker import WorkerId
from duetime.stores.base import Demand, LimitedClaims, Outlook
from duetime.stores.redis.barriers import Candidate, Survey, read_starts, survey
from duetime.stores.redis.claims import CLAIMS
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

if TYPE_CHECKING:
    from duetime.model.explain import LimitFacts

_LOOKS: Final = 20
"""How many looks past closed gates one claim takes before it answers that it is not through."""
_STEPS: Final = 1_000
"""How many places and jobs at them one look sees; the next look goes on from there."""
_LATEST: Final = 100
"""How many of the jobs that fell due last one look sees; if there are fewer, it does not walk."""
_STRETCH: Final = 1_000

Round: TypeAlias = tuple[WorkerId, tuple[str, ...]]


@dataclass(slots=True)
class Walk:
    """How far one worker's walk round the gates of some tasks has come."""

    after: str = ""
    queues: frozenset[str] = frozenset()
    """Those that every look since it began has seen."""
    hopeless: bool = True
    """Whether nothing was found open since it began."""
    again: list[Instant] = field(default_factory=list[Instant])

    @property
    def proved_hopeless(self) -> bool:
        """Whether it went from the first gate to the last and found none open."""
        return self.hopeless and not self.after


class Limiting(Part):
    """A part of `RedisStore`."""

    _walks: defaultdict[Round, Walk]

    async def claim_limited(self, demand: Demand) -> LimitedClaims:
        """Hand out due jobs that limits let through; while none may start, this writes nothing."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return LimitedClaims([], None)
        walk = self._walks[demand.worker, demand.tasks]
        seen_at: Instant = 0
        for _ in range(_LOOKS):
            found = await self._look(demand, walk)
            seen_at = found.now
            chosen = found.choose(demand)
            walk.hopeless = walk.hopeless and not chosen
            if chosen:
                # Something may be left, and others may have been quicker: to look again costs little.
                return LimitedClaims(await self._seize(demand, found, chosen), seen_at)
            if walk.proved_hopeless:
                return LimitedClaims([], min(walk.again, default=None))
        return LimitedClaims([], seen_at)

    async def prune_gates(self) -> int:
        """Forget some of the gates that no job needs."""
        pruned, after = 0, ""
        for _ in range(_LOOKS):
            facts, _ = await self._calls.write("prune_gates", FACTS, {"after": after, "stretch": _STRETCH})
            pruned, after = pruned + facts["gone"], facts["last"]
            if not after:
                break
        return pruned

    async def outlook(self, queue: str, *, gate: str | None = None) -> Outlook:
        """Return what, beside workers, decides whether jobs in a queue, under a gate, are handed out."""
        facts, _ = await self._calls.read("outlook", FACTS, {"queue": queue, "gate": gate})
        limits = tuple(_limit_facts(found, facts["now"]) for found in facts["limits"])
        return Outlook(facts["now"], facts.get("paused_at"), facts.get("paused_reason"), limits)

    async def _look(self, demand: Demand, walk: Walk) -> Survey:
        queues = frozenset(queue for queue, most in demand.queues if most > 0)
        if not walk.after:
            walk.hopeless, walk.again = True, []
        elif not queues <= walk.queues:
            # The gates that lie behind were not looked at for these queues, so that this walk proves nothing.
            walk.hopeless = False
        walk.queues = queues
        request = {
            "queues": [queue for queue, most in demand.queues if most > 0],
            "tasks": demand.tasks,
            "after": walk.after,
            "limit": demand.limit,
            "steps": _STEPS,
            "latest": _LATEST,
        }
        facts, _ = await self._calls.read("survey", FACTS, request)
        found = survey(facts, demand)
        # Gates that were found open are left behind all the same, or the first ones would starve the last.
        walk.after = found.cut
        walk.again += [] if found.again_at is None else [found.again_at]
        return found

    async def _seize(self, demand: Demand, found: Survey, chosen: Sequence[Candidate]) -> list[Claim]:
        """Hand out what was chosen, as far as nothing else has started under the same limits meanwhile."""
        gates = {job.gate for job in chosen if job.gate is not None}
        queues = {job.queue for job in chosen if job.queue in found.queues}
        request = {
            "worker": demand.worker,
            "claim_id": demand.claim_id,
            "gates": [found.gates[name].seen() for name in gates],
            "queues": [found.queues[name].seen() for name in queues],
            "jobs": [
                {
                    "id": job.id,
                    "gate": job.gate,
                    "queue": job.queue,
                    "part": job.part,
                    "limited": job.queue in queues,
                }
                for job in chosen
            ],
        }
        claims = await self._calls.write("seize", CLAIMS, request, rows=len(chosen))
        return [claim._replace(queue_limited=claim.queue in queues) for claim in claims]


def _limit_facts(found: Mapping[str, Any], now: Instant) -> LimitFacts:
    from duetime.model.explain import LimitFacts

    kind, name, count = found["kind"], found["name"], found.get("rate_count")
    gate = Gate(found.get("most"), count, found.get("rate_period") or 0)
    schedule = schedule_at(name) if kind == "task" else None
    room = gate.room(running=found["running"], starts=read_starts(found.get("starts")), now=now)
    return LimitFacts(
        what=f"{kind} {name}" if schedule is None else f"schedule {schedule}",
        running=found["running"],
        most=gate.most,
        rate=None if count is None else f"{count} per {durations.describe(gate.period)}",
        again_at=room.again_at,
    )
