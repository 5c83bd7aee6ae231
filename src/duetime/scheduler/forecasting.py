"""The load to come, as a client reads it: the schedules are gathered here, the figures are the model's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from duetime.errors import InvalidOption
from duetime.model import durations
from duetime.model import forecast as model
from duetime.model.instants import Instant, to_datetime
from duetime.model.remaining import left
from duetime.model.schedule import StoredSchedule
from duetime.model.shown import shown
from duetime.model.triggers.text import trigger_of
from duetime.model.triggers.unreadable import Unreadable
from duetime.model.triggers.zones import zone
from duetime.scheduler.forecast_records import Collision, Forecast, HourLoad, MinuteLoad
from duetime.scheduler.forecast_text import advice
from duetime.stores.base import Store

MOST_DAYS = 31

_LISTED = 10
"""How many minutes and collisions are told."""
_NAMED = 5
"""How many schedules are named for each."""


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
        advice=advice(peaks),
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
            trigger = trigger_of(schedule)
            if isinstance(trigger, Unreadable):
                left_out[schedule.name] = f"it has {trigger.what} that cannot be read"
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
