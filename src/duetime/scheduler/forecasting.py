"""The load to come, as a client reads it: the schedules are gathered here, the figures are the model's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.errors import InvalidOption
from duetime.model import durations
from duetime.model import forecast as model
from duetime.model.instants import Instant, to_datetime
from duetime.model.remaining import left
from duetime.model.schedule import StoredSchedule
from duetime.model.shown import shown
from duetime.model.triggers.text import readable
from duetime.model.triggers.zones import zone
from duetime.scheduler.heat_map import heat_map
from duetime.stores.base import Store

MOST_DAYS = 31

_LISTED = 10
"""How many minutes and collisions are told."""
_NAMED = 5
"""How many schedules are named for each."""


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
        return "\n".join(_lines(self))


async def forecast(store: Store, *, days: int, tz: str) -> Forecast:
    """Read all schedules and look ahead; in a thread, for it can take seconds."""
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
        text = f"days must be a whole number from 1 to {MOST_DAYS}, not {shown(days)}"
        raise InvalidOption(text)
    zone(tz)
    schedules = await store.schedules()
    return await asyncio.to_thread(_forecast, schedules, start=await store.now(), days=days, tz=tz)


def _forecast(schedules: Sequence[StoredSchedule], *, start: Instant, days: int, tz: str) -> Forecast:
    length = days * durations.DAY
    plans, left_out = _plans(schedules, until=start + length)
    found = model.survey(plans, start=start, length=length)
    place = ZoneInfo(tz)

    def local(instant: Instant) -> datetime:
        return to_datetime(instant).astimezone(place)

    peaks = model.peaks(found)
    return Forecast(
        start=local(found.start),
        end=local(found.end),
        tz=tz,
        jobs=found.jobs,
        at_least=found.cut,
        schedules=len(plans),
        hours=tuple(HourLoad(at=local(at), jobs=round(jobs)) for at, jobs in model.by_hour(found, zone(tz))),
        busiest=tuple(
            MinuteLoad(at=local(busy.at), jobs=busy.jobs, schedules=busy.schedules, names=busy.names)
            for busy in model.busiest(found, limit=_LISTED, names=_NAMED)
        ),
        collisions=tuple(
            Collision(times=one.times, schedules=one.schedules, names=one.names, first=local(one.first))
            for one in model.collisions(found, limit=_LISTED, names=_NAMED)
        ),
        peak=peaks.now,
        peak_with_hash=peaks.hashed if peaks.hashable else None,
        peak_with_jitter=peaks.jittered if peaks.jitterable else None,
        advice=_advice(peaks),
        counted_only=tuple(sorted(name for group in found.groups if group.pieces for name in group.names)),
        left_out=left_out,
    )


def _plans(schedules: Sequence[StoredSchedule], *, until: Instant) -> tuple[list[model.Plan], dict[str, str]]:
    """Return what will fire, and what will not, with the reason."""
    plans: list[model.Plan] = []
    left_out: dict[str, str] = {}
    for schedule in schedules:
        resumes = schedule.paused_until
        if schedule.parked_at is not None:
            left_out[schedule.name] = "parked"
        elif schedule.paused_at is not None and (resumes is None or resumes > until):
            left_out[schedule.name] = "paused"
        else:
            trigger = readable(schedule.trigger)
            if trigger is None:
                left_out[schedule.name] = "its trigger cannot be read"
                continue
            plans.append(
                model.Plan(
                    name=schedule.name,
                    trigger=trigger,
                    same=schedule.trigger,
                    since=resumes or 0,
                    most=left(trigger, made=schedule.made),
                )
            )
    return plans, left_out


def _advice(peaks: model.Peaks) -> str:
    if not peaks.now:
        return "Nothing falls due."
    parts = [f"The busiest minute has {_jobs(peaks.now)}."]
    if peaks.hashable:
        parts.append(
            f"With H in place of fixed minutes ({_schedules(peaks.hashable)}) it would have {peaks.hashed:,}."
        )
    if peaks.jitterable:
        parts.append(
            f"With a jitter of {durations.describe(model.JITTER)} ({_schedules(peaks.jitterable)}) "
            f"it would have about {peaks.jittered:,}."
        )
    return " ".join(parts)


def _lines(found: Forecast) -> Iterator[str]:
    more = "at least " if found.at_least else ""
    yield (
        f"{more}{_jobs(found.jobs)} of {_schedules(found.schedules)} from {found.start:%a %Y-%m-%d %H:%M} "
        f"to {found.end:%a %Y-%m-%d %H:%M}, {found.tz}"
    )
    if found.jobs:
        yield ""
        yield from heat_map((hour.at, hour.jobs) for hour in found.hours)
        yield ""
        yield "Busiest minutes"
        for minute in found.busiest:
            names = _names(minute.names, minute.schedules)
            yield f"  {minute.at:%a %Y-%m-%d %H:%M}  {_jobs(minute.jobs)}{names and f': {names}'}"
    if found.collisions:
        yield ""
        yield "In the same second"
        for one in found.collisions:
            times = "once" if one.times == 1 else f"{one.times:,} times"
            yield f"  {times}, first {one.first:%a %Y-%m-%d %H:%M:%S}: {_names(one.names, one.schedules)}"
    yield ""
    yield found.advice
    if found.counted_only:
        names = _names(found.counted_only[:_NAMED], len(found.counted_only))
        yield f"Too often to be looked at one by one, and spread evenly over each hour: {names}."
    for why in sorted(set(found.left_out.values())):
        out = sorted(name for name, reason in found.left_out.items() if reason == why)
        yield f"Left out, {why}: {_names(out[:_NAMED], len(out))}."


def _names(names: Sequence[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _schedules(count: int) -> str:
    return "1 schedule" if count == 1 else f"{count:,} schedules"
