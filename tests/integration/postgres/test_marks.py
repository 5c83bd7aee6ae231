from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from duetime.model.instants import SECOND
from duetime.runtime.identity import Identity
from duetime.runtime.liveness import host_key
from duetime.stores.open import open_store
from duetime.stores.sql.postgres.driver import PostgresDriver
from tests.integration.postgres.kit import ask, eventually, opened
from tools.servers import Postgres

MARK = """
    SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)
"""

OTHER_PROCESS = """
import asyncio, sys
from duetime.stores.sql.postgres.driver import PostgresDriver

async def main():
    driver = PostgresDriver(sys.argv[1]).sibling()
    await driver.open()
    print(await driver.hold("worker-1"), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
async def observer(postgres_url: str) -> AsyncIterator[PostgresDriver]:
    async with opened(postgres_url) as driver:
        yield driver


async def holder(observer: PostgresDriver, name: str) -> int | None:
    rows = await observer.read(ask(MARK, name=name))
    return rows[0][0] if rows else None


async def test_a_mark_is_seen_while_the_sibling_is_open(postgres_url: str, observer: PostgresDriver) -> None:
    sibling = PostgresDriver(postgres_url).sibling()
    await sibling.open()
    assert await sibling.hold("worker-1")
    assert await holder(observer, "worker-1")
    await sibling.close()
    assert await holder(observer, "worker-1") is None


async def test_a_mark_goes_with_its_process(postgres_url: str, observer: PostgresDriver) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_PROCESS, postgres_url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"True\n"
    assert await holder(observer, "worker-1")
    process.send_signal(signal.SIGKILL)
    await process.wait()

    async def gone() -> bool:
        return await holder(observer, "worker-1") is None

    await eventually(gone)


async def test_marks_come_back_after_the_connection_was_cut(
    postgres: Postgres, postgres_url: str, observer: PostgresDriver
) -> None:
    sibling = PostgresDriver(postgres_url).sibling()
    await sibling.open()
    await sibling.hold("worker-1")
    await sibling.hold("worker-2")
    before = await holder(observer, "worker-1")

    async def back() -> bool:
        holders = [await holder(observer, name) for name in ("worker-1", "worker-2")]
        return None not in holders and before not in holders

    for _ in range(3):
        before = await holder(observer, "worker-1")
        postgres.execute(f"SELECT pg_terminate_backend({before})")
        await eventually(back)
    await sibling.close()


async def test_a_mark_that_another_session_has_is_refused(postgres_url: str) -> None:
    first, second = PostgresDriver(postgres_url).sibling(), PostgresDriver(postgres_url).sibling()
    await first.open()
    await second.open()
    assert await first.hold("worker-1")
    assert not await second.hold("worker-1")
    await first.close()
    await second.close()


async def test_a_driver_whose_connections_come_and_go_holds_no_mark(observer: PostgresDriver) -> None:
    assert not await observer.hold("worker-1")


async def test_a_sibling_has_one_connection_and_none_before_it_is_used(
    postgres: Postgres, postgres_database: str, observer: PostgresDriver
) -> None:
    sessions = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{postgres_database}'"
    sibling = observer.sibling()
    await sibling.open()
    assert postgres.execute(sessions) == "1"
    await asyncio.gather(*(sibling.read(ask("SELECT pg_sleep(0.01)")) for _ in range(5)), sibling.hold("w"))
    assert postgres.execute(sessions) == "2"
    await sibling.close()


async def test_a_worker_whose_session_may_end_is_a_peer_on_whatever_host(postgres_url: str) -> None:
    store = open_store(postgres_url)
    await store.open()
    sibling = store.sibling()
    await sibling.open()
    for _ in range(2):
        await sibling.register(Identity(queues=["default"], slots=1).info, lease=SECOND)
    far = await store.peers("me", "elsewhere")
    near = await store.peers("me", host_key())
    await sibling.close()
    await store.close()
    assert [(peer.same_host, peer.session_lost, peer.has_session) for peer in far] == [(False, False, True)]
    assert [(peer.same_host, peer.has_session) for peer in near] == [(True, True)] * 2
