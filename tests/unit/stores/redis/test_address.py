from __future__ import annotations

from typing import Any

import pytest
from redis import __version__
from redis.asyncio.connection import Connection, SSLConnection

from duetime.stores.redis.address import RedisAddress, close_client
from duetime.version import VERSION


def kwargs_of(client: Any) -> dict[str, Any]:
    """Return what the connections of a client are made with."""
    settings: dict[str, Any] = client.connection_pool.connection_kwargs
    return settings


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("redis://host", 0),
        ("redis://host/3", 3),
        ("redis://host?db=3", 3),
        ("unix:///run/redis.sock?db=3", 3),
        ("redis+sentinel://host/jobs/3", 3),
        ("redis+sentinel://host/jobs?db=3", 3),
    ],
)
async def test_the_database_stands_behind_the_place_or_in_an_option(url: str, database: int) -> None:
    client = RedisAddress.of(url).client()
    assert kwargs_of(client)["db"] == database
    await close_client(client)


@pytest.mark.parametrize(("scheme", "kind"), [("redis", Connection), ("rediss", SSLConnection)])
async def test_sentinels_are_asked_by_tls_if_their_primary_is(scheme: str, kind: type[Connection]) -> None:
    client: Any = RedisAddress.of(f"{scheme}+sentinel://one,two:7/jobs").client()
    pools = [sentinel.connection_pool for sentinel in client.connection_pool.sentinel_manager.sentinels]
    assert [pool.connection_kwargs["port"] for pool in pools] == [26379, 7]
    assert [pool.connection_class for pool in pools] == [kind, kind]
    assert issubclass(client.connection_pool.connection_class, kind)
    await close_client(client)


async def test_a_cluster_is_looked_for_at_each_of_its_addresses() -> None:
    client: Any = RedisAddress.of("redis+cluster://one.example,two.example:7,[::1]:8").client()
    assert [(node.host, node.port) for node in client.startup_nodes] == [
        ("one.example", 6379),
        ("two.example", 7),
        ("::1", 8),
    ]
    await close_client(client)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@host:1/2", "Redis at host:1"),
        ("rediss://:secret@host", "Redis (TLS) at host"),
        ("unix:///run/redis.sock", "Redis at /run/redis.sock"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert str(RedisAddress.of(url)) == shown


@pytest.mark.parametrize(
    "url", ["redis://h:1/2", "unix:///tmp/r.sock", "redis+sentinel://h:1/main", "redis+cluster://h:1"]
)
async def test_connections_say_whose_they_are_without_looking_a_version_up(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    # It is read from a file, anew for each connection.
    monkeypatch.delattr("redis.utils.get_lib_version")
    client: Any = RedisAddress.of(url).client()
    pool = client.nodes_manager.startup_nodes["h:1"] if "cluster" in url else client.connection_pool
    said = pool.connection_kwargs["driver_info"]
    assert (said.formatted_name, said.lib_version) == (f"redis-py(duetime_v{VERSION})", __version__)
    await close_client(client)
