"""The sandbox: an application's scheduler on a database in memory, for a while."""

from __future__ import annotations

import asyncio

import pytest

from duetime import Scheduler
from duetime.errors import ConfigError
from duetime.testing import FakeClock, assert_enqueued, blocking, refute_enqueued, sandbox

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"

scheduler = Scheduler(NOWHERE, locks=NOWHERE)


@scheduler.task
def note(text: str) -> str:
    return text


async def test_it_needs_no_database_and_starts_empty_every_time() -> None:
    for _ in range(2):
        with sandbox(scheduler):
            async with scheduler:
                await refute_enqueued(scheduler, note)
                await note.enqueue("a")
                await assert_enqueued(scheduler, note, "a", times=1)


async def test_the_clock_stands_still_and_is_the_tests_own_if_given() -> None:
    clock = FakeClock()
    with sandbox(scheduler, clock=clock):
        assert scheduler.clock is clock
        async with scheduler:
            job = await note.enqueue("a")
            clock.advance("1h")
            assert (await note.enqueue("b")).id != job.id
            assert (await job.record()).lateness is None


def test_everything_is_as_before_afterwards_also_after_an_error() -> None:
    with pytest.raises(LookupError), sandbox(scheduler):
        raise LookupError
    assert scheduler.url.startswith("postgresql://")
    assert scheduler.clock is None


async def test_locks_are_taken_in_it_too() -> None:
    for _ in range(2):
        with sandbox(scheduler):
            async with scheduler, scheduler.lock("report"):
                assert [held.name for held in await scheduler.locks.list()] == ["report"]
    assert scheduler.locks.place != "sqlite://"


def test_blocking_callers_are_let_go() -> None:
    with sandbox(scheduler):
        note.sync.enqueue("a")
        blocking.assert_enqueued(scheduler, note, "a")
        assert scheduler.is_open
    assert not scheduler.is_open


def test_a_scheduler_that_is_open_is_refused(sqlite_url: str) -> None:
    opened = Scheduler(sqlite_url)

    async def enter() -> None:
        async with opened:
            with sandbox(opened):
                pass

    with pytest.raises(ConfigError, match="is open"):
        asyncio.run(enter())
    assert opened.url == sqlite_url
