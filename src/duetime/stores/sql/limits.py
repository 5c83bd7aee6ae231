"""Jobs under limits: a look that locks nothing, and a claim that locks what it counts.

Nothing is counted up or down anywhere. What runs is what the rows of the jobs say, and it is counted under a lock
that every claimer takes, in a statement after the one that took it. So no crash can make a count go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import msgspec

from duetime.model.job import Claim
from duetime.model.limits import (
    Gate,
    LimitedJob,
    MeasuredLimit,
    choose_limited,
    gate_rule,
    gate_schedule,
    next_opening,
)
from duetime.model.time import Instant
from duetime.stores.base import ClaimRequest
from duetime.stores.base.limits import LimitedClaiming, LimitSurvey
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.statements.rows import encode_batch, read_checked_claim, read_gate, read_starts
from duetime.stores.sql.verbs import SqlSubject, read, write

_STEPS: Final = 500
"""How many ranges of the index one look walks for each task; the next look goes on from there."""
_LATEST: Final = 100
"""How many of the jobs that fell due last one look sees apart from its walk; if there are fewer, it does not walk."""
_SPARE_GATES: Final = 20
"""How many more gates are offered than are wanted, for those that others have locked."""
_GATES_PRUNED_AT_ONCE: Final = 1_000

GatePosition: TypeAlias = tuple[str, str, int]
"""A gate, a queue and a priority: one range of the index."""
GatePositions: TypeAlias = Mapping[str, GatePosition]
"""Where the walk of each task goes on."""
_FIRST_POSITION: Final[GatePosition] = ("", "", -1)
_Limits: TypeAlias = Mapping[str, MeasuredLimit]
_Rule: TypeAlias = tuple[int | None, int | None, int | None]
_Rules: TypeAlias = Mapping[str, _Rule]


class StartableRange(NamedTuple):
    """A range of the index with a due job that may start."""

    gate: str
    queue: str
    priority: int
    task: str
    due_at: Instant
    known: bool
    """Whether the gate has a row to lock."""
    rule: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimitSurvey(LimitSurvey):
    """What may start, as a look without locks has it."""

    heads: Sequence[StartableRange]
    """Most urgent first."""
    queues: Sequence[str]
    """Limited queues with room for jobs that have no gate."""
    limited: frozenset[str]
    """All limited queues."""


class SqlLimits(SqlSubject, LimitedClaiming[SqlLimitSurvey]):
    """Hands out jobs under limits."""

    @read()
    def _survey(self, demand: ClaimRequest, place: GatePositions | None) -> Script[SqlLimitSurvey]:
        places = ((task, *(place or {}).get(task, _FIRST_POSITION)) for task in demand.tasks)
        queued, tasks = encode_batch((queue,) for queue in demand.wanted), encode_batch(places)
        values = {"queues": queued, "tasks": tasks, "steps": _STEPS, "latest": _LATEST}
        lines = yield Query(self._sql.limited_queues, values)
        queues: dict[str, MeasuredLimit] = {}
        open_queues: list[str] = []
        for name, *rule, starts, running, now, due_at in lines:
            queues[name] = limit = MeasuredLimit(read_gate(*rule), read_starts(starts))
            limit.measure(running=running, now=now)
            if limit.free and due_at is not None and due_at <= now:
                open_queues.append(name)
        walked = yield Query(self._sql.waiting_gates, values)
        gates, heads, cut = _judge(walked, demand, queues)
        return SqlLimitSurvey(
            hopeful=bool(heads or open_queues),
            again_at=next_opening((*queues.values(), *gates.values())),
            place=cut,
            seen_at=walked[0][-1] if walked else lines[0][6] if lines else 0,
            heads=heads,
            queues=open_queues,
            limited=frozenset(queues),
        )

    async def _seize(self, demand: ClaimRequest, found: SqlLimitSurvey) -> list[Claim]:
        first: dict[str, StartableRange] = {}
        for head in found.heads:
            first.setdefault(head.gate, head)
        gates = [*first.values()][: 2 * demand.limit + _SPARE_GATES]
        if new := [head for head in gates if not head.known]:
            # Not in the transaction that claims: others who add the same rows would wait for its end.
            await self._add_gates([(h.gate, h.task, *_numbers(h.rule)) for h in new])
        return await self._hand_out(demand, found, gates)

    @write(atomic=False)
    def _add_gates(self, new: Sequence[Row]) -> Script[None]:
        """Add rows of gates; those that another worker has added meanwhile stay as they are."""
        yield Query(self._sql.add_gates, {"rows": encode_batch(new)})

    @write(rows=lambda demand: demand.limit)
    def _hand_out(
        self, demand: ClaimRequest, found: SqlLimitSurvey, heads: Sequence[StartableRange]
    ) -> Script[list[Claim]]:
        """Lock what was found open, count again, and hand out what may start; `heads`: of the gates to lock, one each."""
        queues = yield from self._lock_queues(found)
        stored, gates = yield from self._lock_gates(heads, demand.limit)
        yield from self._count(gates, queues)
        waiting = yield from self._waiting(demand, found, gates, queues)
        chosen = choose_limited(waiting, gates=gates, queues=queues, wanted=demand.wanted, most=demand.limit)
        if not chosen:
            return []
        values = {"worker": demand.worker, "claim_id": demand.claim_id}
        rows = encode_batch((job.id,) for job in chosen)
        taken = yield Query(self._sql.take_limited, {**values, "rows": rows})
        claims = [read_checked_claim(row)._replace(queue_limited=row[5] in queues) for row in taken]
        claims.sort(key=lambda claim: (claim.priority, claim.due_at, claim.job_id))
        yield from self._note(claims, gates, queues, stored)
        return claims

    def _lock_queues(self, found: SqlLimitSurvey) -> Script[_Limits]:
        wanted = {*found.queues, *(head.queue for head in found.heads if head.queue in found.limited)}
        if not wanted:
            return {}
        rows = encode_batch((name,) for name in sorted(wanted))
        locked = yield Query(self._sql.lock_queues, {"rows": rows})
        return {name: MeasuredLimit(read_gate(*rule), read_starts(starts)) for name, *rule, starts in locked}

    def _lock_gates(self, heads: Sequence[StartableRange], most: int) -> Script[tuple[_Rules, _Limits]]:
        """Lock gates that no one else has; return the rules in their rows, which may be those of other code, and the limits."""
        if not heads:
            return {}, {}
        places = encode_batch((head.gate, place) for place, head in enumerate(heads))
        locked = yield Query(self._sql.lock_gates, {"rows": places, "limit": most})
        rules = {head.gate: head.rule for head in heads}
        gates = {row[0]: MeasuredLimit(rules[row[0]], read_starts(row[4])) for row in locked}
        return {name: (most, count, period) for name, most, count, period, _ in locked}, gates

    def _count(self, gates: _Limits, queues: _Limits) -> Script[None]:
        if not gates and not queues:
            return
        gated = encode_batch((name, gate_schedule(name)) for name in gates)
        values = {"gates": gated, "queues": encode_batch((name,) for name in queues)}
        for kind, name, running, now in (yield Query(self._sql.running_under, values)):
            (gates if kind == "gate" else queues)[name].measure(running=running, now=now)

    def _waiting(
        self, demand: ClaimRequest, found: SqlLimitSurvey, gates: _Limits, queues: _Limits
    ) -> Script[list[LimitedJob]]:
        """List due jobs at the open gates and in the open queues, from each no more than it lets through."""
        tasks = encode_batch((task,) for task in demand.tasks)
        at_gates = [
            (head.task, head.gate, head.queue, head.priority, min(gates[head.gate].free, demand.limit))
            for head in found.heads
            # A limited queue that could not be locked is locked by another worker now.
            if head.gate in gates and (head.queue in queues or head.queue not in found.limited)
        ]
        in_queues = [(name, min(queues[name].free, demand.limit)) for name in found.queues if name in queues]
        jobs: list[LimitedJob] = []
        for statement, ranges in ((self._sql.at_gates, at_gates), (self._sql.in_queues, in_queues)):
            open_ranges = [range_ for range_ in ranges if range_[-1] > 0]
            together = self._dialect.claims_per_statement and open_ranges
            for group in [open_ranges] if together else [[one] for one in open_ranges]:
                values = {"rows": encode_batch(group), "most": group[0][-1], "ahead": 0, "tasks": tasks}
                waiting = yield Query(statement, {**values, "worker": demand.worker})
                jobs += map(LimitedJob._make, waiting)
        return jobs

    def _note(self, claims: Sequence[Claim], gates: _Limits, queues: _Limits, stored: _Rules) -> Script[None]:
        """Remember the starts that rates count, and the rules by which gates were judged."""
        noted = [
            (name, *_numbers(gate.rule), _starts_after(gate, starts))
            for name, gate in gates.items()
            if (starts := [claim.claimed_at for claim in claims if claim.gate == name])
            and (gate.rule.count is not None or stored[name] != _numbers(gate.rule))
        ]
        if noted:
            yield Query(self._sql.note_gates, {"rows": encode_batch(noted)})
        noted_starts = [
            (name, _starts_after(queue, starts))
            for name, queue in queues.items()
            if queue.rule.count is not None
            and (starts := [claim.claimed_at for claim in claims if claim.queue == name])
        ]
        if noted_starts:
            yield Query(self._sql.note_queues, {"rows": encode_batch(noted_starts)})

    @write(rows=None)
    def _prune_gates(self, after: str) -> Script[tuple[int, str]]:
        found = yield Query(self._sql.idle_gates, {"after": after, "stretch": _GATES_PRUNED_AT_ONCE})
        idle = [(name,) for name, is_idle in found if is_idle]
        gone = (yield Query(self._sql.prune_gates, {"rows": encode_batch(idle)})) if idle else []
        return len(gone), found[-1][0] if len(found) == _GATES_PRUNED_AT_ONCE else ""


def _judge(
    walked: Sequence[Row], demand: ClaimRequest, queues: _Limits
) -> tuple[_Limits, list[StartableRange], dict[str, GatePosition]]:
    """Tell the gates that were seen, the ranges that may be claimed from, and where walks were cut off."""
    gates: dict[str, MeasuredLimit] = {}
    heads: dict[GatePosition, StartableRange] = {}
    cut: dict[str, GatePosition] = {}
    for task, gate, queue, priority, due_at, step, ready, name, starts, passed, of_schedule, now in walked:
        place = (gate, queue, priority)
        if step == _STEPS:
            cut[task] = place
        if not ready or task not in demand.tasks:
            continue
        if gate not in gates:
            gates[gate] = MeasuredLimit(gate_rule(gate, task, demand.limits), read_starts(starts))
            running = passed if gate_schedule(gate) is None else of_schedule
            gates[gate].measure(running=running, now=now, passed=passed)
        if gates[gate].free and (queue not in queues or queues[queue].free):
            head = StartableRange(*place, task, due_at, name is not None, gates[gate].rule)
            heads[place] = min(head, heads.get(place, head), key=lambda one: one.due_at)
    return gates, sorted(heads.values(), key=lambda head: (head.priority, head.due_at)), cut


def _numbers(rule: Gate) -> _Rule:
    return rule.most, rule.count, None if rule.count is None else rule.period


def _starts_after(limit: MeasuredLimit, new: Sequence[Instant]) -> str | None:
    starts = limit.rule.after(limit.starts, new)
    return msgspec.json.encode(starts).decode() if starts else None
