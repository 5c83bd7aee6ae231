"""A transaction that stays open, as of a worker that was stopped in it, holds up nobody who works on other rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from duetime.model.ids import new_job_id
from duetime.model.job import Claim, JobEdit, JobTerms, Key
from duetime.model.limits import Gate
from duetime.model.outcome import Failed, Snoozed, Succeeded
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retention import Retention
from duetime.model.retry import fixed
from duetime.model.time import DAY, MINUTE, SECOND
from duetime.model.worker import CommandKind, NewCommand, WorkerStats
from duetime.runtime.options import WorkerOptions
from duetime.stores.base import Hint, PulseQuery, Store
from duetime.stores.open import open_store
from duetime.stores.sql.driver import Query, Row, Script, Statement
from duetime.stores.sql.store import SqlStore
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    LEASE,
    TASK,
    alter,
    declare,
    delete,
    finish,
    firing,
    hire,
    put,
    read,
    read_schedule,
    rescue,
    schedule,
    settlement,
    take_one,
)
from duetime.testing.conformance.limits import ask, gated
from duetime.testing.conformance.story import tell
from duetime.testing.conformance.wakeups import listening
from tests.support.mariadb import connected, fetch

PATIENCE = 20.0
TABLES = ("jobs", "attempts", "schedules", "workers", "queues", "gates", "logs", "commands", "audit")
OWN = "own"
"""The queue that this worker works on; what others have locked is in the others."""

Verb = Callable[[Store, FakeClock], Awaitable[object]]


async def claim(store: Store, **changes: Any) -> Claim:
    await put(store, queue=OWN, **changes)
    return await take_one(store, queues=(OWN,))


async def beat(store: Store, _clock: FakeClock) -> None:
    wants = PulseQuery(queues=(OWN,), tasks=(TASK,), schedules=True, orphans=True)
    assert (await store.pulse("w1", WorkerStats(), lease=LEASE, wants=wants)).alive


async def register_and_retire(store: Store, _clock: FakeClock) -> None:
    await hire(store, "w2", "w3")
    await store.bury(["w3"])
    await store.retire("w2")


async def enqueue(store: Store, clock: FakeClock) -> None:
    await put(store, queue=OWN)
    await put(store, queue=OWN, due_at=clock.now() + MINUTE, priority=1)
    for _ in range(2):
        await put(store, queue=OWN, key=Key(value="own"))


async def take_over(store: Store, _clock: FakeClock) -> None:
    assert await rescue(store, "w1") == []


async def settle(store: Store, clock: FakeClock) -> None:
    first = await claim(store)
    await store.mark_started([first.token], clock.now())
    assert await finish(store, first, Succeeded(result="1"), now=clock.now())
    failed = settlement(await claim(store), Failed(error="no"), now=clock.now(), policy=fixed(1, 1))
    snoozed = settlement(await claim(store), Snoozed(wait=MINUTE), now=clock.now())
    assert len(await store.settle([failed, snoozed])) == 2


async def report(store: Store, _clock: FakeClock) -> None:
    token = (await claim(store)).token
    await store.report([Progress(token, 0.5, "half")], [NewLogPart(token, 1, 1, "line")])


async def interfere(store: Store, _clock: FakeClock) -> None:
    running, waiting = await claim(store), await put(store, queue=OWN)
    await store.edit([waiting], JobEdit(postpone=MINUTE))
    await store.cancel([waiting], reason="no")
    await store.delete([waiting])
    await store.release([running.job_id], force=True)


async def command(store: Store, _clock: FakeClock) -> None:
    told = NewCommand(id=new_job_id(), worker="w1", kind=CommandKind.STACKS)
    await store.send([told])
    assert [taken.id for taken in await store.take_commands("w1")] == [told.id]
    await store.finish_command(told.id, "done")


async def operate(store: Store, clock: FakeClock) -> None:
    await put(store, queue=OWN)
    await store.pause_queue(OWN, reason="no")
    await store.resume_queue(OWN)
    await store.set_queue_limit(OWN, Gate(most=1))
    assert await store.purge(OWN, before=clock.now() + 1, reason="no", limit=10) == 1


async def pass_a_gate(store: Store, _clock: FakeClock) -> None:
    await store.enqueue([gated("own", queue=OWN)])
    assert len((await ask(store, queues=((OWN, 10),))).claims) == 1


async def fire(store: Store, clock: FakeClock) -> None:
    now = clock.now()
    await declare(store, schedule("own", next_at=now, fired_through=now - 1))
    assert await store.fire([firing(await read_schedule(store, "own"), next_at=now + MINUTE)]) == {"own"}
    assert await alter(store, "own", withdraw="no", paused_at=now)
    assert await delete(store, "own")


async def prune(store: Store, clock: FakeClock) -> None:
    before = await put(store, queue=OWN, due_at=clock.now() + MINUTE)
    gone = await claim(store)
    await store.report([], [NewLogPart(gone.token, 1, 1, "line")])
    assert await finish(store, gone, now=clock.now())
    clock.advance(1)
    emptied = await claim(store, terms=JobTerms(failure_ttl=0))
    assert await finish(store, emptied, Failed(error="no"), now=clock.now())
    assert (await store.prune(Retention(before=clock.now()), after=before)).jobs == 1
    assert (await read(store, emptied.job_id)).error is None


async def forget_those_gone(store: Store, clock: FakeClock) -> None:
    assert (await store.prune(Retention(before=clock.now() - 365 * DAY))).jobs == 0


VERBS: list[Verb] = [
    beat,
    register_and_retire,
    enqueue,
    take_over,
    settle,
    report,
    interfere,
    command,
    operate,
    pass_a_gate,
    fire,
    prune,
    forget_those_gone,
]


LOCKS = [f"SELECT * FROM duetime_{table} FOR UPDATE" for table in TABLES] + [
    # Where indexes have locks of their own, only a change of what is in them takes those.
    "UPDATE duetime_jobs SET due_at = due_at + 1",
]


@asynccontextmanager
async def all_locked(url: str) -> AsyncIterator[None]:
    """Hold a lock of every row that there is at present."""
    if url.startswith("mariadb"):
        async with connected(url) as connection:
            await fetch(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for statement in ("BEGIN", *LOCKS):
                await fetch(connection, statement)
            yield
        return
    other = await asyncpg.connect(url)
    try:
        for statement in ("BEGIN", *LOCKS):
            await other.execute(statement)
        yield
    finally:
        await other.close()


@asynccontextmanager
async def opened(url: str, clock: FakeClock | None = None) -> AsyncIterator[Store]:
    store = open_store(url, clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.covers("stopped-in-transaction")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
async def test_a_worker_goes_on_beside_rows_that_others_have_locked(server_url: str, verb: Verb) -> None:
    clock = FakeClock()
    async with opened(server_url, clock) as store:
        await tell(store, clock)
        async with all_locked(server_url), asyncio.timeout(PATIENCE):
            await hire(store, "w1")
            await verb(store, clock)


async def test_processes_hear_each_other_beside_rows_that_others_have_locked(server_url: str) -> None:
    clock = FakeClock()
    async with opened(server_url, clock) as store, opened(server_url, clock) as other:
        await tell(store, clock)
        async with all_locked(server_url), listening(store) as heard:
            await put(other, queue=OWN)
            await heard(Hint("jobs"))


@pytest.mark.covers("stopped-in-transaction")
async def test_the_server_ends_an_idle_transaction_of_ours_before_a_lease_is_over(server_url: str) -> None:
    bound = (
        "@@idle_transaction_timeout"
        if server_url.startswith("mariadb")
        else "extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)::int"
    )

    def ask_for_bound() -> Script[list[Row]]:
        return (yield Query(Statement("bound", f"SELECT {bound}", ()), {}))

    async with opened(server_url) as store:
        assert isinstance(store, SqlStore)
        ((seconds,),) = await store._driver.read(ask_for_bound)
    assert 0 < seconds * SECOND < WorkerOptions().lease
