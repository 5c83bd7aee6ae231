"""Schedules: put, fire, pause."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from duetime.model.instants import Instant, Micros
from duetime.model.schedule import Firing, NewSchedule
from duetime.model.worker import WorkerId
from duetime.stores.base import DueSchedules
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts.jobs import insertion


class Changed(NamedTuple):
    """Which schedules were changed, and which workers hold jobs of theirs that must not start."""

    names: list[str]
    workers: frozenset[WorkerId]


def put_schedules(sql: Statements, schedules: Sequence[NewSchedule]) -> Script[Changed]:
    """Add or update; planted occurrences of what changed are withdrawn and become open again."""
    found = yield Query(sql.declared, {"rows": rows.batch((schedule.name,) for schedule in schedules)})
    declared: dict[str, str] = {row[0]: row[1] for row in found}
    put = yield Query(sql.put_schedules, {"rows": rows.new_schedules(schedules)})
    changed = {row[0] for row in put}
    edited = changed & declared.keys()
    if not edited:
        return Changed(_in_order(schedules, changed), frozenset())
    kept = {new.name for new in schedules if declared.get(new.name) == rows.clean_text(new.declared)}
    workers = yield from _withdraw(sql, edited, reason="schedule changed", again=kept)
    return Changed(_in_order(schedules, changed), workers)


def due_schedules(sql: Statements, *, ahead: Micros, limit: int) -> Script[DueSchedules]:
    """List the schedules to fire, and tell when the next one comes up."""
    due = yield Query(sql.due_schedules, {"ahead": ahead, "limit": limit + 1})
    found = yield Query(sql.next_schedule, {"ahead": ahead})
    now, next_at = found[0]
    schedules = [rows.schedule(row) for row in due]
    # One more than asked for: whether others are due already, beyond the limit.
    return DueSchedules(now, schedules[:limit], schedules[limit].next_at if schedules[limit:] else next_at)


def fire(sql: Statements, firings: Sequence[Firing]) -> Script[frozenset[str]]:
    """Move schedules on by compare-and-set and store the jobs of those that moved."""
    moves = [(f.name, f.rev, f.expected, f.fired_through, f.next_at) for f in firings]
    moved = yield Query(sql.fire, {"rows": rows.batch(moves)})
    applied = frozenset(row[0] for row in moved)
    jobs = [job for firing in firings if firing.name in applied for job in firing.jobs]
    if jobs:
        yield insertion(sql, jobs)
    return applied


def pause_schedule(sql: Statements, name: str, *, reason: str | None) -> Script[Changed]:
    """Stop a schedule and withdraw what it has planted."""
    text = None if reason is None else rows.clean_text(reason)
    found = yield Query(sql.pause_schedule, {"name": name, "reason": text})
    workers: frozenset[WorkerId] = frozenset()
    if found:
        workers = yield from _withdraw(sql, {name}, reason="schedule paused", again={name})
    return Changed(_names(found), workers)


def resume_schedule(
    sql: Statements, name: str, *, next_at: Instant | None, fired_through: Instant
) -> Script[bool]:
    """Let a schedule fire again."""
    values = {"name": name, "next_at": next_at, "fired_through": fired_through}
    found = yield Query(sql.resume_schedule, values)
    return bool(found)


def delete_schedule(sql: Statements, name: str) -> Script[Changed]:
    """Forget a schedule and withdraw what it has planted."""
    found = yield Query(sql.delete_schedule, {"name": name})
    workers: frozenset[WorkerId] = frozenset()
    if found:
        workers = yield from _withdraw(sql, {name}, reason="schedule deleted", again=())
    return Changed(_names(found), workers)


def _withdraw(
    sql: Statements, names: Collection[str], *, reason: str, again: Collection[str]
) -> Script[frozenset[WorkerId]]:
    """Take back planted jobs; return the workers that hold some of them.

    The schedule is put back to before them, or an edit a moment before an occurrence would swallow it.
    """
    values = {"rows": rows.batch((name,) for name in sorted(names)), "reason": reason}
    withdrawn = yield Query(sql.withdraw, values)
    first: dict[str, Instant] = {}
    for name, occurrence in withdrawn:
        first[name] = min(occurrence, first.get(name, occurrence))
    if first:
        back = [(name, occurrence, int(name in again)) for name, occurrence in sorted(first.items())]
        yield Query(sql.rewind, {"rows": rows.batch(back)})
    flagged = yield Query(sql.withdraw_claimed, values)
    return frozenset(row[0] for row in flagged if row[0] is not None)


def _in_order(schedules: Sequence[NewSchedule], changed: Collection[str]) -> list[str]:
    return [schedule.name for schedule in schedules if schedule.name in changed]


def _names(found: Sequence[Row]) -> list[str]:
    return [row[0] for row in found]
