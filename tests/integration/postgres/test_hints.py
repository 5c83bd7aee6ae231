from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest

from duetime.errors import StoreError
from duetime.stores.base import Hint
from duetime.stores.sql.pool.hints import encode_hints
from duetime.stores.sql.postgres.connection import PostgresConnector
from duetime.stores.sql.postgres.driver import PostgresDriver
from duetime.stores.sql.postgres.hints import NotificationSender
from tests.integration.postgres.kit import ask, do, opened
from tools.servers import Postgres, PostgresServer

ANY, JOBS = Hint("any"), Hint("jobs")

OTHER_PROCESS = """
import asyncio, sys
from duetime.stores.base import Hint
from duetime.stores.sql.postgres.connection import PostgresConnector
from duetime.stores.sql.postgres.driver import PostgresDriver

async def main():
    driver = PostgresDriver(PostgresConnector(sys.argv[1]))
    await driver.open()
    driver.hint(Hint("worker", "w'1\\\\"))
    await driver.close()

asyncio.run(main())
"""


class Ears:
    """What one driver hears, in the order it is heard."""

    def __init__(self, driver: PostgresDriver) -> None:
        self.heard: list[Hint] = []
        self._driver = driver
        self._more = asyncio.Condition()

    async def listen(self) -> None:
        async for hint in self._driver.wakeups():
            async with self._more:
                self.heard.append(hint)
                self._more.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that is hinted at when it changes."""
        async with self._more:
            await self._more.wait_for(condition)

    async def hear(self, hint: Hint, *, times: int = 1) -> None:
        await self.until(lambda: self.heard.count(hint) >= times)


@contextlib.asynccontextmanager
async def listening(driver: PostgresDriver, *, connected: bool = True) -> AsyncIterator[Ears]:
    ears = Ears(driver)
    task = asyncio.ensure_future(ears.listen())
    if connected:
        await ears.hear(ANY)
    try:
        yield ears
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_the_hint_of_a_write_reaches_this_process_and_another_driver(postgres_url: str) -> None:
    async with (
        opened(postgres_url) as here,
        opened(postgres_url) as there,
        listening(here) as own,
        listening(there) as other,
    ):
        await here.write(do("CREATE TABLE numbers (n int)"))
        await here.write(ask("INSERT INTO numbers VALUES ($1::int)", n=7), atomic=False, hint=JOBS)
        await own.hear(JOBS)
        await other.hear(JOBS)
        assert await there.read(ask("SELECT n FROM numbers")) == [(7,)]


async def test_the_commit_of_a_write_carries_no_notification(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Hint] = []
    monkeypatch.setattr(NotificationSender, "send", lambda _self, hint: kept.append(hint))
    later = encode_hints("somebody", [Hint("schedules")])
    async with opened(postgres_url) as here, opened(postgres_url) as there, listening(there) as other:
        await here.write(do("CREATE TABLE numbers (n int)"))
        await here.write(ask("INSERT INTO numbers VALUES ($1::int)", n=7), atomic=False, hint=JOBS)
        await here.write(ask("SELECT pg_notify('duetime_hints', $1)", text=later), atomic=False)
        # Notifications arrive in order, so one of the commit would be here by now.
        await other.hear(Hint("schedules"))
        assert JOBS not in other.heard
        assert kept == [JOBS]


async def test_a_write_succeeds_where_its_hint_cannot_be_sent(
    postgres: Postgres, postgres_database: str
) -> None:
    url, role = postgres.url(postgres_database), f"{postgres_database}_mute"
    for text in (
        f"CREATE ROLE {role}",
        "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC",
        "CREATE TABLE numbers (n int)",
        f"GRANT INSERT, SELECT ON numbers TO {role}",
    ):
        postgres.execute(text, database=postgres_database)
    try:
        async with opened(f"{url}?role={role}") as mute, listening(mute) as own:
            with pytest.raises(StoreError, match="pg_notify"):
                await mute.write(ask("SELECT pg_notify('a', 'b')"))
            await mute.write(ask("INSERT INTO numbers VALUES ($1::int)", n=7), atomic=False, hint=JOBS)
            await own.hear(JOBS)
            assert await mute.read(ask("SELECT n FROM numbers")) == [(7,)]
    finally:
        postgres.execute(f"DROP OWNED BY {role}; DROP ROLE {role}", database=postgres_database)


async def test_a_write_that_fails_hints_at_nothing(postgres_url: str) -> None:
    async with opened(postgres_url) as here, opened(postgres_url) as there, listening(there) as other:
        with pytest.raises(StoreError):
            await here.write(ask("INSERT INTO missing VALUES (1)"), atomic=False, hint=JOBS)
        here.hint(Hint("schedules"))
        await other.hear(Hint("schedules"))
        assert JOBS not in other.heard


async def test_a_hint_reaches_this_process_and_another_driver(postgres_url: str) -> None:
    async with (
        opened(postgres_url) as here,
        opened(postgres_url) as there,
        listening(here) as own,
        listening(there) as other,
    ):
        here.hint(JOBS)
        await own.hear(JOBS)
        await other.hear(JOBS)


async def test_a_hint_sent_right_before_the_end_of_another_process_arrives(postgres_url: str) -> None:
    async with opened(postgres_url) as driver, listening(driver) as ears:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", OTHER_PROCESS, postgres_url)
        await ears.hear(Hint("worker", "w'1\\"))
        assert await process.wait() == 0


async def test_our_own_hints_are_not_heard_twice(postgres_url: str) -> None:
    async with (
        opened(postgres_url) as here,
        opened(postgres_url) as there,
        listening(here) as own,
        listening(there) as other,
    ):
        here.hint(JOBS)
        await other.hear(JOBS)
        there.hint(Hint("schedules"))
        # Notifications arrive in order, so an echo of the first would be here by now.
        await own.hear(Hint("schedules"))
        assert own.heard == [ANY, JOBS, Hint("schedules")]


async def test_a_burst_of_hints_is_a_handful_of_notifications(postgres_url: str) -> None:
    payloads: list[str] = []
    ear: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(postgres_url)
    await ear.add_listener("duetime_hints", lambda _c, _p, _n, payload: payloads.append(str(payload)))
    async with opened(postgres_url) as driver:
        for n in range(1000):
            driver.hint(Hint("worker", f"w{n % 10}"))
            await asyncio.sleep(0)
    while not any("w9" in payload for payload in payloads):
        await ear.execute("SELECT 1")
    assert len(payloads) <= 100
    await ear.close()


async def test_listening_begins_anew_after_the_connection_was_cut(
    postgres: Postgres, postgres_database: str
) -> None:
    url = postgres.url(postgres_database)
    listeners = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    async with opened(url) as here, opened(url) as there, listening(here) as ears:
        assert here.hears_others
        postgres.execute(f"SELECT pg_terminate_backend(pid) {listeners}", database=postgres_database)
        await ears.hear(ANY, times=2)
        await ears.until(lambda: here.hears_others)
        there.hint(JOBS)
        await ears.hear(JOBS)


async def test_hints_are_heard_again_after_a_crash_of_the_server(own_postgres: PostgresServer) -> None:
    async with (
        opened(own_postgres.url()) as here,
        opened(own_postgres.url()) as there,
        listening(here) as ears,
        asyncio.timeout(45),
    ):
        there.hint(JOBS)
        await ears.hear(JOBS)
        own_postgres.stop("immediate")
        await ears.until(lambda: not here.hears_others)
        here.hint(JOBS)
        await ears.hear(JOBS, times=2)
        own_postgres.start()
        await ears.until(lambda: here.hears_others)
        # What is sent while there is no connection may be dropped, so it is said until it is heard.
        hearing = asyncio.ensure_future(ears.hear(Hint("schedules")))
        while not hearing.done():
            there.hint(Hint("schedules"))
            await asyncio.sleep(0.01)


async def test_nothing_is_heard_before_and_after_listening(postgres_url: str) -> None:
    async with opened(postgres_url) as driver:
        assert not driver.hears_others
        async with listening(driver):
            assert driver.hears_others
        assert not driver.hears_others


async def test_hints_of_a_sibling_reach_its_family_and_others(postgres_url: str) -> None:
    async with (
        opened(postgres_url) as here,
        opened(postgres_url) as there,
        listening(here) as own,
        listening(there) as other,
    ):

        async def elsewhere() -> None:
            sibling = here.sibling()
            await sibling.open()
            sibling.hint(JOBS)
            await sibling.close()

        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        await own.hear(JOBS)
        await other.hear(JOBS)


async def test_namespaces_do_not_hear_each_other(postgres_url: str) -> None:
    async with opened(postgres_url) as here, listening(here) as ears:
        connector = PostgresConnector(postgres_url)
        stranger, friend = PostgresDriver(connector, namespace="other"), PostgresDriver(connector)
        await stranger.open()
        stranger.hint(JOBS)
        await stranger.close()
        await friend.open()
        friend.hint(Hint("schedules"))
        await friend.close()
        await ears.hear(Hint("schedules"))
        assert JOBS not in ears.heard
