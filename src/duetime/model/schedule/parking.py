"""Which schedules are parked, because no code declares them any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from duetime.model.audit import ITSELF, AuditEntry
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.time import SECOND, Instant, Micros

if TYPE_CHECKING:
    from duetime.model.stored import StoredWorker


PARKED_REASON: Final = "no code declares it any more"
UNDECLARED_GRACE: Final[Micros] = 600 * SECOND
"""How long nobody has to have declared it: longer than a program is down that is deployed or restarted."""


class CodeSchedule(NamedTuple):
    """A schedule that code has declared."""

    name: str
    task: str
    parked: bool


def undeclared(
    schedules: Iterable[CodeSchedule], *, declared: Collection[str], tasks: Collection[str]
) -> frozenset[str]:
    """Return the schedules that nobody declares, among those whose task is known here.

    Where the task is not known either, other code may be about to start, and the schedule keeps its place.
    """
    return frozenset(
        one.name for one in schedules if not one.parked and one.name not in declared and one.task in tasks
    )


def undeclared_by_workers(
    names: frozenset[str], workers: Iterable[StoredWorker], *, now: Instant
) -> frozenset[str]:
    """Return those schedules that no worker has declared for long; none while a worker does not say what it declares."""
    recent = [
        worker.declares
        for worker in workers
        if worker.state == "alive" or worker.lease_until > now - UNDECLARED_GRACE
    ]
    said = [declares for declares in recent if declares is not None]
    return frozenset() if len(said) < len(recent) else names.difference(*said)


def park(before: StoredSchedule, *, now: Instant) -> ScheduleUpdate | None:
    """Return what to write so that a schedule waits for code that declares it; `None` when it does, or is nobody's."""
    if before.owner != "code" or before.parked_at is not None:
        return None
    return ScheduleUpdate(
        before=before,
        after=replace(before, parked_at=now, next_at=None),
        entry=AuditEntry(verb="park", target=before.name, who=ITSELF, detail={"reason": PARKED_REASON}),
        withdraw="schedule parked",
    )
