"""How late the jobs of many schedules start, what firing them costs, and whether each occurrence makes one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from benchmarks import children
from benchmarks.ledger import Entry, WrongRun, checked, now, spread
from benchmarks.limits import loop
from benchmarks.measures import Figure, Measure
from benchmarks.places import Limits, Place
from benchmarks.processes import processor_seconds
from benchmarks.sizes import BATCH, Sizes
from benchmarks.subject import TICK, Subject
from benchmarks.working import working
from duetime.model.schedule.record import Misfire, Overlap, ScheduleUpdate, StoredSchedule
from duetime.model.time import to_datetime
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import Cron
from duetime.model.triggers.every import Every
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer

_LEAD = 4_000_000
"""Microseconds from storing the schedules to the first time one comes."""
_SECOND = 1_000_000
_HALF = _SECOND // 2


class Schedules(Measure):
    """Lateness and processor of a worker with many schedules, in phase and spread; cron jobs beside one-off ones."""

    name = "schedules"
    pairs = 1

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold the tails to fixed bounds, and cron jobs to one-off ones; show the bare timer beside."""
        return (
            *_late("phase", "schedules in phase", goal=100.0),
            *_late("spread", "schedules spread", goal=250.0),
            *(
                Figure(
                    key=f"cron_{share}",
                    title=f"cron jobs / one-off jobs, {share}",
                    unit="x",
                    better="less",
                    goal=1.2,
                    flat=False,
                )
                for share in ("p50", "p99")
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        phase = children.run(loop.late, timers=sizes.in_phase, span=0.0)
        over = children.run(loop.late, timers=sizes.spread, span=sizes.period)
        return {**_prefixed("phase", phase), **_prefixed("spread", over)}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Store the schedules from this process, fire and run them in another."""
        step = int(sizes.period * _SECOND) // sizes.spread
        return {
            **_prefixed("phase", _many(place, sizes, count=sizes.in_phase, step=0)),
            **_prefixed("spread", _many(place, sizes, count=sizes.spread, step=step)),
            **_prefixed("cron", _cron_beside_one_offs(place, sizes)),
        }


def _late(key: str, title: str, *, goal: float) -> tuple[Figure, ...]:
    # One pair is too little to hold one database to the other.
    return (
        Figure(
            key=f"{key}_p50",
            title=f"{title}, p50",
            unit="ms",
            better="less",
            limit="bare timer, p50",
            flat=False,
        ),
        Figure(
            key=f"{key}_p99",
            title=f"{title}, p99",
            unit="ms",
            better="less",
            limit="bare timer, p99",
            goal=goal,
            held="value",
            flat=False,
        ),
        Figure(key=f"{key}_cpu", title=f"{title}, processor", unit="%", better="less", flat=False),
    )


def _prefixed(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}_{key}": value for key, value in values.items()}


def _many(place: Place, sizes: Sizes, *, count: int, step: int) -> dict[str, float]:
    """Let schedules come once to warm up, then as often as they are watched."""
    period, expected = int(sizes.period * _SECOND), count * (sizes.periods + 1)
    watched = sizes.periods * period
    with working(place) as worker:
        first = now() + _LEAD
        starts = [first + n * step for n in range(count)]
        rules = [Every(interval=period, start=start, end=start + watched) for start in starts]
        asyncio.run(store_rules(place.url, rules, before=first))
        # Between two occurrences of those in phase.
        began, used = _at(first + period // 2, worker.pid)
        ended, after = _at(began + watched, worker.pid)
        found = worker.noted(expected=expected)
    place.tidy()
    entries = checked((_numbered(entry, starts, period) for entry in found), expected=expected)
    return {
        **spread([entry.late / 1000 for entry in entries if entry.due_at >= first + period]),
        "cpu": (after - used) / ((ended - began) / _SECOND) * 100,
    }


def _at(moment: int, pid: int) -> tuple[int, float]:
    """Wait for a moment, and tell how much processor a process has used until then."""
    time.sleep(max(0, moment - now()) / _SECOND)
    return moment, processor_seconds(pid)


def _numbered(entry: Entry, starts: Sequence[int], period: int) -> Entry:
    """Number all occurrences of all schedules, so that each must be there once."""
    times, rest = divmod(entry.due_at - starts[entry.number], period)
    if rest:
        raise WrongRun(f"schedule {entry.number} ran for {entry.due_at}, which is none of its times")
    return entry._replace(number=times * len(starts) + entry.number)


async def store_rules(
    url: str, rules: Sequence[Trigger], *, before: int, overlap: Overlap = "skip", misfire: Misfire = "latest"
) -> None:
    """Store a schedule for each rule, whose jobs note its place in the list; all before the first one comes."""
    async with Subject(url).scheduler as scheduler:
        stored = (
            replace(_schedule(n, rule), overlap=overlap, misfire=misfire) for n, rule in enumerate(rules)
        )
        changes = [ScheduleUpdate(before=None, after=schedule) for schedule in stored]
        for start in range(0, len(changes), BATCH):
            await scheduler.store.write_schedules(changes[start : start + BATCH])
        assert now() < before, "storing took longer than the lead"


def _schedule(number: int, rule: Trigger) -> StoredSchedule:
    return StoredSchedule(
        name=f"benchmark-{number:05}",
        task=TICK,
        payload=msgspec.json.encode({"number": number}).decode(),
        trigger=msgspec.json.encode(rule.to_spec()).decode(),
        declared="",
        owner="user",
        fired_through=0,
        next_at=rule.after(0),
    )


def _cron_beside_one_offs(place: Place, sizes: Sizes) -> dict[str, float]:
    """Run cron jobs on whole seconds and one-off jobs half a second later, and return how much later the former are."""
    each, seconds = sizes.each_second, sizes.seconds
    with working(place) as worker:
        first = (now() + _LEAD) // _SECOND * _SECOND + _SECOND
        end = first + (seconds - 1) * _SECOND
        rule = Cron("* * * * * *").between(to_datetime(first), to_datetime(end))
        asyncio.run(store_rules(place.url, [rule] * each, before=first))
        asyncio.run(
            _one_offs(place.url, each * seconds, due_at=lambda n: first + n // each * _SECOND + _HALF)
        )
        found = worker.noted(expected=2 * each * seconds)
    place.tidy()
    cron = [entry for entry in found if entry.due_at % _SECOND == 0]
    numbered = (_numbered(entry, [first] * each, _SECOND) for entry in cron)
    on_time = spread([entry.late for entry in checked(numbered, expected=each * seconds)])
    one_offs = [entry for entry in found if entry.due_at % _SECOND]
    beside = spread([entry.late for entry in checked(one_offs, expected=each * seconds)])
    return {share: late / beside[share] for share, late in on_time.items()}


async def _one_offs(url: str, count: int, *, due_at: Callable[[int], int]) -> None:
    """Store jobs of the very task that the schedules run: jobs that start together wait for each other's handlers."""
    subject = Subject(url)
    async with subject.scheduler as scheduler:
        calls = [subject.tick.options(at=to_datetime(due_at(n))).call(n) for n in range(count)]
        for start in range(0, count, BATCH):
            await scheduler.enqueue_many(calls[start : start + BATCH])


_DAY = 86_400_000_000
_FIRING_LEAD = 60_000_000


class Firing(Measure):
    """Jobs a second that one process makes of schedules that are due, without running them."""

    name = "firing"

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold it to itself: what a schedule costs must not grow with the jobs that are stored."""
        return (Figure(key="rate", title="schedules fired", unit="jobs/s", better="more"),)

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
        await store_rules(url, [Every(interval=_DAY, start=due)] * count, before=due + _FIRING_LEAD)
        began = time.perf_counter()
        while await firer.round() == 0:
            pass
        took = time.perf_counter() - began
        made = sum(schedule.made for schedule in await scheduler.store.schedules())
        if made != count:
            raise WrongRun(f"{made} jobs were made of {count} schedules")
    return count / took
