"""The load to come: figures for a client to read, in words and with a heat map."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from duetime.errors import InvalidOption
from duetime.model.forecast import (
    TRIED_JITTER,
    LoadPeaks,
    ScheduleLoad,
    busiest,
    by_hour,
    collisions,
    forecast_load,
    load_peaks,
)
from duetime.model.schedule.occurrences import jobs_left
from duetime.model.schedule.record import StoredSchedule
from duetime.model.text import list_with_total, shown
from duetime.model.time import DAY, Instant, describe_duration, to_datetime
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.model.triggers.zones import zone
from duetime.stores.base import Store

_NO_JOBS_SHADE = "."
_SHADES = ":-=+*#@"
_HOURS = range(24)
_LABELS = range(0, 24, 3)


def heat_map(hours: Iterable[tuple[datetime, int]]) -> Iterator[str]:
    """Yield the lines of the map, with the sum of each day, and the legend; hours that are not given stay blank."""
    days: dict[date, dict[int, int]] = {}
    for begins, jobs in hours:
        # Where clocks are set back, an hour of the wall clock comes twice.
        day = days.setdefault(begins.date(), {})
        day[begins.hour] = day.get(begins.hour, 0) + jobs
    most = max(jobs for day in days.values() for jobs in day.values())
    step = max(1, -(-most // len(_SHADES)))
    yield f"{'':16}{'    '.join(f'{hour:02}' for hour in _LABELS)}"
    for number, day in sorted(days.items()):
        shades = "".join(_shade(day.get(hour), step) * 2 for hour in _HOURS)
        yield f"{number:%a %Y-%m-%d}  {shades}  {sum(day.values()):,}"
    yield f"{'':16}{_legend(step, most)}"


def _shade(jobs: int | None, step: int) -> str:
    if jobs is None:
        return " "
    return _SHADES[(jobs - 1) // step] if jobs else _NO_JOBS_SHADE


def _legend(step: int, most: int) -> str:
    ranges = [f"{_NO_JOBS_SHADE} none"]
    for number, shade in enumerate(_SHADES):
        low, high = number * step + 1, (number + 1) * step
        if low <= most:
            ranges.append(f"{shade} {low:,}" if low == high else f"{shade} {low:,} to {high:,}")
    return "jobs an hour: " + ", ".join(ranges)


_NAMED_PER_REASON = 5
"""How many schedules are named for each reason."""


def advice(peaks: LoadPeaks) -> str:
    """Say what `H` or a jitter would do to the busiest minute, where it can be less busy."""
    if not peaks.now:
        return "Nothing falls due."
    parts = [f"The busiest minute has {_count_jobs(peaks.now)}."]
    if peaks.now == 1:
        return parts[0]
    if peaks.hashable:
        parts.append(
            f"With H in place of fixed minutes ({_count_schedules(peaks.hashable)}) it would have {peaks.hashed:,}."
        )
    if peaks.jitterable:
        parts.append(
            f"With a jitter of {describe_duration(TRIED_JITTER)} ({_count_schedules(peaks.jitterable)}) "
            f"it would have about {peaks.jittered:,}."
        )
    return " ".join(parts)


def report_lines(found: Forecast) -> Iterator[str]:
    """Yield a forecast in lines for people."""
    more = "at least " if found.at_least else ""
    yield (
        f"{more}{_count_jobs(found.jobs)} of {_count_schedules(found.schedules)} from {found.start:%a %Y-%m-%d %H:%M} "
        f"to {found.end:%a %Y-%m-%d %H:%M}, {found.tz}"
    )
    if found.jobs:
        yield ""
        yield from heat_map((hour.at, hour.jobs) for hour in found.hours)
        yield ""
        yield "Busiest minutes"
        for minute in found.busiest:
            names = list_with_total(minute.names, minute.schedules)
            yield f"  {minute.at:%a %Y-%m-%d %H:%M}  {_count_jobs(minute.jobs)}{names and f': {names}'}"
    if found.collisions:
        yield ""
        yield "In the same second"
        for one in found.collisions:
            times = "once" if one.times == 1 else f"{one.times:,} times"
            yield f"  {times}, first {one.first:%a %Y-%m-%d %H:%M:%S}: {list_with_total(one.names, one.schedules)}"
    yield ""
    yield found.advice
    if found.counted_only:
        names = list_with_total(found.counted_only[:_NAMED_PER_REASON], len(found.counted_only))
        yield f"Too often to be looked at one by one, and spread evenly over each hour: {names}."
    for why in sorted(set(found.left_out.values())):
        out = sorted(name for name, reason in found.left_out.items() if reason == why)
        yield f"Left out, {why}: {list_with_total(out[:_NAMED_PER_REASON], len(out))}."


def _count_jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _count_schedules(count: int) -> str:
    return "1 schedule" if count == 1 else f"{count:,} schedules"


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLoad:
    """An hour of the wall clock, and how many jobs fall due in it."""

    at: datetime
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteLoad:
    """One of the busiest minutes."""

    at: datetime
    jobs: int
    schedules: int
    """How many schedules make them, without those that come too often to be looked at one by one."""
    names: tuple[str, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """Schedules that start in the same second, again and again."""

    times: int
    schedules: int
    names: tuple[str, ...]
    """A few of them."""
    first: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The jobs that schedules will make, if nothing changes."""

    start: datetime
    end: datetime
    tz: str
    jobs: int
    at_least: bool
    """Whether there is more than could be counted."""
    schedules: int
    """How many were looked at."""
    hours: tuple[HourLoad, ...]
    busiest: tuple[MinuteLoad, ...]
    """The busiest minutes, the busiest first."""
    collisions: tuple[Collision, ...]
    """Which schedules start in the same second, those that do so most often first."""
    peak: int
    """The most jobs in a minute."""
    peak_with_hash: int | None
    """The same with `H` in place of fixed minutes; `None` when no schedule has any."""
    peak_with_jitter: int | None
    """About the same with a jitter of ten minutes; `None` when no schedule could do with one."""
    advice: str
    """What `H` or a jitter would do, in a sentence."""
    counted_only: tuple[str, ...]
    """Schedules that come too often to be looked at one by one: spread evenly over each hour."""
    left_out: dict[str, str]
    """Schedules that will make nothing, and why."""

    def __str__(self) -> str:
        return "\n".join(report_lines(self))


MAX_DAYS = 31

_MAX_LISTED = 10
"""How many minutes and collisions are told."""
_MAX_NAMED = 5
"""How many schedules are named for each."""


async def forecast_schedules(store: Store, *, days: int, tz: str) -> Forecast:
    """Read all schedules and look ahead; in a thread, for it can take seconds."""
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
        text = f"days must be a whole number from 1 to {MAX_DAYS}, not {shown(days)}"
        raise InvalidOption(text)
    zone(tz)
    schedules = await store.schedules()
    return await asyncio.to_thread(_build_forecast, schedules, start=await store.now(), days=days, tz=tz)


def _build_forecast(schedules: Sequence[StoredSchedule], *, start: Instant, days: int, tz: str) -> Forecast:
    length = days * DAY
    plans, left_out = _plans(schedules, until=start + length)
    found = forecast_load(plans, start=start, length=length)
    place = ZoneInfo(tz)

    def local(instant: Instant) -> datetime:
        return to_datetime(instant).astimezone(place)

    peaks = load_peaks(found)
    return Forecast(
        start=local(found.start),
        end=local(found.end),
        tz=tz,
        jobs=found.jobs,
        at_least=found.cut,
        schedules=len(plans),
        hours=tuple(HourLoad(at=local(at), jobs=round(jobs)) for at, jobs in by_hour(found, zone(tz))),
        busiest=tuple(
            MinuteLoad(at=local(busy.at), jobs=busy.jobs, schedules=busy.schedules, names=busy.names)
            for busy in busiest(found, limit=_MAX_LISTED, names=_MAX_NAMED)
        ),
        collisions=tuple(
            Collision(times=one.times, schedules=one.schedules, names=one.names, first=local(one.first))
            for one in collisions(found, limit=_MAX_LISTED, names=_MAX_NAMED)
        ),
        peak=peaks.now,
        peak_with_hash=peaks.hashed if peaks.hashable else None,
        peak_with_jitter=peaks.jittered if peaks.jitterable else None,
        advice=advice(peaks),
        counted_only=tuple(sorted(name for group in found.groups if group.pieces for name in group.names)),
        left_out=left_out,
    )


def _plans(
    schedules: Sequence[StoredSchedule], *, until: Instant
) -> tuple[list[ScheduleLoad], dict[str, str]]:
    """Return what will fire, and what will not, with the reason."""
    plans: list[ScheduleLoad] = []
    left_out: dict[str, str] = {}
    for schedule in schedules:
        resumes = schedule.paused_until
        if schedule.parked_at is not None:
            left_out[schedule.name] = "parked"
        elif schedule.paused_at is not None and (resumes is None or resumes > until):
            left_out[schedule.name] = "paused"
        else:
            trigger = schedule_trigger(schedule)
            if isinstance(trigger, UnreadableTrigger):
                left_out[schedule.name] = f"it has {trigger.what} that cannot be read"
                continue
            plans.append(
                ScheduleLoad(
                    name=schedule.name,
                    trigger=trigger,
                    same=schedule.trigger,
                    since=resumes or 0,
                    most=jobs_left(trigger, made=schedule.made),
                )
            )
    return plans, left_out
