"""Queues: what is set for them, what is in them, and emptying them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.model.limits import UNLIMITED, Gate, gate_schedule
from duetime.model.queues import QueueCensus, StateCount, StoredQueue
from duetime.model.states import State
from duetime.model.text import clean_text
from duetime.model.time import Instant, describe_duration
from duetime.stores.base import CancelAnswer, Hint, QueueOutlook
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.job_control import CancelResult, SqlJobControl, cancel
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import read_starts

if TYPE_CHECKING:
    from duetime.model.explain.facts import LimitFacts


def pause_queue(sql: Statements, queue: str, *, reason: str | None) -> Script[None]:
    """Hand out nothing more from a queue."""
    text = None if reason is None else clean_text(reason)
    yield Query(sql.pause_queue, {"queue": queue, "reason": text})


def resume_queue(sql: Statements, queue: str) -> Script[None]:
    """Hand out jobs of a queue again."""
    yield Query(sql.resume_queue, {"queue": queue})


def outlook(sql: Statements, queue: str, *, gate: str | None) -> Script[QueueOutlook]:
    """Tell what a queue and a gate say about the jobs in them."""
    found = yield Query(sql.outlook, {"queue": queue})
    now, paused_at, reason = found[0]
    schedule = None if gate is None else gate_schedule(gate)
    limits = yield Query(sql.limits_on, {"queue": queue, "gate": gate, "schedule": schedule})
    return QueueOutlook(now, paused_at, reason, tuple(_limit_facts(row, now) for row in limits))


def _limit_facts(row: Row, now: Instant) -> LimitFacts:
    from duetime.model.explain.facts import LimitFacts

    kind, name, most, count, period, starts, running = row
    gate = Gate(most, count, period or 0)
    schedule = gate_schedule(name) if kind == "task" else None
    room = gate.room(running=running, starts=read_starts(starts), now=now)
    return LimitFacts(
        what=f"{kind} {name}" if schedule is None else f"schedule {schedule}",
        running=running,
        most=most,
        rate=None if count is None else f"{count} per {describe_duration(gate.period)}",
        again_at=room.again_at,
    )


def set_queue_limit(sql: Statements, queue: str, limit: Gate | None) -> Script[None]:
    """Limit a queue, or no longer."""
    rule = limit or UNLIMITED
    rate = {"rate_count": rule.count, "rate_period": None if rule.count is None else rule.period}
    yield Query(sql.set_queue_limit, {"queue": queue, "most": rule.most, **rate})


def census(sql: Statements, *, most: int) -> Script[QueueCensus]:
    """Count what is in each queue, up to a bound for each thing that is counted."""
    settings = yield Query(sql.queues, {})
    tallies: list[StateCount] = []
    waiting = yield Query(sql.tally_waiting, {"most": most})
    for queue, _priority, due, later in waiting:
        tallies.append(StateCount(queue, State.PENDING, due, due=True, whole=due < most))
        tallies.append(StateCount(queue, State.PENDING, later, whole=later < most))
    gated = yield Query(sql.tally_gated, {"most": most})
    tallies += [StateCount(queue, State.PENDING, count, due=bool(due)) for queue, due, count in gated]
    running = yield Query(sql.tally_running, {})
    tallies += [
        StateCount(queue, State.RUNNING, count, started=bool(started)) for queue, started, count in running
    ]
    latest = yield Query(sql.tally_latest, {"most": most})
    tallies += [
        StateCount(queue, State(state), count, started=bool(started))
        for queue, state, started, count in latest
        if State(state).terminal
    ]
    return QueueCensus(
        queues=[
            StoredQueue(
                name=name, paused_at=at, paused_reason=why, limit=Gate(most_at_once, count, period or 0)
            )
            for name, at, why, most_at_once, count, period in settings
        ],
        tallies=tallies,
        gates_whole=sum(row[-1] for row in gated) < most,
        history_whole=sum(row[-1] for row in latest) < most,
    )


def purge(
    sql: Statements, queue: str, *, before: Instant, reason: str, limit: int
) -> Script[CancelResult | None]:
    """Cancel some pending jobs of a queue, locked first so that no worker takes them; `None` when there are none."""
    values = {"queue": queue, "before": before, "limit": limit}
    found = yield Query(sql.purgeable, values)
    if len(found) < limit:
        found += yield Query(sql.purgeable_gated, values | {"limit": limit - len(found)})
    if not found:
        return None
    return (yield from cancel(sql, [row[0] for row in found], reason=reason))


class SqlQueues(SqlJobControl):
    """A part of `SqlStore`, which has the driver and the statements."""

    async def pause_queue(self, queue: str, *, reason: str | None) -> None:
        """Hand out nothing more from a queue."""
        await self._driver.write(lambda: pause_queue(self._sql, queue, reason=reason), atomic=False)

    async def resume_queue(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        await self._driver.write(lambda: resume_queue(self._sql, queue), atomic=False)
        self._driver.hint(Hint("jobs"))

    async def outlook(self, queue: str, *, gate: str | None = None) -> QueueOutlook:
        """Return what, beside workers, decides whether jobs in a queue, under a gate, are handed out."""
        return await self._driver.read(lambda: outlook(self._sql, queue, gate=gate))

    async def paused_queues(self) -> Mapping[str, str | None]:
        """Return the paused queues with their reasons."""
        return await self._driver.read(lambda: paused_queues(self._sql))

    async def set_queue_limit(self, queue: str, limit: Gate | None) -> None:
        """Limit a queue, or no longer."""
        await self._driver.write(lambda: set_queue_limit(self._sql, queue, limit), atomic=False)
        self._driver.hint(Hint("jobs"))

    async def queue_limits(self) -> Mapping[str, Gate]:
        """Return the limited queues with their limits."""
        return await self._driver.read(lambda: queue_limits(self._sql))

    async def census(self, *, most: int) -> QueueCensus:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        return await self._driver.read(lambda: census(self._sql, most=most), rows=None)

    async def purge(self, queue: str, *, before: Instant, reason: str, limit: int) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many."""
        cancelled = await self._driver.write(
            lambda: purge(self._sql, queue, before=before, reason=reason, limit=limit),
            rows=None,
        )
        if cancelled is None:
            return 0
        self._hint_cancelled(cancelled)
        return list(cancelled.answers.values()).count(CancelAnswer.CANCELLED)


def paused_queues(sql: Statements) -> Script[Mapping[str, str | None]]:
    """Read the queues that hand out nothing."""
    found = yield Query(sql.paused_queues, {})
    paused: dict[str, str | None] = {row[0]: row[1] for row in found}
    return paused


def queue_limits(sql: Statements) -> Script[Mapping[str, Gate]]:
    """Read the limits of queues."""
    found = yield Query(sql.queue_limits, {})
    return {name: Gate(most, count, period or 0) for name, most, count, period in found}


def counts(sql: Statements) -> Script[Mapping[tuple[str, State], int]]:
    """Count jobs by queue and state."""
    found = yield Query(sql.counts, {})
    return {(queue, State(state)): count for queue, state, count in found}
