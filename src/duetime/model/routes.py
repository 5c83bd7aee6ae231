"""Where a new job lives in a store that is made of several: a table by how soon it is due, and what always goes far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from duetime.model.job import NewJob
from duetime.model.states import State
from duetime.model.time import HOUR, MINUTE, SECOND, Instant, Micros


class Tier(IntEnum):
    """The stores of a hybrid, in the order of what they promise."""

    MEMORY = 0
    """Of one process, and gone with it."""
    NEAR = 1
    FAR = 2


@dataclass(frozen=True, slots=True)
class Route:
    """Jobs that are due within a time live in a tier."""

    tier: Tier
    up_to: Micros
    if_persistent: bool = False
    """Whether that is so only where jobs survive a restart of the tier's server."""


Routes: TypeAlias = Sequence[Route]
"""The longest delay comes last; jobs that are due later go far."""

DEFAULT_ROUTES: Final[Routes] = (
    Route(Tier.MEMORY, 5 * SECOND),
    Route(Tier.NEAR, 5 * MINUTE),
    Route(Tier.NEAR, HOUR, if_persistent=True),
)


def usable_routes(routes: Routes, *, tiers: Collection[Tier], persistent: bool) -> Routes:
    """Return the routes of a hybrid that has these tiers; `persistent`: whether near survives a restart."""
    return [one for one in routes if one.tier in tiers and (persistent or not one.if_persistent)]


def longest_delay(routes: Routes, tier: Tier) -> Micros:
    """Return within which time the jobs of a tier are due when they are stored."""
    return max((one.up_to for one in routes if one.tier is tier), default=0)


def tier_of(jobs: Sequence[NewJob], routes: Routes, *, now: Instant, far_queues: Collection[str]) -> Tier:
    """Return where jobs go that are stored together: as one, to where the one goes that goes farthest."""
    return max((_tier_of(job, routes, now, far_queues) for job in jobs), default=Tier.FAR)


def needs_far(job: NewJob) -> bool:
    """Whether a job needs what one store alone can see to: a free key, a limit, or a parent that it is stored with.

    A job that must not run twice is never given to a store that may forget that it has begun.
    """
    return (
        job.key is not None
        or job.on_crash == "fail"
        or job.schedule is not None
        or job.state is not State.PENDING
        or job.terms.gate is not None
        or job.terms.callbacks is not None
    )


def _tier_of(job: NewJob, routes: Routes, now: Instant, far_queues: Collection[str]) -> Tier:
    if needs_far(job) or job.queue in far_queues:
        return Tier.FAR
    wait = job.delay if job.due_at is None else job.due_at - now
    return next((one.tier for one in routes if wait <= one.up_to), Tier.FAR)
