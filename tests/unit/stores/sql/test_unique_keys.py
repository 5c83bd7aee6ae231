"""Enqueue under keys, with others at work between any two of its statements."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId, Key, NewJob
from duetime.model.outcome import Failed
from duetime.model.retry import fixed
from duetime.model.time import SECOND
from duetime.stores.base import JobFilter
from duetime.stores.open import open_store
from duetime.stores.sql.driver import Query, Row, Script, play
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.statements.loader import load
from duetime.stores.sql.store import SqlStore
from duetime.stores.sql.unique_keys import KeyedPlacement, place
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import finish, hire, job, put, read, take_one

Deed = Callable[[], Awaitable[object]]

REPLACE = Key(value="k", if_exists="replace")


@dataclass(slots=True)
class Play:
    """Runs a script statement by statement, and lets something happen right before the first of a name."""

    store: SqlStore
    before: dict[str, Deed]
    sent: list[str] = field(default_factory=list[str])

    async def __call__(self, asked: NewJob) -> JobId:
        steps = place(self.store._sql, [asked])
        try:
            query = next(steps)
            while True:
                if deed := self.before.pop(query.statement.name, None):
                    await deed()
                self.sent.append(query.statement.name)
                query = steps.send(await self._one(query))
        except StopIteration as stop:
            placed: KeyedPlacement = stop.value
            return placed.ids[asked.id]

    async def _one(self, query: Query) -> list[Row]:
        return await self.store._driver.write(lambda: _alone(query))


def _alone(query: Query) -> Script[list[Row]]:
    return (yield query)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(sql_url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    store = open_store(sql_url, clock=clock)
    assert isinstance(store, SqlStore)
    await store.open()
    await hire(store, "w1")
    yield store
    await store.close()


async def test_a_job_that_begins_before_it_can_be_replaced_runs_as_it_was(store: SqlStore) -> None:
    first = await put(store, key=REPLACE, payload="1")
    asked = job(key=REPLACE, payload="2")
    play = Play(store, {"replace_keyed": lambda: take_one(store)})
    assert await play(asked) == asked.id
    assert [(await read(store, job_id)).payload for job_id in (first, asked.id)] == ["1", "2"]
    assert await put(store, key=REPLACE) == asked.id


async def test_a_job_that_ends_before_it_can_be_replaced_makes_room(store: SqlStore) -> None:
    first = await put(store, key=REPLACE)
    asked = job(key=REPLACE)
    play = Play(store, {"replace_keyed": lambda: store.cancel([first], reason="off")})
    assert await play(asked) == asked.id


async def test_a_job_that_goes_back_before_its_key_is_taken_is_replaced_after_all(
    store: SqlStore, clock: FakeClock
) -> None:
    first = await put(store, key=REPLACE, payload="1")
    claim = await take_one(store)
    again = fixed(1, 1)
    failed = Failed(error="boom")
    play = Play(store, {"free_keys": lambda: finish(store, claim, failed, now=clock.now(), policy=again)})
    assert await play(job(key=REPLACE, payload="2")) == first
    assert [found.payload for found in await store.find(JobFilter())] == ["2"]


async def test_a_job_that_ends_between_the_attempt_and_the_look_makes_room(
    store: SqlStore, clock: FakeClock
) -> None:
    await put(store, key=Key(value="k"))
    claim = await take_one(store)
    asked = job(key=Key(value="k"))
    play = Play(store, {"key_holders": lambda: finish(store, claim, now=clock.now())})
    assert await play(asked) == asked.id
    assert play.sent == ["enqueue", "key_holders"] * 2


async def test_whoever_takes_an_old_hold_over_first_has_the_key(store: SqlStore, clock: FakeClock) -> None:
    kept = Key(value="k", keep=SECOND)
    await put(store, key=kept)
    await finish(store, await take_one(store), now=clock.now())
    clock.advance(1)
    quicker = job(key=kept)
    play = Play(store, {"free_keys": lambda: store.enqueue([quicker])})
    assert await play(job(key=kept)) == quicker.id


def test_who_never_sees_what_is_in_the_way_gives_up_in_the_end() -> None:
    steps = place(load(SQLITE, "duetime"), [job(key=Key(value="k"))])
    with pytest.raises(StoreUnavailable, match="'k'"):
        play(steps, lambda _: [])
