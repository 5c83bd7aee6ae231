"""Processes on MariaDB hear each other, by rows that the server watches for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncmy
import pytest_asyncio

from duetime.stores.base import Hint, Store
from duetime.stores.open import open_store
from duetime.stores.sql.driver import Statement
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.statements.loader import load_hints
from duetime.testing.conformance.kit import put
from duetime.testing.conformance.wakeups import listening
from tests.integration.kit import PATIENCE, until
from tests.support.mariadb import connected, fetch
from tests.support.pace import one_moment

SQL = load_hints(MARIADB, "duetime")
TURN = "concat('duetime-', md5(concat(database(), '.duetime_hints')))"
LOOKS = f"SELECT is_used_lock({TURN})"
"""Names the connection whose turn it is to look."""
WAITS = "SELECT 1 FROM information_schema.processlist WHERE db = database() AND state = 'User lock'"


def written_out(statement: Statement, **values: object) -> str:
    return statement.sql % {"now": "NULL", **values}


@pytest_asyncio.fixture
async def stores(mariadb_url: str) -> AsyncIterator[tuple[Store, Store]]:
    """Two processes, as far as the server can tell."""
    both = open_store(mariadb_url), open_store(mariadb_url)
    for store in both:
        await store.open()
    yield both
    for store in both:
        await store.close()


async def looking(connection: asyncmy.Connection) -> int:
    """Return which connection looks, once one does."""
    async with asyncio.timeout(PATIENCE):
        while (found := (await fetch(connection, LOOKS))[0][0]) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return int(found)


async def test_a_watcher_whose_connection_is_cut_hears_again(
    stores: tuple[Store, Store], mariadb_url: str
) -> None:
    here, there = stores
    async with listening(here) as heard, connected(mariadb_url) as other:
        await fetch(other, f"KILL {await looking(other)}")
        await until(lambda: not here.hears_others, what="a store that knows it")
        await until(lambda: here.hears_others, what="a store that hears again")
        await put(there)
        await heard(Hint("jobs"))


async def test_one_that_died_while_it_was_its_turn_to_look_keeps_nobody_from_hearing(
    stores: tuple[Store, Store], mariadb_url: str
) -> None:
    here, there = stores
    async with connected(mariadb_url) as other:
        async with connected(mariadb_url) as dying:
            asking = asyncio.create_task(fetch(dying, written_out(SQL["watch"], heard=0, due=0, pace=0.05)))
            dead = await looking(other)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(4), listening(here) as heard:
            # The server has not noticed, and goes on.
            assert await looking(other) == dead
            await put(there)
            await heard(Hint("jobs"))


async def test_one_that_comes_late_does_not_wait_behind_those_that_have_heard(
    stores: tuple[Store, Store], mariadb_url: str
) -> None:
    _, there = stores
    async with connected(mariadb_url) as looking, connected(mariadb_url) as late:
        await fetch(looking, f"SELECT get_lock({TURN}, 0)")
        await fetch(looking, written_out(SQL["tell"], slot=1, said="'x'"))
        [(due, *told)] = await fetch(late, written_out(SQL["watch"], heard=0, due=0, pace=1))
        assert (due, told) == (0, [0, 1, 1, 1, "x"])
        await fetch(looking, "DELETE FROM duetime_hints")
        [(due, *told)] = await fetch(late, written_out(SQL["watch"], heard=1, due=0, pace=1))
        assert (due, told) == (0, [0, 1, None, None, None]), "also of what is gone"
        await put(there)
        [(due, *told)] = await fetch(late, written_out(SQL["watch"], heard=0, due=0, pace=1))
        assert due > 0
        assert told[0] == 1


async def test_what_was_overwritten_before_it_was_heard_is_heard_as_anything(
    stores: tuple[Store, Store], mariadb_url: str
) -> None:
    here, _ = stores
    async with listening(here) as heard, connected(mariadb_url) as other:
        said = """'["x", [["schedules", ""]]]'"""
        await other.begin()
        for _ in range(2):
            await fetch(other, written_out(SQL["tell"], slot=1, said=said))
        await other.commit()
        await heard(Hint("any"))


async def test_many_hints_of_a_moment_are_told_by_few_commits(
    stores: tuple[Store, Store], mariadb_url: str
) -> None:
    here, there = stores
    async with listening(here) as heard, connected(mariadb_url) as other:
        with one_moment():
            for _ in range(50):
                await put(there)
        await heard(Hint("jobs"))
        [(told,)] = await fetch(other, "SELECT sum(told) FROM duetime_hints")
        assert told <= 2


async def test_one_looks_for_all_of_them(stores: tuple[Store, Store], mariadb_url: str) -> None:
    here, there = stores
    async with listening(here), listening(there), connected(mariadb_url) as other:
        await looking(other)
        while not await fetch(other, WAITS):  # noqa: ASYNC110
            # The server looks anew for whoever has not asked for a tenth of a second.
            await asyncio.sleep(0.15)
