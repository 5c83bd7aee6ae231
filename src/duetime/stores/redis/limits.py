"""Limits: decides which of the waiting jobs may start, going round the gates a stretch at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from duetime.model.explain.facts import LimitFacts
from duetime.model.job import Claim
from duetime.model.limits import Gate, gate_rule, gate_schedule
from duetime.model.time import SECOND, Instant, Micros, describe_duration
from duetime.model.worker import WorkerId
from duetime.stores.base import ClaimRequest, LimitedClaims, QueueOutlook
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import NamedValues
from duetime.stores.redis.runs import read_claims

_LOOK_AGAIN_AFTER: Final[Micros] = SECOND // 2
"""When to look again at a gate that a job without a gate keeps shut: no one is told when that one has ended."""
_LOOKS_PER_CLAIM: Final = 20
"""How many looks past closed gates one claim takes before it answers that it is not through."""
_STEPS_PER_LOOK: Final = 1_000
"""How many places and jobs at them one look sees; the next look goes on from there."""
_LATEST_JOBS_PER_LOOK: Final = 100
"""How many of the jobs that fell due last one look sees; if there are fewer, it does not walk."""
_PRUNED_GATES_PER_CALL: Final = 1_000


@dataclass(slots=True)
class RedisLimit:
    """A gate or a limited queue, with the room it has left."""

    name: str
    rule: Gate
    running: int
    starts: str | None
    now: InitVar[Instant]
    task: str = ""
    free: int = field(init=False)
    again_at: Instant | None = field(init=False)

    def __post_init__(self, now: Instant) -> None:
        self.free, self.again_at = self.rule.room(
            running=self.running, starts=read_starts(self.starts), now=now
        )

    def seen(self) -> dict[str, object]:
        """Return what the decision was made on, and what to remember of it."""
        period = None if self.rule.count is None else self.rule.period
        return {
            "name": self.name,
            "task": self.task,
            "running": self.running,
            "starts": self.starts,
            "most": self.rule.most,
            "count": self.rule.count,
            "period": period,
        }


class LimitedJob(NamedTuple):
    """A due job under limits; sorted, the most urgent comes first."""

    priority: int
    due_at: Instant
    id: str
    queue: str
    gate: str | None
    part: str
    """The part of an index that lists it."""


class RedisLimitSurvey(NamedTuple):
    """What may start, as a look has it."""

    gates: Mapping[str, RedisLimit]
    queues: Mapping[str, RedisLimit]
    waiting: list[LimitedJob]
    cut: str
    """Where the walk stopped if it is not through."""
    now: Instant

    @property
    def again_at(self) -> Instant | None:
        """When time alone will let in the next job."""
        later = [b.again_at for b in (*self.queues.values(), *self.gates.values()) if b.again_at is not None]
        return min(later, default=None)

    def choose(self, demand: ClaimRequest) -> list[LimitedJob]:
        """Let jobs pass, the most urgent first, while their gate, their queue and the worker have room."""
        room = dict(demand.queues)
        chosen: list[LimitedJob] = []
        for job in sorted(self.waiting):
            passed = [
                b for b in (self.gates.get(job.gate or ""), self.queues.get(job.queue)) if b is not None
            ]
            if len(chosen) < demand.limit and room[job.queue] > 0 and all(barrier.free for barrier in passed):
                chosen.append(job)
                room[job.queue] -= 1
                for barrier in passed:
                    barrier.free -= 1
        return chosen


def read_survey(facts: NamedValues, demand: ClaimRequest) -> RedisLimitSurvey:
    """Read what a look has found."""
    now: Instant = facts["now"]
    queues: dict[str, RedisLimit] = {}
    gates: dict[str, RedisLimit] = {}
    waiting: list[LimitedJob] = []
    for found in facts["queues"]:
        rule = Gate(found.get("most"), found.get("count"), found.get("period") or 0)
        barrier = RedisLimit(found["name"], rule, found["running"], found.get("starts"), now)
        queues[barrier.name] = barrier
        waiting += _limited_jobs(found, queue=barrier.name, gate=None)
    for found in facts["places"]:
        gate, task = found["gate"], found["task"]
        if gate not in gates:
            rule = gate_rule(gate, task, demand.limits)
            gates[gate] = RedisLimit(gate, rule, found["running"], found.get("starts"), now, task)
            if found["running"] > found["passed"]:
                gates[gate].again_at = now + _LOOK_AGAIN_AFTER
        waiting += _limited_jobs(found, queue=found["queue"], gate=gate)
    return RedisLimitSurvey(gates, queues, waiting, facts["cut"], now)


def read_starts(text: str | None) -> list[Instant]:
    """Read the last starts at a gate or in a queue."""
    return [int(start) for start in text.split(",")] if text else []


def _limited_jobs(found: Mapping[str, Any], *, queue: str, gate: str | None) -> list[LimitedJob]:
    return [
        LimitedJob(job["priority"], job["due_at"], job["id"], queue, gate, job["part"])
        for job in found["jobs"]
    ]


GateWalkKey: TypeAlias = tuple[WorkerId, tuple[str, ...]]


@dataclass(slots=True)
class GateWalk:
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


class RedisLimits(RedisStorePart):
    """A part of `RedisStore`."""

    _walks: defaultdict[GateWalkKey, GateWalk]

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out due jobs that limits let through; while none may start, this writes nothing."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return LimitedClaims([], None)
        walk = self._walks[demand.worker, demand.tasks]
        seen_at: Instant = 0
        for _ in range(_LOOKS_PER_CLAIM):
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
        for _ in range(_LOOKS_PER_CLAIM):
            facts, _ = await self._calls.write(
                "prune_gates", {"after": after, "stretch": _PRUNED_GATES_PER_CALL}
            )
            pruned, after = pruned + facts["gone"], facts["last"]
            if not after:
                break
        return pruned

    async def outlook(self, queue: str, *, gate: str | None = None) -> QueueOutlook:
        """Return what else than workers decides whether jobs in a queue, under a gate, are handed out."""
        facts, _ = await self._calls.read("outlook", {"queue": queue, "gate": gate})
        limits = tuple(_limit_facts(found, facts["now"]) for found in facts["limits"])
        return QueueOutlook(facts["now"], facts.get("paused_at"), facts.get("paused_reason"), limits)

    async def _look(self, demand: ClaimRequest, walk: GateWalk) -> RedisLimitSurvey:
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
            "steps": _STEPS_PER_LOOK,
            "latest": _LATEST_JOBS_PER_LOOK,
        }
        facts, _ = await self._calls.read("survey", request)
        found = read_survey(facts, demand)
        # Gates that were found open are left behind all the same, or the first ones would starve the last.
        walk.after = found.cut
        walk.again += [] if found.again_at is None else [found.again_at]
        return found

    async def _seize(
        self, demand: ClaimRequest, found: RedisLimitSurvey, chosen: Sequence[LimitedJob]
    ) -> list[Claim]:
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
        claims = read_claims(await self._calls.write("seize", request, rows=len(chosen)))
        return [claim._replace(queue_limited=claim.queue in queues) for claim in claims]


def _limit_facts(found: Mapping[str, Any], now: Instant) -> LimitFacts:

    kind, name, count = found["kind"], found["name"], found.get("rate_count")
    gate = Gate(found.get("most"), count, found.get("rate_period") or 0)
    schedule = gate_schedule(name) if kind == "task" else None
    room = gate.room(running=found["running"], starts=read_starts(found.get("starts")), now=now)
    return LimitFacts(
        what=f"{kind} {name}" if schedule is None else f"schedule {schedule}",
        running=found["running"],
        most=gate.most,
        rate=None if count is None else f"{count} per {describe_duration(gate.period)}",
        again_at=room.again_at,
    )
