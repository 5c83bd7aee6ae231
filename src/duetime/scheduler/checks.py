"""What can be wrong with schedules as a whole."""

from __future__ import annotations

from duetime.model.durations import MINUTE
from duetime.model.explain.words import length
from duetime.model.fleet import Fleet
from duetime.model.instants import Instant
from duetime.model.names import named, some
from duetime.model.schedule import StoredSchedule
from duetime.model.triggers.text import trigger_of
from duetime.model.triggers.unreadable import Unreadable
from duetime.stores.base import Check, Store

_LATE = MINUTE
"""How long after its time a schedule is fired at the latest when somebody is there to do so."""
_NAMED = 3

_START = "duetime scheduler MODULE:SCHEDULER, or a worker without --no-schedules"


async def check_schedules(store: Store) -> Check:
    """Tell whether somebody fires the schedules, in time, and knows their tasks."""
    schedules, workers, now = await store.schedules(), await store.workers(), await store.now()
    return judge(schedules, Fleet.of(workers), now=now)


def _unreadable(active: list[StoredSchedule], what: str) -> Check | None:
    problems = {one.name: read for one in active if isinstance(read := trigger_of(one), Unreadable)}
    if not problems:
        return None
    first, problem = next(iter(problems.items()))
    return Check(
        name="schedules",
        ok=False,
        detail=f"{what}, {len(problems):,} of them cannot be read and wait: {named(list(problems), most=_NAMED)}",
        fix=f"put or delete them; {first} has {problem.describe()}",
    )


def judge(schedules: list[StoredSchedule], fleet: Fleet, *, now: Instant) -> Check:
    """Return the first thing that is wrong, in the order in which it is to be mended."""
    active = [s for s in schedules if s.next_at is not None and s.paused_at is None and s.parked_at is None]
    if not active:
        return Check(name="schedules", ok=True, detail="no active schedules")
    what = f"{len(active):,} active"
    return _unreadable(active, what) or _unserved(active, fleet, what, now=now)


def _unserved(active: list[StoredSchedule], fleet: Fleet, what: str, *, now: Instant) -> Check:
    if not fleet.fires:
        return Check(
            name="schedules", ok=False, detail=f"{what}, and nobody fires them", fix=f"start {_START}"
        )
    if not fleet.queues:
        return Check(
            name="schedules",
            ok=False,
            detail=f"{what}, and nobody runs their jobs",
            fix="start duetime worker MODULE:SCHEDULER",
        )
    if unknown := [schedule for schedule in active if not fleet.knows(schedule.task)]:
        tasks = sorted({schedule.task for schedule in unknown})
        return Check(
            name="schedules",
            ok=False,
            detail=f"{what}, {len(unknown):,} with tasks that no living worker knows: {some(tasks[:_NAMED], len(tasks))}",
            fix="start a worker with the code that has them; delete only schedules that are no longer wanted",
        )
    late = [(schedule.next_at or 0, schedule.name) for schedule in active]
    if overdue := sorted(pair for pair in late if pair[0] < now - _LATE):
        return Check(
            name="schedules",
            ok=False,
            detail=f"{what}, {len(overdue):,} overdue for up to {length(now - overdue[0][0])}: "
            f"{some([name for _, name in overdue[:_NAMED]], len(overdue))}",
            fix=f"see the log of the workers that fire schedules, or: duetime explain {overdue[0][1]}",
        )
    return Check(name="schedules", ok=True, detail=f"{what}, none overdue")
