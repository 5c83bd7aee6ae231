"""Databases of a PostgreSQL server with its stock settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.limits import postgres
from benchmarks.places.base import Places
from benchmarks.places.served import ServedLimits, table_places
from tools.servers import PostgresServer

_FLUSH = ("VACUUM ANALYZE duetime_jobs", "CHECKPOINT")
_SHOWN = ("fsync", "synchronous_commit", "shared_buffers", "max_connections")


def postgres_limits(url: str) -> ServedLimits:
    """Return what PostgreSQL can do at best."""
    return ServedLimits(postgres, url)


def postgres_facts(server: PostgresServer) -> dict[str, str]:
    """Return its version, and the settings that figures depend on."""
    settings = ", ".join(f"{name}={server.execute(f'SHOW {name}')}" for name in _SHOWN)
    return {"PostgreSQL": server.execute("SHOW server_version"), "settings": settings}


@contextmanager
def postgres_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with PostgresServer(fsync=True) as server:
        yield table_places(server, future, flush=_FLUSH, limits=postgres_limits, facts=postgres_facts(server))
