"""Writes to schedules: read, decide, compare and set, and retry if another writer was faster."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.schedule.actions import declare
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.stored.jobs import row_problem
from duetime.model.time import Instant
from duetime.scheduler.lookup import check_not_moved, schedule_not_found
from duetime.scheduler.registry import ScheduleDefinition
from duetime.stores.base import Store

_MAX_ATTEMPTS = 50
_RETRY_PAUSE = 0.002

ChangeAnswer: TypeAlias = Literal["created", "changed", "unchanged"]
ScheduleDecision: TypeAlias = Callable[[StoredSchedule | None, Instant], ScheduleUpdate | None]


async def change_schedule(store: Store, name: str, decide: ScheduleDecision) -> ScheduleUpdate | None:
    """Write what is decided for one schedule; return it, or `None` when nothing was to be changed."""
    return (await change_schedules(store, {name: decide})).get(name)


async def change_existing(
    store: Store, name: str, decide: Callable[[StoredSchedule, Instant], ScheduleUpdate | None]
) -> ScheduleUpdate | None:
    """Do the same for a schedule that must exist; raises `ScheduleNotFound`."""
    return await change_schedule(store, name, lambda found, now: decide(existing_schedule(found, name), now))


async def change_schedules(
    store: Store, decisions: Mapping[str, ScheduleDecision], *, whole: bool = False
) -> dict[str, ScheduleUpdate]:
    """Write what is decided for each schedule, all that hold in one step, or all or none; return what was written."""
    written: dict[str, ScheduleUpdate] = {}
    left = list(decisions)
    async for now in _attempts(store, left):
        found = {schedule.name: _readable(schedule) for schedule in await store.get_schedules(left)}
        changes = {name: decisions[name](found.get(name), now) for name in left}
        due = {name: change for name, change in changes.items() if change is not None}
        applied = await write_changes(store, list(due.values()), whole=whole)
        written |= {name: due[name] for name in applied}
        left[:] = [name for name in due if name not in applied]
    return written


async def read_until_written(store: Store, name: str) -> AsyncIterator[tuple[StoredSchedule, Instant]]:
    """Yield a schedule and the time, read again each time another writer was faster; raises `ScheduleNotFound`."""
    async for now in _attempts(store, [name]):
        yield existing_schedule(next(iter(await store.get_schedules([name])), None), name), now


async def write_changes(
    store: Store, changes: Sequence[ScheduleUpdate], *, whole: bool = False
) -> frozenset[str]:
    """Write, and retry once if the answer is lost: what was written already is known by its audit entry."""
    try:
        return await store.write_schedules(changes, whole=whole)
    except StoreUnavailable:
        return await store.write_schedules(changes, whole=whole)


def answer_of(change: ScheduleUpdate | None) -> ChangeAnswer:
    """Return what was done to a schedule that was asked for."""
    if change is None:
        return "unchanged"
    return "created" if change.before is None else "changed"


def existing_schedule(schedule: StoredSchedule | None, name: str) -> StoredSchedule:
    """Return a schedule that exists, or raise `ScheduleNotFound`."""
    if schedule is None:
        raise schedule_not_found(name)
    return _readable(schedule)


def _readable(schedule: StoredSchedule) -> StoredSchedule:
    """Return a schedule that can be changed; raise `StoreError` for one whose row was edited by hand."""
    if (problem := row_problem(schedule)) is not None:
        raise StoreError(f"schedule {schedule.name} cannot be read: {problem}; delete it and put it again")
    return schedule


async def _attempts(store: Store, names: list[str]) -> AsyncIterator[Instant]:
    """Yield the time for each attempt to change some schedules, while there are any left."""
    check_not_moved(store)
    for attempt in range(_MAX_ATTEMPTS):
        if not names:
            return
        if attempt:
            await asyncio.sleep(_RETRY_PAUSE * random.uniform(0, attempt))
        yield await store.now()
    if names:
        raise StoreUnavailable(f"schedule {names[0]} is being changed by others all the time; try again")


async def declare_schedules(store: Store, schedules: Mapping[str, ScheduleDefinition]) -> None:
    """Store the schedules that the code declares; what is unchanged is not written."""
    who = f"code {socket.gethostname()}:{os.getpid()}"

    def decision(declared: ScheduleDefinition) -> ScheduleDecision:
        return lambda before, now: declare(before, declared.at(now), who=who, now=now)

    await change_schedules(store, {name: decision(declared) for name, declared in schedules.items()})
