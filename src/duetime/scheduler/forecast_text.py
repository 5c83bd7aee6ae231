"""The load to come, in words and with a heat map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from duetime.model import durations
from duetime.model.forecast import JITTER, Peaks
from duetime.model.names import some
from duetime.scheduler.heat_map import heat_map

if TYPE_CHECKING:
    from duetime.scheduler.forecast_records import Forecast

_NAMED = 5
"""How many schedules are named for each reason."""


def advice(peaks: Peaks) -> str:
    """Say what `H` or a jitter would do to the busiest minute, where it can be less busy."""
    if not peaks.now:
        return "Nothing falls due."
    parts = [f"The busiest minute has {_jobs(peaks.now)}."]
    if peaks.now == 1:
        return parts[0]
    if peaks.hashable:
        parts.append(
            f"With H in place of fixed minutes ({_schedules(peaks.hashable)}) it would have {peaks.hashed:,}."
        )
    if peaks.jitterable:
        parts.append(
            f"With a jitter of {durations.describe(JITTER)} ({_schedules(peaks.jitterable)}) "
            f"it would have about {peaks.jittered:,}."
        )
    return " ".join(parts)


def report(found: Forecast) -> Iterator[str]:
    """Yield a forecast in lines for people."""
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
            names = some(minute.names, minute.schedules)
            yield f"  {minute.at:%a %Y-%m-%d %H:%M}  {_jobs(minute.jobs)}{names and f': {names}'}"
    if found.collisions:
        yield ""
        yield "In the same second"
        for one in found.collisions:
            times = "once" if one.times == 1 else f"{one.times:,} times"
            yield f"  {times}, first {one.first:%a %Y-%m-%d %H:%M:%S}: {some(one.names, one.schedules)}"
    yield ""
    yield found.advice
    if found.counted_only:
        names = some(found.counted_only[:_NAMED], len(found.counted_only))
        yield f"Too often to be looked at one by one, and spread evenly over each hour: {names}."
    for why in sorted(set(found.left_out.values())):
        out = sorted(name for name, reason in found.left_out.items() if reason == why)
        yield f"Left out, {why}: {some(out[:_NAMED], len(out))}."


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _schedules(count: int) -> str:
    return "1 schedule" if count == 1 else f"{count:,} schedules"
