"""Limits: which of the waiting jobs may start, as one look has it, and handing them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duetime.model.explain.facts import LimitFacts
from duetime.model.job import Claim, JobId
from duetime.model.limits import Gate, LimitedJob, MeasuredLimit, choose_limited, gate_rule, next_opening
from duetime.model.time import Instant
from duetime.stores.base import ClaimRequest, QueueOutlook
from duetime.stores.base.limits import LimitedClaiming, LimitSurvey
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import NamedValues
from duetime.stores.redis.runs import read_claims

_STEPS_PER_LOOK: Final = 1_000
"""How many places and jobs at them one look sees; the next look goes on from there."""
_LATEST_JOBS_PER_LOOK: Final = 100
"""How many of the jobs that fell due last one look sees; if there are fewer, it does not walk."""
_PRUNED_GATES_PER_CALL: Final = 1_000


@dataclass(slots=True, kw_only=True)
class RedisLimit(MeasuredLimit):
    """A limit with what its room was worked out from."""

    name: str
    task: str = ""
    running: int
    listed: str | None
    """The starts as they are stored."""

    def seen(self) -> dict[str, object]:
        """Return what the decision was made on, and what to remember of it."""
        return {
            "name": self.name,
            "task": self.task,
            "running": self.running,
            "starts": self.listed,
            "most": self.rule.most,
            "count": self.rule.count,
            "period": None if self.rule.count is None else self.rule.period,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisLimitSurvey(LimitSurvey):
    """What may start, as a look has it."""

    gates: Mapping[str, RedisLimit]
    queues: Mapping[str, RedisLimit]
    waiting: Sequence[LimitedJob]
    chosen: Sequence[LimitedJob]
    parts: Mapping[JobId, str]
    """The part of an index that lists a job."""


def read_survey(facts: NamedValues, demand: ClaimRequest) -> RedisLimitSurvey:
    """Read what a look has found."""
    now: Instant = facts["now"]
    queues: dict[str, RedisLimit] = {}
    gates: dict[str, RedisLimit] = {}
    waiting: list[LimitedJob] = []
    for found in facts["queues"]:
        name, rule = found["name"], Gate(found.get("most"), found.get("count"), found.get("period") or 0)
        queues[name] = _measured(rule, found, name=name, now=now)
        waiting += _limited_jobs(found, queue=name, gate=None)
    for found in facts["places"]:
        gate, task = found["gate"], found["task"]
        if gate not in gates:
            gates[gate] = _measured(
                gate_rule(gate, task, demand.limits), found, name=gate, task=task, now=now
            )
        waiting += _limited_jobs(found, queue=found["queue"], gate=gate)
    chosen = choose_limited(waiting, gates=gates, queues=queues, wanted=demand.wanted, most=demand.limit)
    return RedisLimitSurvey(
        hopeful=bool(chosen),
        again_at=next_opening((*queues.values(), *gates.values())),
        place=facts["cut"],
        seen_at=now,
        gates=gates,
        queues=queues,
        waiting=waiting,
        chosen=chosen,
        parts={
            job["id"]: job["part"] for each in (*facts["queues"], *facts["places"]) for job in each["jobs"]
        },
    )


def _measured(rule: Gate, found: NamedValues, *, name: str, task: str = "", now: Instant) -> RedisLimit:
    listed, running = found.get("starts"), found["running"]
    limit = RedisLimit(rule, _read_starts(listed), name=name, task=task, running=running, listed=listed)
    limit.measure(running=running, passed=found.get("passed"), now=now)
    return limit


def _read_starts(text: str | None) -> list[Instant]:
    return [int(start) for start in text.split(",")] if text else []


def _limited_jobs(found: Mapping[str, Any], *, queue: str, gate: str | None) -> list[LimitedJob]:
    return [LimitedJob(job["priority"], job["due_at"], job["id"], queue, gate) for job in found["jobs"]]


class RedisLimits(RedisStorePart, LimitedClaiming[RedisLimitSurvey]):
    """A part of `RedisStore`."""

    async def outlook(self, queue: str, *, gate: str | None = None) -> QueueOutlook:
        """Return what else than workers decides whether jobs in a queue, under a gate, are handed out."""
        facts, _ = await self._calls.read("outlook", {"queue": queue, "gate": gate})
        limits = tuple(_limit_facts(found, facts["now"]) for found in facts["limits"])
        return QueueOutlook(facts["now"], facts.get("paused_at"), facts.get("paused_reason"), limits)

    async def _prune_gates(self, after: str) -> tuple[int, str]:
        request = {"after": after, "stretch": _PRUNED_GATES_PER_CALL}
        facts, _ = await self._calls.write("prune_gates", request)
        return facts["gone"], facts["last"]

    async def _survey(self, demand: ClaimRequest, place: str | None) -> RedisLimitSurvey:
        request = {
            "queues": list(demand.wanted),
            "tasks": demand.tasks,
            "after": place or "",
            "limit": demand.limit,
            "steps": _STEPS_PER_LOOK,
            "latest": _LATEST_JOBS_PER_LOOK,
        }
        facts, _ = await self._calls.read("survey", request)
        return read_survey(facts, demand)

    async def _seize(self, demand: ClaimRequest, found: RedisLimitSurvey) -> list[Claim]:
        """Hand out what was chosen, as far as nothing else has started under the same limits meanwhile."""
        gates = {job.gate for job in found.chosen if job.gate is not None}
        queues = {job.queue for job in found.chosen if job.queue in found.queues}
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
                    "part": found.parts[job.id],
                    "limited": job.queue in queues,
                }
                for job in found.chosen
            ],
        }
        claims = read_claims(await self._calls.write("seize", request, rows=len(found.chosen)))
        return [claim._replace(queue_limited=claim.queue in queues) for claim in claims]


def _limit_facts(found: Mapping[str, Any], now: Instant) -> LimitFacts:
    rule = Gate(found.get("most"), found.get("rate_count"), found.get("rate_period") or 0)
    starts = _read_starts(found.get("starts"))
    return LimitFacts.of(found["kind"], found["name"], rule, running=found["running"], starts=starts, now=now)
