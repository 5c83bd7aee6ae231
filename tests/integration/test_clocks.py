"""Hosts whose clocks are off, and clocks that are set while workers run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import TypeAlias

import asyncpg
import pytest

from duetime import Scheduler, cron
from duetime.model.job import JobTerms, Key
from duetime.model.outcome import Failed
from duetime.model.retry import fixed
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant
from duetime.stores.base import Hint, Store
from duetime.testing.conformance.kit import (
    declare,
    finish,
    firing,
    hire,
    job,
    occurrence_job,
    put,
    read_schedule,
    schedule,
    take_one,
)
from duetime.testing.conformance.wakeups import listening
from tests.integration.kit import Fleet, until
from tests.support.mariadb import connected, fetch

OFF = 90
"""Seconds by which a clock is off: more than the minute within which workers are told of a job."""
STEP = 600
"""Seconds by which a clock is set."""
LATE = SECOND
"""A fraction of the time after which a worker looks for what it was not told of."""

Act: TypeAlias = Callable[[Store, Instant], Awaitable[object]]


@pytest.fixture
def set_wall_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of this process so many seconds off; servers keep theirs."""
    true = time.time_ns
    return lambda off: monkeypatch.setattr(time, "time_ns", lambda: true() + int(off * 1e9))


async def one(store: Store, due_at: Instant) -> None:
    await put(store, due_at=due_at)


async def several_at_one_time(store: Store, due_at: Instant) -> None:
    await store.enqueue([job(due_at=due_at), job(due_at=due_at)])


async def several(store: Store, due_at: Instant) -> None:
    await store.enqueue([job(due_at=due_at + SECOND), job(due_at=due_at)])


async def several_kinds(store: Store, due_at: Instant) -> None:
    await store.enqueue([job(due_at=due_at, priority=3), job(due_at=due_at)])


async def a_rich_one(store: Store, due_at: Instant) -> None:
    await put(store, due_at=due_at, terms=JobTerms(expires=SECOND))


async def one_with_a_key(store: Store, due_at: Instant) -> None:
    await put(store, due_at=due_at, key=Key(value="k"))


async def one_in_the_place_of_another(store: Store, due_at: Instant) -> None:
    await put(store, due_at=due_at + STEP * SECOND, key=Key(value="k"))
    await put(store, due_at=due_at, key=Key(value="k", if_exists="replace"))


async def an_occurrence(store: Store, due_at: Instant) -> None:
    await store.enqueue([occurrence_job("s", due_at)])


async def a_retry(store: Store, due_at: Instant) -> None:
    await hire(store, "w1")
    await put(store, due_at=0)
    claim, now = await take_one(store), await store.now()
    wait = (due_at - now) // SECOND
    await finish(store, claim, Failed(error="boom"), now=now, policy=fixed(1, wait))


ENQUEUING: list[Act] = [
    one,
    several_at_one_time,
    several,
    several_kinds,
    a_rich_one,
    one_with_a_key,
    one_in_the_place_of_another,
    an_occurrence,
]


@pytest.mark.covers("host-clock-off")
@pytest.mark.parametrize("act", [*ENQUEUING, a_retry])
async def test_workers_hear_of_a_job_that_is_due_soon_by_the_stores_clock(
    set_wall_clock: Callable[[float], None], hearing_url: str, act: Act
) -> None:
    set_wall_clock(-OFF)
    async with (
        Scheduler(hearing_url) as scheduler,
        Scheduler(hearing_url) as other,
        listening(scheduler.store) as heard,
        listening(other.store) as heard_elsewhere,
    ):
        await act(scheduler.store, await scheduler.store.now() + 5 * SECOND)
        await heard(Hint("jobs"))
        await heard_elsewhere(Hint("jobs"))


@pytest.mark.parametrize("act", ENQUEUING)
async def test_workers_do_not_hear_of_a_job_that_is_due_later_by_the_stores_clock(
    set_wall_clock: Callable[[float], None], hearing_url: str, act: Act
) -> None:
    set_wall_clock(OFF)
    async with Scheduler(hearing_url) as scheduler, listening(scheduler.store) as heard:
        await act(scheduler.store, await scheduler.store.now() + 120 * SECOND)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await heard(Hint("jobs"))


@pytest.mark.covers("host-clock-off")
async def test_a_fired_schedule_is_heard_of_whatever_the_hosts_clock_says(
    set_wall_clock: Callable[[float], None], hearing_url: str
) -> None:
    set_wall_clock(-OFF)
    async with Scheduler(hearing_url) as scheduler:
        store, now = scheduler.store, await scheduler.store.now()
        await declare(store, schedule("s", next_at=now, fired_through=now - 1))
        plan = firing(await read_schedule(store, "s"), next_at=None)
        async with listening(store) as heard:
            await store.fire([plan])
            await heard(Hint("jobs"))


@pytest.mark.covers("host-clock-off")
@pytest.mark.parametrize(("off", "in_seconds"), [(-OFF, 5), (OFF, 120)])
async def test_the_commit_of_a_callers_transaction_tells_of_jobs_by_the_stores_clock(
    set_wall_clock: Callable[[float], None], postgres_url: str, off: int, in_seconds: int
) -> None:
    set_wall_clock(off)
    async with Scheduler(postgres_url) as scheduler, listening(scheduler.store) as heard:
        connection = await asyncpg.connect(postgres_url)
        async with connection.transaction():
            due_at = await scheduler.store.now() + in_seconds * SECOND
            await scheduler.store.enqueue([job(due_at=due_at)], tx=connection)
        await connection.close()
        if off < 0:
            await heard(Hint("jobs"))
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await heard(Hint("jobs"))


async def test_a_callers_last_id_on_mariadb_is_left_alone(mariadb_url: str) -> None:
    async with Scheduler(mariadb_url) as scheduler, connected(mariadb_url) as connection:
        await connection.begin()
        await fetch(connection, "SELECT last_insert_id(7)")
        await scheduler.store.enqueue([job(due_at=5)], tx=connection)
        assert await fetch(connection, "SELECT last_insert_id()") == [(7,)]


async def ticks(store: Store, *, since: Instant, count: int) -> list[StoredJob]:
    """Wait for so many occurrences of a schedule to end."""

    async def ended() -> list[StoredJob]:
        found = await store.occurrences("tick", since=since, until=since + STEP * SECOND, limit=count)
        return found if len(found) == count and all(tick.state.terminal for tick in found) else []

    return await until(ended, what=f"{count} ticks")


def check_on_time(found: list[StoredJob]) -> None:
    late = [tick.started_at - tick.due_at for tick in found if tick.started_at is not None]
    assert {tick.state for tick in found} == {State.SUCCEEDED}, found
    assert min(late) >= 0
    assert median(late) < LATE, late


@pytest.mark.covers("host-clock-off")
async def test_schedules_are_on_time_where_the_hosts_clock_is_off(fleet: Fleet) -> None:
    app = fleet.app()
    async with app.scheduler:
        await fleet.start(ticking=True, clock_offset=-OFF)
        first = await until(lambda: app.scheduler.store.upcoming(1), what="a tick")
        check_on_time(await ticks(app.scheduler.store, since=first[0].due_at, count=3))


@pytest.mark.covers("host-clock-off")
async def test_schedules_are_on_time_after_the_stores_clock_was_set_ahead(
    set_wall_clock: Callable[[float], None], hearing_url: str
) -> None:
    scheduler = Scheduler(hearing_url)

    @scheduler.schedule(cron("* * * * * *"), name="tick", misfire="skip")
    @scheduler.task(name="tick")
    async def tick() -> None:
        pass

    async with scheduler, scheduler.worker():
        store = scheduler.store
        check_on_time(await ticks(store, since=await store.now(), count=1))
        # The clock of a server stays ahead of this host's; that of SQLite is this host's.
        set_wall_clock(STEP if hearing_url.startswith("sqlite") else -STEP)
        check_on_time(await ticks(store, since=await store.now() + 2 * SECOND, count=2))
