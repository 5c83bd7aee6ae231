"""Which of the jobs that wait under limits may start: decided on what the server has told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.limit import Gate, rule_at
from duetime.stores.base import Demand
from duetime.stores.redis.rows import Facts

_UNHEARD: Final[Micros] = SECOND // 2
"""When to look again at a gate that a job without a gate keeps shut: nobody is told when that one has ended."""


@dataclass(slots=True)
class Barrier:
    """A gate or a limited queue, with the room it has left."""

    name: str
    rule: Gate
    running: int
    starts: str | None
    task: str = ""
    free: int = 0
    again_at: Instant | None = None

    def measure(self, now: Instant) -> Barrier:
        """Work out how many may pass."""
        self.free, self.again_at = self.rule.room(
            running=self.running, starts=read_starts(self.starts), now=now
        )
        return self

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


class Candidate(NamedTuple):
    """A due job under limits; sorted, the most urgent comes first."""

    priority: int
    due_at: Instant
    id: str
    queue: str
    gate: str | None
    part: str
    """The part of an index that lists it."""


class Survey(NamedTuple):
    """What may start, as a look has it."""

    gates: Mapping[str, Barrier]
    queues: Mapping[str, Barrier]
    waiting: list[Candidate]
    cut: str
    """Where the walk stopped if it is not through."""
    now: Instant

    @property
    def again_at(self) -> Instant | None:
        """When time alone will let in the next job."""
        later = [b.again_at for b in (*self.queues.values(), *self.gates.values()) if b.again_at is not None]
        return min(later, default=None)

    def choose(self, demand: Demand) -> list[Candidate]:
        """Let jobs pass, the most urgent first, while their gate, their queue and the worker have room."""
        room = dict(demand.queues)
        chosen: list[Candidate] = []
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


def survey(facts: Facts, demand: Demand) -> Survey:
    """Read what a look has found."""
    now: Instant = facts["now"]
    queues: dict[str, Barrier] = {}
    gates: dict[str, Barrier] = {}
    waiting: list[Candidate] = []
    for found in facts["queues"]:
        rule = Gate(found.get("most"), found.get("count"), found.get("period") or 0)
        barrier = Barrier(found["name"], rule, found["running"], found.get("starts")).measure(now)
        queues[barrier.name] = barrier
        waiting += _candidates(found, queue=barrier.name, gate=None)
    for found in facts["places"]:
        gate, task = found["gate"], found["task"]
        if gate not in gates:
            rule = rule_at(gate, task, demand.limits)
            gates[gate] = Barrier(gate, rule, found["running"], found.get("starts"), task).measure(now)
            if found["running"] > found["passed"]:
                gates[gate].again_at = now + _UNHEARD
        waiting += _candidates(found, queue=found["queue"], gate=gate)
    return Survey(gates, queues, waiting, facts["cut"], now)


def read_starts(text: str | None) -> list[Instant]:
    """Read the last starts at a gate or in a queue."""
    return [int(start) for start in text.split(",")] if text else []


def _candidates(found: Mapping[str, Any], *, queue: str, gate: str | None) -> list[Candidate]:
    return [
        Candidate(job["priority"], job["due_at"], job["id"], queue, gate, job["part"])
        for job in found["jobs"]
    ]
