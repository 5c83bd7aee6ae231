"""Databases of one Redis server that keeps an append-only file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redis import Redis

from benchmarks.limits import redis
from benchmarks.places.base import Places
from benchmarks.places.filling import prepare
from benchmarks.places.served import ServedLimits
from tools.servers import RedisServer

SHOWN = ("appendonly", "appendfsync")
_NAMESPACE = "{duetime}"
_JOBS = f"{_NAMESPACE}:jobs"
_LINES = f"{_NAMESPACE}:lines"
_OTHERS = f"{_NAMESPACE}:[^j]*"
"""All keys but `jobs` and those of single jobs."""
_LAST = "filling:last"
_KEPT = "filling:kept"
_KEPT_LINES = "filling:lines"
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Database:
    """One of the numbered databases of a server."""

    server: RedisServer
    number: int

    @property
    def url(self) -> str:
        """Its address."""
        return self.server.url(self.number)

    def keep(self) -> None:
        """Note the last job and all keys but those of single jobs."""
        with connected(self.url) as client:
            client.set(_LAST, client.zrange(_JOBS, -1, -1)[0])
            client.sadd(_KEPT, _JOBS, *client.scan_iter(_OTHERS, count=_CHUNK))
            client.copy(_LINES, _KEPT_LINES)
            rewritten(client)

    def tidy(self) -> None:
        """Remove the jobs behind the last one, and all keys that were not there."""
        with connected(self.url) as client:
            kept = client.smembers(_KEPT)
            # Job ids rise with time: those made after the filling are the measures' own.
            own = client.zrange(_JOBS, b"(" + client.get(_LAST), "+", bylex=True)
            indexes = [key for key in kept if client.type(key) == b"zset"]
            for some in _chunks(own):
                client.unlink(*(f"{_NAMESPACE}:job:{job.decode()}" for job in some))
                for index in indexes:
                    client.zrem(index, *some)
            for some in _chunks(key for key in client.scan_iter(_OTHERS, count=_CHUNK) if key not in kept):
                client.unlink(*some)
            client.copy(_KEPT_LINES, _LINES, replace=True)
            _written(client)


def redis_limits(url: str) -> ServedLimits:
    """Return what Redis can do at best."""
    return ServedLimits(redis, url)


@contextmanager
def redis_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with RedisServer() as server:
        empty, filled, bare = (Database(server, number) for number in range(3))
        prepare(empty, filled, future)
        with connected(bare.url) as client:
            facts = {"Redis": client.info("server")["redis_version"], "settings": shown(client)}
        yield Places(
            empty=empty, filled=filled, limits=redis_limits(bare.url), facts=facts, server=server.pid
        )


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Talk to a server; what its client says of types fits neither texts nor bytes."""
    with Redis.from_url(url) as client:
        yield client


def shown(client: Any) -> str:
    """Return the settings that figures depend on."""
    found = client.config_get(*SHOWN)
    return ", ".join(f"{name}={found[name]}" for name in SHOWN)


def rewritten(client: Any) -> None:
    """Write the append-only file anew, so that this does not happen while something is measured."""
    _written(client)
    client.bgrewriteaof()
    _written(client)


def _written(client: Any) -> None:
    while any(client.info("persistence")[f"aof_rewrite_{what}"] for what in ("in_progress", "scheduled")):
        time.sleep(0.05)


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    some: list[Any] = []
    for value in values:
        some.append(value)
        if len(some) == _CHUNK:
            yield some
            some = []
    if some:
        yield some
