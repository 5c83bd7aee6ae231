"""Queues: what is set for them, what is in them, and emptying them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.model import durations
from duetime.model.instants import Instant
from duetime.model.limit import UNLIMITED, Gate, schedule_at
from duetime.model.registries import Census, StoredQueue, Tally
from duetime.model.states import State
from duetime.model.texts import clean_text
from duetime.stores.base import Outlook
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts.control import Cancelled, cancel

if TYPE_CHECKING:
    from duetime.model.explain import LimitFacts


def pause_queue(sql: Statements, queue: str, *, reason: str | None) -> Script[None]:
    """Hand out nothing more from a queue."""
    text = None if reason is None else clean_text(reason)
    yield Query(sql.pause_queue, {"queue": queue, "reason": text})


def resume_queue(sql: Statements, queue: str) -> Script[None]:
    """Hand out jobs of a queue again."""
    yield Query(sql.resume_queue, {"queue": queue})


def outlook(sql: Statements, queue: str, *, gate: str | None) -> Script[Outlook]:
    """Tell what a queue and a gate say about the jobs in them."""
    found = yield Query(sql.outlook, {"queue": queue})
    now, paused_at, reason = found[0]
    schedule = None if gate is None else schedule_at(gate)
    limits = yield Query(sql.limits_on, {"queue": queue, "gate": gate, "schedule": schedule})
    return Outlook(now, paused_at, reason, tuple(_limit_facts(row, now) for row in limits))


def _limit_facts(row: Row, now: Instant) -> LimitFacts:
    from duetime.model.explain import LimitFacts

    kind, name, most, count, period, starts, running = row
    gate = Gate(most, count, period or 0)
    schedule = schedule_at(name) if kind == "task" else None
    room = gate.room(running=running, starts=rows.starts(starts), now=now)
    return LimitFacts(
        what=f"{kind} {name}" if schedule is None else f"schedule {schedule}",
        running=running,
        most=most,
        rate=None if count is None else f"{count} per {durations.describe(gate.period)}",
        again_at=room.again_at,
    )


def set_queue_limit(sql: Statements, queue: str, limit: Gate | None) -> Script[None]:
    """Limit a queue, or no longer."""
    rule = limit or UNLIMITED
    rate = {"rate_count": rule.count, "rate_period": None if rule.count is None else rule.period}
    yield Query(sql.set_queue_limit, {"queue": queue, "most": rule.most, **rate})


def census(sql: Statements, *, most: int) -> Script[Census]:
    """Count what is in each queue, up to a bound for each thing that is counted."""
    settings = yield Query(sql.queues, {})
    tallies: list[Tally] = []
    waiting = yield Query(sql.tally_waiting, {"most": most})
    for queue, _priority, due, later in waiting:
        tallies.append(Tally(queue, State.PENDING, due, due=True, whole=due < most))
        tallies.append(Tally(queue, State.PENDING, later, whole=later < most))
    gated = yield Query(sql.tally_gated, {"most": most})
    tallies += [Tally(queue, State.PENDING, count, due=bool(due)) for queue, due, count in gated]
    running = yield Query(sql.tally_running, {})
    tallies += [
        Tally(queue, State.RUNNING, count, started=bool(started)) for queue, started, count in running
    ]
    latest = yield Query(sql.tally_latest, {"most": most})
    tallies += [
        Tally(queue, State(state), count, started=bool(started))
        for queue, state, started, count in latest
        if State(state).terminal
    ]
    return Census(
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
) -> Script[Cancelled | None]:
    """Cancel some pending jobs of a queue, locked first so that no worker takes them; `None` when there are none."""
    values = {"queue": queue, "before": before, "limit": limit}
    found = yield Query(sql.purgeable, values)
    if len(found) < limit:
        found += yield Query(sql.purgeable_gated, values | {"limit": limit - len(found)})
    if not found:
        return None
    return (yield from cancel(sql, [row[0] for row in found], reason=reason))
