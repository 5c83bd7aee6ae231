"""Schedules in tables of an earlier version go on as if nothing had happened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

import asyncpg
import pytest

from duetime import Scheduler, at, cron, every
from duetime.model.schedule.firing import fire
from duetime.model.schedule.record import ScheduleUpdate
from duetime.model.time import SECOND, Instant, to_datetime
from duetime.model.triggers.specs import trigger_from_spec
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import Declarations, ScheduleFirer, ScheduleParker
from duetime.stores.base import JobFilter
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.schema import migrations
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import occurrence_job
from tests.unit.runtime.kit import NoHealth

pytestmark = pytest.mark.no_tables

HOUR = 3_600 * SECOND
OLD = {
    # As version 2 wrote them: the trigger with its anchor, and the trigger as it was declared.
    "nightly": (
        '{"expression":"H 3 * * MON-FRI","seed":"nightly","type":"cron","tz":"Europe/Riga"}',
        '{"expression":"H 3 * * MON-FRI","seed":"nightly","type":"cron","tz":"Europe/Riga"}',
    ),
    "often": (
        '{"interval":600000000,"start":1704000000123456,"type":"every"}',
        '{"interval":600000000,"type":"every"}',
    ),
    "once": (
        '{"instants":[4102444800000000],"type":"at"}',
        '{"instants":[4102444800000000],"type":"at"}',
    ),
    "office": (
        '{"expression":"*/5 9-17 * * *","type":"cron","tz":"UTC"}',
        '{"expression":"*/5 9-17 * * *","type":"cron","tz":"UTC"}',
    ),
}
PAUSED = "office"
OLD_WORKER = """
INSERT INTO duetime_workers (id, state, host, pid, version, queues, slots, started_at, beat_at, lease_until)
VALUES ('old', 'alive', 'h', 1, '0.2', '[]', 1, 0, 0, 4102444800000000);
"""
COLUMNS = (
    "name, task, payload, trigger_spec, declared, queue, priority, on_crash, overlap, misfire_window, owner,"
    " paused_at, paused_reason, fired_through, next_at, rev, created_at, updated_at, options"
)


def next_of(name: str, moment: Instant) -> Instant:
    occurrence = trigger_from_spec(json.loads(OLD[name][0])).after(moment)
    assert occurrence is not None
    return occurrence


Rows: TypeAlias = list[tuple[object, ...]]


def rows(now: Instant) -> Rows:
    """The schedules as they were stored three hours ago, and have fired since."""
    return [
        (
            *(name, name, "{}", trigger, declared, "default", 5, "retry", "skip", HOUR, "code"),
            *((now, "repairs") if name == PAUSED else (None, None)),
            *(now - 3 * HOUR, next_of(name, now - 3 * HOUR), 7, now - 3 * HOUR, now - 3 * HOUR, None),
        )
        for name, (trigger, declared) in OLD.items()
    ]


def counted(name: str, now: Instant, *, start: Instant, times: int) -> tuple[object, ...]:
    """A schedule with a number of times, of which each hour counted from its start, until an hour ago."""
    trigger = f'{{"interval":{HOUR},"start":{start},"times":{times},"type":"every"}}'
    gone = max(0, (now - HOUR - start) // HOUR + 1)
    return (
        *(name, name, "{}", trigger, trigger, "default", 5, "retry", "skip", HOUR, "code", None, None),
        *(now - HOUR, None if gone >= times else start + gone * HOUR, 7, now, now, None),
    )


async def make_old_tables(url: str, stored: Rows) -> None:
    """Make the tables of version 2, with schedules in them."""
    steps = [step.text for step in migrations(POSTGRES if "postgres" in url else SQLITE, "duetime")[:2]]
    steps.append(OLD_WORKER)
    count = len(COLUMNS.split(","))
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.executescript("".join(steps))
            marks = ", ".join("?" * count)
            file.executemany(f"INSERT INTO duetime_schedules ({COLUMNS}) VALUES ({marks})", stored)
        return
    connection = await asyncpg.connect(url)
    await connection.execute("".join(steps))
    marks = ", ".join(f"${n + 1}" for n in range(count))
    await connection.executemany(f"INSERT INTO duetime_schedules ({COLUMNS}) VALUES ({marks})", stored)
    await connection.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def code(url: str, clock: FakeClock) -> Scheduler:
    """The same schedules, declared by today's code."""
    scheduler = Scheduler(url, clock=clock)
    triggers = {
        "nightly": cron("H 3 * * MON-FRI", tz="Europe/Riga"),
        "often": every("10m"),
        "once": at(datetime(2100, 1, 1, tzinfo=UTC)),
        "office": cron("*/5 9-17 * * *"),
    }
    for name, trigger in triggers.items():

        async def run() -> None: ...

        scheduler.schedule(trigger, name=name)(scheduler.task(name=name)(run))
    return scheduler


@pytest.fixture
async def scheduler(grown_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    await make_old_tables(grown_url, rows(clock.now()))
    async with code(grown_url, clock) as scheduler:
        yield scheduler


async def test_they_stand_where_they_stood(scheduler: Scheduler, clock: FakeClock) -> None:
    for record in await scheduler.store.schedules():
        since = clock.now() - 3 * HOUR
        assert (record.fired_through, record.next_at) == (since, next_of(record.name, since))
        assert (record.misfire, record.pause_after, record.made, record.parked_at) == (
            "latest",
            None,
            0,
            None,
        )
        assert record.paused_reason == ("repairs" if record.name == PAUSED else None)


async def test_registration_writes_the_declaration_and_nothing_else(scheduler: Scheduler) -> None:
    store = scheduler.store
    before = {record.name: record for record in await store.schedules()}
    await scheduler.put_declared()
    for record in await store.schedules():
        old = before[record.name]
        assert json.loads(record.declared)["trigger"] == OLD[record.name][1]
        assert record == replace(old, declared=record.declared, rev=old.rev + 1, updated_at=record.updated_at)
        assert await store.entries(record.name, limit=9) == []
    again = await store.schedules()
    await scheduler.put_declared()
    assert await store.schedules() == again


async def test_nothing_is_parked_while_a_worker_of_the_old_version_may_declare_it(
    scheduler: Scheduler,
) -> None:
    [old] = await scheduler.store.workers()
    assert old.declares is None
    parker = ScheduleParker(scheduler.store, NoHealth(), declared=Declarations(), tasks=scheduler.tasks)
    for _ in range(2):
        await parker.round()
    assert {record.parked_at for record in await scheduler.store.schedules()} == {None}


async def test_nothing_is_fired_twice(scheduler: Scheduler, clock: FakeClock) -> None:
    store, now = scheduler.store, clock.now()
    # Fired before the upgrade, and still waiting.
    await store.enqueue([fired := occurrence_job("often", next_of("often", now - 3 * HOUR))])
    await scheduler.put_declared()
    for _ in range(3):
        due = await store.due_schedules(ahead=0, limit=99)
        plans = [fire(s, trigger_from_spec(json.loads(s.trigger)), now=now, ahead=0) for s in due.schedules]
        await store.fire([plan for plan in plans if plan is not None])
    made = await store.find(JobFilter(schedule="often", limit=500))
    occurrences = [record.occurrence for record in made]
    assert len(occurrences) == len(set(occurrences)) > 1
    assert fired.id in {record.id for record in made}

    assert await store.find(JobFilter(schedule=PAUSED)) == []


async def test_a_change_that_comes_with_the_new_code_is_applied(grown_url: str, clock: FakeClock) -> None:
    await make_old_tables(grown_url, rows(clock.now()))
    scheduler = Scheduler(grown_url, clock=clock)

    @scheduler.schedule(every("20m"), name="often")
    @scheduler.task(name="often", queue="mail")
    async def often() -> None: ...

    async with scheduler:
        await scheduler.put_declared()
        record = next(s for s in await scheduler.store.schedules() if s.name == "often")
        (entry,) = await scheduler.store.entries("often", limit=9)
    assert (record.queue, json.loads(record.trigger)["interval"]) == ("mail", 1_200 * SECOND)
    assert entry.detail["queue"] == ["default", "mail"]
    assert to_datetime(record.next_at or 0) > to_datetime(clock.now())


async def test_those_with_a_number_of_times_come_to_the_same_end(grown_url: str, clock: FakeClock) -> None:
    now = clock.now()
    await make_old_tables(
        grown_url,
        [
            counted("over", now, start=now - 3 * HOUR, times=3),
            counted("half", now, start=now - 3 * HOUR, times=4),
            counted("later", now, start=now + 3 * HOUR, times=2),
        ],
    )
    async with Scheduler(grown_url, clock=clock) as scheduler:
        store = scheduler.store
        assert {s.name: s.made for s in await store.schedules()} == {"over": 3, "half": 3, "later": 0}
        firer = ScheduleFirer(store, ServiceHealth())
        for _ in range(9):
            await firer.round()
            clock.advance("1h")
        fired = [job.schedule for job in await store.find(JobFilter(limit=99)) if job.state != "skipped"]
        assert sorted(map(str, fired)) == ["half", "later"], (
            "the second of them finds the first still waiting"
        )
        assert {s.name: s.next_at for s in await store.schedules()}["over"] is None


async def test_one_that_is_over_stays_over_whatever_was_counted(grown_url: str, clock: FakeClock) -> None:
    now = clock.now()
    await make_old_tables(grown_url, [counted("over", now, start=now - 3 * HOUR, times=3)])
    async with Scheduler(grown_url, clock=clock) as scheduler:
        (over,) = await scheduler.store.schedules()
        # As a worker of the version before leaves it, which counts nothing.
        uncounted = ScheduleUpdate(before=over, after=replace(over, made=0))
        assert await scheduler.store.write_schedules([uncounted]) == {"over"}
        await ScheduleFirer(scheduler.store, ServiceHealth()).round()
        assert (await scheduler.store.schedules())[0].next_at is None
