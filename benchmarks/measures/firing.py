"""How fast schedules that are due become jobs."""

from __future__ import annotations

import time

from benchmarks import children
from benchmarks.ledger import WrongRun, now
from benchmarks.measures.base import Figure
from benchmarks.measures.schedules import store_rules
from benchmarks.places import Limits, Place
from benchmarks.sizes import Sizes
from benchmarks.subject import Subject
from duetime.model.triggers.every import Every
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer

_DAY = 86_400_000_000
_LEAD = 60_000_000


class Firing:
    """Jobs a second that one process makes of schedules that are due, without running them."""

    name = "firing"
    once = False
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold it to itself: what a schedule costs must not grow with the jobs that are stored."""
        del store
        return (Figure(key="rate", title="schedules fired", unit="jobs/s", better="more"),)

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Have none."""
        del limits, sizes
        return {}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Store schedules that come once a day, and fire each of them once."""
        rate: float = children.run(fire_all, url=place.url, count=sizes.fired)
        place.tidy()
        return {"rate": rate}


async def fire_all(url: str, count: int) -> float:
    """Return how many schedules a second are fired, of so many that are due."""
    async with Subject(url).scheduler as scheduler:
        firer = ScheduleFirer(scheduler.store, ServiceHealth())
        # The first round of a process looks at each schedule, which is not what is asked here.
        await firer.round()
        due = now()
        await store_rules(url, [Every(interval=_DAY, start=due)] * count, before=due + _LEAD)
        began = time.perf_counter()
        while await firer.round() == 0:
            pass
        took = time.perf_counter() - began
        made = sum(schedule.made for schedule in await scheduler.store.schedules())
        if made != count:
            raise WrongRun(f"{made} jobs were made of {count} schedules")
    return count / took
