"""Jobs under limits: a look that locks nothing, and a claim that locks what it counts.

Nothing is counted up or down anywhere. What runs is what the rows of the jobs say, and it is counted under a lock
that every claimer takes, in a statement after the one that took it. So no crash can make a count go wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeAlias

import msgspec

from duetime.model.job import Claim, JobId
from duetime.model.limits import UNLIMITED, Gate, gate_rule, gate_schedule
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import ClaimRequest, LimitedClaims
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, read_checked_claim, read_starts
from duetime.stores.sql.verbs import SqlSubject, read, write

_STEPS: Final = 500
"""How many ranges of the index one look walks for each task; the next look goes on from there."""
_LATEST: Final = 100
"""How many of the jobs that fell due last one look sees besides its walk; if there are fewer, it does not walk."""
_SPARE_GATES: Final = 20
"""How many more gates are offered than are wanted, for those that others have locked."""
_GATES_PRUNED_AT_ONCE: Final = 1_000
_LOOKS: Final = 20
"""How many looks past closed gates one claim takes before it answers that it is not through."""
_RECHECK_AFTER: Final[Micros] = SECOND // 2
"""When to look again at a gate that a job without a gate keeps shut: no one is told when that job has ended."""

GatePosition: TypeAlias = tuple[str, str, int]
"""A gate, a queue and a priority: one range of the index."""
_FIRST_POSITION: Final[GatePosition] = ("", "", -1)


class StartableRange(NamedTuple):
    """A range of the index with a due job that may start."""

    task: str
    gate: str
    queue: str
    priority: int
    due_at: Instant
    known: bool
    """Whether the gate has a row to lock."""


class LimitSurvey(NamedTuple):
    """What may start, as a look without locks has it."""

    heads: list[StartableRange]
    """Most urgent first."""
    queues: list[str]
    """Limited queues with room for jobs that have no gate."""
    limited: frozenset[str]
    """All limited queues."""
    again_at: Instant | None
    """When time alone will let in the next job."""
    places: Mapping[str, GatePosition]
    """Where the walks ended that are not through, by task."""
    seen_at: Instant

    @property
    def hopeful(self) -> bool:
        """Whether there is anything to claim."""
        return bool(self.heads or self.queues)


@dataclass(slots=True)
class MeasuredLimit:
    """A gate or a limited queue, with the room it has left."""

    rule: Gate
    starts: list[Instant]
    stored: Gate = UNLIMITED
    """The rule in the row, which for a gate may be that of another version of the code."""
    free: int = 0
    again_at: Instant | None = None

    def measure(self, *, running: int, now: Instant) -> None:
        """Work out how many may pass."""
        self.free, self.again_at = self.rule.room(running=running, starts=self.starts, now=now)


MeasuredLimits: TypeAlias = Mapping[str, MeasuredLimit]


@dataclass(slots=True)
class _GateWalk:
    """How far one worker's walk round the gates of some tasks has come."""

    places: Mapping[str, GatePosition] = field(default_factory=dict[str, GatePosition])
    queues: frozenset[str] = frozenset()
    """Those that every look since it began has seen."""
    hopeless: bool = True
    """Whether nothing was found open since it began."""
    again: list[Instant] = field(default_factory=list[Instant])

    @property
    def proved_hopeless(self) -> bool:
        """Whether it went from the first gate to the last and found none open."""
        return self.hopeless and not self.places


class SqlLimits(SqlSubject):
    """Hands out jobs under limits, and remembers each worker's walk round the gates."""

    _pruned_through = ""

    @cached_property
    def _walks(self) -> defaultdict[tuple[WorkerId, tuple[str, ...]], _GateWalk]:
        return defaultdict(_GateWalk)

    async def claim_limited(self, demand: ClaimRequest) -> LimitedClaims:
        """Hand out due jobs that limits let through; while none may start, this writes nothing."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return LimitedClaims([], None)
        walk = self._walks[demand.worker, demand.tasks]
        seen_at: Instant = 0
        for _ in range(_LOOKS):
            found = await self._look(demand, walk)
            seen_at = found.seen_at
            if found.hopeful:
                if new := _missing(demand, found):
                    # Not in the transaction that claims: others who add the same rows would wait for its end.
                    await self._add_gates(new)
                one_statement = self._dialect.claims_per_statement
                script = partial(_seize, self._sql, demand, found, one_statement=one_statement)
                return await self._driver.write(script, rows=demand.limit)
            if walk.proved_hopeless:
                return LimitedClaims([], min(walk.again, default=None))
        return LimitedClaims([], seen_at)

    async def prune_gates(self) -> int:
        """Forget some of the gates that no job needs."""
        pruned = 0
        for _ in range(_LOOKS):
            some, self._pruned_through = await self._prune_gates(self._pruned_through)
            pruned += some
            if not self._pruned_through:
                break
        return pruned

    @write(rows=None)
    def _prune_gates(self, after: str) -> Script[tuple[int, str]]:
        """Forget idle gates of the next stretch; return how many, and where the stretch after it begins."""
        found = yield Query(self._sql.idle_gates, {"after": after, "stretch": _GATES_PRUNED_AT_ONCE})
        idle = [(name,) for name, is_idle in found if is_idle]
        gone = (yield Query(self._sql.prune_gates, {"rows": encode_batch(idle)})) if idle else []
        return len(gone), found[-1][0] if len(found) == _GATES_PRUNED_AT_ONCE else ""

    @write(atomic=False)
    def _add_gates(self, new: Sequence[Row]) -> Script[None]:
        """Add rows of gates; those that another worker has added meanwhile stay as they are."""
        yield Query(self._sql.add_gates, {"rows": encode_batch(new)})

    async def _look(self, demand: ClaimRequest, walk: _GateWalk) -> LimitSurvey:
        queues = frozenset(queue for queue, most in demand.queues if most > 0)
        if not walk.places:
            walk.hopeless, walk.again = True, []
        elif not queues <= walk.queues:
            # The gates that lie behind were not looked at for these queues, so that this walk proves nothing.
            walk.hopeless = False
        walk.queues = queues
        found = await self._survey(demand, walk.places)
        # Gates that were found open are left behind all the same, or the first ones would starve the last.
        walk.places = found.places
        walk.hopeless = walk.hopeless and not found.hopeful
        walk.again += [] if found.again_at is None else [found.again_at]
        return found

    @read()
    def _survey(self, demand: ClaimRequest, places: Mapping[str, GatePosition]) -> Script[LimitSurvey]:
        """Look for jobs that limits let through, going on where the last look stopped."""
        values = {
            "queues": encode_batch((queue,) for queue, most in demand.queues if most > 0),
            "tasks": encode_batch((task, *places.get(task, _FIRST_POSITION)) for task in demand.tasks),
            "steps": _STEPS,
            "latest": _LATEST,
        }
        lines = yield Query(self._sql.limited_queues, values)
        queues: dict[str, MeasuredLimit] = {}
        open_queues: list[str] = []
        for name, most, count, period, starts, running, now, due_at in lines:
            queues[name] = barrier = MeasuredLimit(Gate(most, count, period or 0), read_starts(starts))
            barrier.measure(running=running, now=now)
            if barrier.free and due_at is not None and due_at <= now:
                open_queues.append(name)
        walked = yield Query(self._sql.waiting_gates, values)
        gates, heads, places = _judge(walked, demand, queues)
        later = [b.again_at for b in (*queues.values(), *gates.values()) if b.again_at is not None]
        seen_at: Instant = walked[0][-1] if walked else lines[0][6] if lines else 0
        return LimitSurvey(heads, open_queues, frozenset(queues), min(later, default=None), places, seen_at)


def _judge(
    walked: Sequence[Row], demand: ClaimRequest, queues: MeasuredLimits
) -> tuple[dict[str, MeasuredLimit], list[StartableRange], dict[str, GatePosition]]:
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
            gates[gate].measure(running=running, now=now)
            if running > passed:
                gates[gate].again_at = now + _RECHECK_AFTER
        if gates[gate].free and (queue not in queues or queues[queue].free):
            head = StartableRange(task, gate, queue, priority, due_at, name is not None)
            heads[place] = min(head, heads.get(place, head), key=lambda one: one.due_at)
    return gates, sorted(heads.values(), key=lambda head: (head.priority, head.due_at)), cut


def _missing(demand: ClaimRequest, found: LimitSurvey) -> list[Row]:
    """Return the rows to add before the gates that were found open can be locked."""
    return [
        (head.gate, head.task, *_numbers(gate_rule(head.gate, head.task, demand.limits)))
        for head in _candidates(demand, found)
        if not head.known
    ]


def _seize(
    sql: Statements, demand: ClaimRequest, found: LimitSurvey, *, one_statement: bool
) -> Script[LimitedClaims]:
    """Lock what was found open, count again, and hand out what may start."""
    queues = yield from _lock_queues(sql, found)
    gates = yield from _lock_gates(sql, demand, found)
    yield from _count(sql, gates, queues)
    waiting = yield from _waiting(sql, demand, found, gates, queues, one_statement=one_statement)
    chosen = _choose(waiting, demand, gates, queues)
    claims: list[Claim] = []
    if chosen:
        batch = encode_batch((job_id,) for job_id in chosen)
        taken = yield Query(
            sql.take_limited, {"worker": demand.worker, "claim_id": demand.claim_id, "rows": batch}
        )
        claims = [read_checked_claim(row)._replace(queue_limited=row[5] in queues) for row in taken]
        claims.sort(key=lambda claim: (claim.priority, claim.due_at, claim.job_id))
        yield from _note(sql, claims, gates, queues)
    # Something may be left, and others may have had a gate locked just now: to look again costs little.
    return LimitedClaims(claims, found.seen_at)


def _lock_queues(sql: Statements, found: LimitSurvey) -> Script[dict[str, MeasuredLimit]]:
    wanted = {*found.queues, *(head.queue for head in found.heads if head.queue in found.limited)}
    if not wanted:
        return {}
    locked = yield Query(sql.lock_queues, {"rows": encode_batch((name,) for name in sorted(wanted))})
    return {
        name: MeasuredLimit(Gate(most, count, period or 0), read_starts(starts))
        for name, most, count, period, starts in locked
    }


def _candidates(demand: ClaimRequest, found: LimitSurvey) -> list[StartableRange]:
    """Return the gates that are worth locking, each by its most urgent range."""
    first = {head.gate: head for head in reversed(found.heads)}
    return [head for head in found.heads if first[head.gate] is head][: 2 * demand.limit + _SPARE_GATES]


def _lock_gates(
    sql: Statements, demand: ClaimRequest, found: LimitSurvey
) -> Script[dict[str, MeasuredLimit]]:
    heads = _candidates(demand, found)
    if not heads:
        return {}
    places = encode_batch((head.gate, place) for place, head in enumerate(heads))
    locked = yield Query(sql.lock_gates, {"rows": places, "limit": demand.limit})
    tasks = {head.gate: head.task for head in heads}
    return {
        name: MeasuredLimit(
            gate_rule(name, tasks[name], demand.limits), read_starts(starts), Gate(most, count, period or 0)
        )
        for name, most, count, period, starts in locked
    }


def _count(sql: Statements, gates: MeasuredLimits, queues: MeasuredLimits) -> Script[None]:
    if not gates and not queues:
        return
    values = {
        "gates": encode_batch((name,) for name in gates if gate_schedule(name) is None),
        # What was made before the schedule took turns, or for another task, has no such gate and is waited for, too.
        "turns": encode_batch(
            (name, schedule) for name in gates if (schedule := gate_schedule(name)) is not None
        ),
        "queues": encode_batch((name,) for name in queues),
    }
    counted = yield Query(sql.running_under, values)
    for kind, name, running, now in counted:
        (gates if kind == "gate" else queues)[name].measure(running=running, now=now)


def _waiting(
    sql: Statements,
    demand: ClaimRequest,
    found: LimitSurvey,
    gates: MeasuredLimits,
    queues: MeasuredLimits,
    *,
    one_statement: bool,
) -> Script[list[Row]]:
    """List due jobs at the open gates and in the open queues, from each no more than it lets through."""
    tasks = encode_batch((task,) for task in demand.tasks)
    at_gates = [
        (*head[:4], min(gates[head.gate].free, demand.limit))
        for head in found.heads
        # A limited queue that could not be locked is locked by another worker now.
        if head.gate in gates and (head.queue in queues or head.queue not in found.limited)
    ]
    in_queues = [(name, min(queues[name].free, demand.limit)) for name in found.queues if name in queues]
    jobs: list[Row] = []
    for statement, ranges in ((sql.at_gates, at_gates), (sql.in_queues, in_queues)):
        open_ranges = [range_ for range_ in ranges if range_[-1] > 0]
        for group in [open_ranges] if one_statement and open_ranges else [[one] for one in open_ranges]:
            values = {
                "rows": encode_batch(group),
                "most": group[0][-1],
                "ahead": 0,
                "tasks": tasks,
                "worker": demand.worker,
            }
            jobs += yield Query(statement, values)
    return jobs


def _choose(
    waiting: Sequence[Row], demand: ClaimRequest, gates: MeasuredLimits, queues: MeasuredLimits
) -> list[JobId]:
    """Let jobs pass, the most urgent first, while their gate, their queue and the worker have room."""
    room = dict(demand.queues)
    chosen: list[JobId] = []
    for job_id, gate, queue, _, _ in sorted(waiting, key=lambda row: (row[3], row[4], row[0])):
        passed = [b for b in (gates.get(gate), queues.get(queue)) if b is not None]
        if len(chosen) < demand.limit and room[queue] > 0 and all(barrier.free for barrier in passed):
            chosen.append(job_id)
            room[queue] -= 1
            for barrier in passed:
                barrier.free -= 1
    return chosen


def _note(
    sql: Statements, claims: Sequence[Claim], gates: MeasuredLimits, queues: MeasuredLimits
) -> Script[None]:
    """Remember the starts that rates count, and the rules by which gates were judged."""
    starts: defaultdict[tuple[str, str | None], list[Instant]] = defaultdict(list)
    for claim in claims:
        starts["gate", claim.gate].append(claim.claimed_at)
        starts["queue", claim.queue].append(claim.claimed_at)
    at_gates = [
        (name, *_numbers(barrier.rule), _write(barrier.rule.after(barrier.starts, starts["gate", name])))
        for name, barrier in gates.items()
        if ("gate", name) in starts
        and (barrier.rule.count is not None or _numbers(barrier.stored) != _numbers(barrier.rule))
    ]
    if at_gates:
        yield Query(sql.note_gates, {"rows": encode_batch(at_gates)})
    in_queues = [
        (name, _write(barrier.rule.after(barrier.starts, starts["queue", name])))
        for name, barrier in queues.items()
        if ("queue", name) in starts and barrier.rule.count is not None
    ]
    if in_queues:
        yield Query(sql.note_queues, {"rows": encode_batch(in_queues)})


def _numbers(rule: Gate) -> tuple[int | None, int | None, int | None]:
    return rule.most, rule.count, None if rule.count is None else rule.period


def _write(starts: list[Instant]) -> str | None:
    return msgspec.json.encode(starts).decode() if starts else None
