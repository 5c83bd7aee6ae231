"""Figures over time, as clients see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.errors import InvalidOption
from duetime.model.statistics import (
    TOTAL,
    Histogram,
    Kind,
    Sums,
    percentile,
    size,
    sums_by_start,
)
from duetime.model.stored.audit import DEPLOYMENT, StoredAuditEntry, Subject
from duetime.model.text import check_name
from duetime.model.time import (
    SECOND,
    Duration,
    Instant,
    Micros,
    from_datetime,
    parse_duration,
    to_datetime,
)
from duetime.model.time_line import TimeLine, time_line
from duetime.scheduler.audit import AuditRecord
from duetime.scheduler.failures import FailureGroup, group_failures
from duetime.scheduler.jobs import Jobs
from duetime.stores.base import Store

_MARKS_READ: Final = 1_000
"""How many entries of the audit trail are looked at."""
_MARKED: Final = frozenset({"schedule", "queue"})
"""What is marked where the figures are of everything."""
_FAILURES_READ: Final = 10
"""How many pages of failures are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How some durations are spread, in seconds; a percentile is at most a sixteenth of itself off."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, histogram: Histogram) -> Spread | None:
        """Read what was counted; `None` if that is nothing."""
        if not (count := size(histogram)):
            return None
        shares = {
            f"p{share}": _seconds(percentile(histogram, share / 100) or 0) for share in (50, 90, 95, 99)
        }
        return cls(count=count, mean=_seconds(histogram.get(TOTAL, 0) // count), **shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What became of the runs that ended in a stretch of time."""

    at: datetime
    """Where it begins."""
    outcomes: Mapping[str, int]
    """By final state; `retried`, `snoozed`, `interrupted` and `lost` are tries that did not end their job."""
    wait: Spread | None
    """From the time a run was due to its start."""
    run: Spread | None
    """From its start to its end."""
    lateness: Spread | None
    """From the occurrence of its schedule to its start."""

    @classmethod
    def of(cls, at: Instant, sums: Sums) -> Figures:
        """Read sums."""
        wait, run, lateness = map(Spread.of, (sums.wait, sums.run, sums.lateness))
        return cls(
            at=to_datetime(at),
            outcomes=dict(sorted(sums.outcomes.items())),
            wait=wait,
            run=run,
            lateness=lateness,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Figures over time."""

    kind: str
    """`task`, `queue`, `schedule`, or `all`."""
    name: str | None
    since: datetime
    until: datetime
    step: float
    """In seconds."""
    total: Figures
    points: tuple[Figures, ...]
    """One for each step, also where nothing ended."""
    marks: tuple[AuditRecord, ...]
    """What was deployed, and what was paused or changed, oldest first."""


class Stats:
    """Tells how tasks, queues and schedules have fared."""

    def __init__(self, store: Callable[[], Store], jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs

    async def tasks(
        self,
        name: str | None = None,
        *,
        since: datetime | Duration = "24h",
        until: datetime | Duration | None = None,
        step: Duration | None = None,
    ) -> Statistics:
        """Return the figures of a task, or of everything; times are moments or how long ago, as in `since="-24h"`."""
        return await self._read(Kind.TASK, name, since, until, step)

    async def queues(
        self,
        name: str | None = None,
        *,
        since: datetime | Duration = "24h",
        until: datetime | Duration | None = None,
        step: Duration | None = None,
    ) -> Statistics:
        """Return the figures of a queue, or of everything."""
        return await self._read(Kind.QUEUE, name, since, until, step)

    async def schedules(
        self,
        name: str,
        *,
        since: datetime | Duration = "24h",
        until: datetime | Duration | None = None,
        step: Duration | None = None,
    ) -> Statistics:
        """Return the figures of a schedule, by hours or days."""
        return await self._read(Kind.SCHEDULE, name, since, until, step)

    async def new_failures(self, release: str) -> list[FailureGroup]:
        """Group the failures that are new since a release: none of their kind is on record from before it was deployed."""
        store = self._store()
        deployed = next(
            (
                one.at
                for one in await store.entries(DEPLOYMENT, limit=_MARKS_READ)
                if _release_of(one) == release
            ),
            None,
        )
        if deployed is None:
            raise InvalidOption(
                f"no worker of a release {release!r} has been seen; `duetime stats` shows those that were"
            )
        page = await self._jobs.list(state="failed", limit=1_000)
        failed = [*page]
        for _ in range(_FAILURES_READ - 1):
            if page.cursor is None:
                break
            page = await self._jobs.list(state="failed", limit=1_000, cursor=page.cursor)
            failed += page
        return [group for group in group_failures(failed) if group.first_at >= to_datetime(deployed)]

    async def _read(
        self,
        kind: Kind,
        name: str | None,
        since: datetime | Duration,
        until: datetime | Duration | None,
        step: Duration | None,
    ) -> Statistics:
        if name is None:
            kind, named = Kind.ALL, ""
        else:
            named = check_name(name, what=kind.value)
        store = self._store()
        now = await store.now()
        line = time_line(
            since=_moment(since, now, what="since"),
            until=None if until is None else _moment(until, now, what="until"),
            step=None if step is None else parse_duration(step, what="step"),
            now=now,
            kind=kind,
        )
        found = await store.statistics([line.ids(kind, named)])
        sums = sums_by_start(found, kind, line.grain, named, step=line.step)
        total, points = Sums(), {start: Sums() for start in line.starts}
        for start, added in sums.items():
            if start in points:
                points[start] = added
                total.plus(added)
        return Statistics(
            kind=kind.value,
            name=name,
            since=to_datetime(line.since),
            until=to_datetime(line.until),
            step=line.step / SECOND,
            total=Figures.of(line.since, total),
            points=tuple(Figures.of(at, each) for at, each in points.items()),
            marks=tuple(await _marks(store, line, kind, named)),
        )


async def _marks(store: Store, line: TimeLine, kind: Kind, name: str) -> list[AuditRecord]:
    """Return deployments, and what was done to the queue or schedule that is looked at, or to any."""
    found = await store.entries(DEPLOYMENT, limit=_MARKS_READ)
    if kind is Kind.ALL:
        changes = await store.entries(None, limit=_MARKS_READ)
        found += [one for one in changes if Subject.of(one.target).kind in _MARKED]
    elif kind is not Kind.TASK:
        found += await store.entries(Subject(kind.value, name).target(), limit=_MARKS_READ)
    within = [one for one in found if line.since <= one.at < line.until]
    return [AuditRecord.from_stored(one) for one in sorted(within, key=lambda one: one.at)]


def _release_of(entry: StoredAuditEntry) -> Any:
    return entry.detail.get("release")


def _moment(given: datetime | Duration, now: Instant, *, what: str) -> Instant:
    """Read a moment, or how long ago it was, with a minus or without."""
    if isinstance(given, datetime):
        return from_datetime(given, what=what)
    if isinstance(given, str):
        given = given.removeprefix("-")
    if isinstance(given, timedelta):
        given = abs(given)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = abs(given)
    return now - parse_duration(given, what=what)


def _seconds(micros: Micros) -> float:
    return micros / SECOND
