"""Time is the store's own, exact to the microsecond, and as long as anyone needs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.model.time import EARLIEST, LATEST
from duetime.stores.base import NextDue, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    declare,
    finish,
    hire,
    job,
    put,
    read,
    schedule,
    take,
    take_one,
)
from duetime.testing.conformance.suite import StoreSuite


class TestTime(StoreSuite):
    """`now`, and times as they are stored."""

    @pytest.mark.covers("store-clock")
    async def test_the_stores_clock_is_the_one_it_was_given(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        for moment in (clock.now(), datetime(2038, 1, 20, tzinfo=UTC), datetime(1971, 1, 1, tzinfo=UTC)):
            now = clock.set(moment)
            assert await store.now() == await other.now() == now

    @pytest.mark.covers("sub-second-due")
    async def test_every_microsecond_counts(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        clock.set(1_700_000_000_123_457)
        job_id = await put(store, due_at=1_700_000_000_123_459)
        clock.set(1_700_000_000_123_458)
        assert await take(store) == []
        clock.set(1_700_000_000_123_459)
        claim = await take_one(store)
        await finish(store, claim, now=clock.now() + 1)
        record = await read(store, job_id)
        assert (record.created_at, record.due_at) == (1_700_000_000_123_457, 1_700_000_000_123_459)
        assert (record.started_at, record.finished_at) == (1_700_000_000_123_459, 1_700_000_000_123_460)

    async def test_the_first_and_the_last_instant_survive(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        first, last = await store.enqueue([job(due_at=EARLIEST), job(due_at=LATEST)])
        assert [record.due_at for record in await store.get([first, last])] == [EARLIEST, LATEST]
        assert [claim.job_id for claim in await take(store)] == [first]
        await declare(store, schedule("s", next_at=LATEST, fired_through=EARLIEST))
        assert (await store.due_schedules(ahead=0, limit=1)).next_at == LATEST
        assert await store.next_due(["default"], [TASK]) == NextDue(clock.now(), LATEST)

    async def test_the_first_instant_is_due_like_any_other(self, store: Store, clock: FakeClock) -> None:
        clock.set(EARLIEST)
        await hire(store, "w1")
        await put(store)
        assert (await take_one(store)).due_at == EARLIEST

    async def test_a_clock_that_is_set_back_makes_jobs_wait_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await put(store)
        clock.set(clock.now() - 5)
        assert await take(store) == []
        clock.set(clock.now() + 5)
        assert len(await take(store)) == 1
