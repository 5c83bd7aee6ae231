"""What is wrong with a Redis, or the way to it, is named with what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import StoreUnavailable, StoreUnusable
from duetime.stores.open import open_store
from tests.integration.refusals import refusal
from tools.servers import RedisServer
from tools.servers.process import free_port

pytestmark = pytest.mark.covers("unexplained-database")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "nowhere.invalid"])
async def test_a_server_that_cannot_be_reached_is_told_with_its_address(host: str) -> None:
    place = host.format(port=free_port())
    refused = await refusal(f"redis://ann:secret@{place}/0")
    assert isinstance(refused, StoreUnavailable)
    assert f"Redis at {place} cannot be reached" in str(refused)
    assert str(refused).endswith("; check that it runs, and host and port in the URL")


async def test_a_server_without_functions_is_too_old() -> None:
    without = [word for name in ("FUNCTION", "FCALL", "FCALL_RO") for word in ("--rename-command", name, "")]
    with RedisServer(*without) as server:
        refused = await refusal(server.url())
    assert isinstance(refused, StoreUnusable)
    assert "older than Redis 7" in str(refused)
    assert str(refused).endswith("; upgrade it")


async def test_a_user_without_rights_is_told_by_the_error_and_by_the_doctor(own_redis: RedisServer) -> None:
    store = open_store(own_redis.url())
    await store.open()
    try:
        client: Any = store._calls.client  # type: ignore[attr-defined]
        await client.acl_setuser("default", enabled=True, commands=["-fcall"])
        (written,) = [check for check in await store.doctor() if check.name == "writes"]
        assert not written.ok
        assert written.fix == "see its rights with ACL GETUSER"
    finally:
        await store.close()
