"""What a MariaDB's settings make impossible is named, with the fix, by the error and by the doctor."""

from __future__ import annotations

import pytest

from duetime.errors import StoreUnavailable, StoreUnusable
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import put
from tools.servers import MariaDbServer


async def test_a_binary_log_of_statements_is_refused_with_the_setting_to_change() -> None:
    with MariaDbServer(settings={"log-bin": "binlog", "binlog-format": "STATEMENT"}) as server:
        server.create_database("jobs")
        store = open_store(server.url("jobs"))
        with pytest.raises(StoreUnusable, match="set binlog_format to ROW"):
            await store.open()
        server.execute("SET GLOBAL binlog_format = ROW")
        await store.open()
        try:
            assert await put(store)
            # Sessions that are open keep what they had.
            assert [check.name for check in await store.doctor() if not check.ok] == ["durability"]
        finally:
            await store.close()


async def test_a_server_without_connections_left_says_which_setting_to_raise() -> None:
    with MariaDbServer(max_connections=10) as server:
        server.create_database("jobs")
        server.execute("CREATE USER ann; GRANT ALL ON jobs.* TO ann WITH MAX_USER_CONNECTIONS 1")
        url = server.url("jobs").replace("root", "ann")
        first, second = open_store(url), open_store(url)
        await first.open()
        try:
            with pytest.raises(StoreUnavailable, match="max_connections"):
                await second.open()
        finally:
            await first.close()
