"""Writes to schedules: read, decide, compare and set, and again when somebody was faster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.instants import Instant
from duetime.model.oddities import oddity
from duetime.model.schedule import Change, StoredSchedule
from duetime.scheduler.lookup import no_schedule
from duetime.scheduler.moved import check_not_moved
from duetime.stores.base import Store

_TRIES = 50
_PAUSE = 0.002

Answer: TypeAlias = Literal["created", "changed", "unchanged"]
Decision: TypeAlias = Callable[[StoredSchedule | None, Instant], Change | None]


async def alter(store: Store, name: str, decide: Decision) -> Change | None:
    """Write what is decided for one schedule; return it, or `None` when nothing was to be changed."""
    written = await alter_all(store, {name: decide})
    return written.get(name)


async def alter_known(
    store: Store, name: str, decide: Callable[[StoredSchedule, Instant], Change | None]
) -> Change | None:
    """Do the same for a schedule that must exist; raises `ScheduleNotFound`."""
    return await alter(store, name, lambda found, now: decide(known(found, name), now))


async def alter_all(
    store: Store, decisions: Mapping[str, Decision], *, whole: bool = False
) -> dict[str, Change]:
    """Write what is decided for each schedule, all that hold in one step, or all or none; return what was written."""
    written: dict[str, Change] = {}
    open_names: list[str] = list(decisions)
    if not open_names:
        return written
    async for now in _tries(store, open_names):
        found = {schedule.name: _sound(schedule) for schedule in await store.get_schedules(open_names)}
        changes = {name: decisions[name](found.get(name), now) for name in open_names}
        due = {name: change for name, change in changes.items() if change is not None}
        applied = await write(store, list(due.values()), whole=whole)
        written |= {name: due[name] for name in applied}
        open_names[:] = [name for name in due if name not in applied]
        if not open_names:
            break
    return written


async def readings(store: Store, name: str) -> AsyncIterator[tuple[StoredSchedule, Instant]]:
    """Yield a schedule and the time, read again as often as somebody was faster; raises `ScheduleNotFound`."""
    async for now in _tries(store, [name]):
        yield known(next(iter(await store.get_schedules([name])), None), name), now


async def write(store: Store, changes: Sequence[Change], *, whole: bool = False) -> frozenset[str]:
    """Write; once more if no answer comes, since what had been written is known by its entry."""
    try:
        return await store.write_schedules(changes, whole=whole)
    except StoreUnavailable:
        return await store.write_schedules(changes, whole=whole)


def answer_of(change: Change | None) -> Answer:
    """Tell what was done to a schedule that was asked for."""
    if change is None:
        return "unchanged"
    return "created" if change.before is None else "changed"


def known(schedule: StoredSchedule | None, name: str) -> StoredSchedule:
    """Return a schedule that exists, or raise `ScheduleNotFound`."""
    if schedule is None:
        raise no_schedule(name)
    return _sound(schedule)


def _sound(schedule: StoredSchedule) -> StoredSchedule:
    """Return a schedule that can be changed; raise `StoreError` for one whose row was edited by hand."""
    if (problem := oddity(schedule)) is not None:
        text = f"the row of schedule {schedule.name} cannot be read: {problem}; delete the schedule and put it again"
        raise StoreError(text)
    return schedule


async def _tries(store: Store, names: list[str]) -> AsyncIterator[Instant]:
    check_not_moved(store)
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE * random.uniform(0, attempt))
        yield await store.now()
    text = f"schedule {names[0]} is being changed by others all the time; try again"
    raise StoreUnavailable(text)
