"""Databases of a MariaDB server that flushes every commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.limits import mariadb
from benchmarks.places.base import Places
from benchmarks.places.served import ServedLimits, table_places
from tools.servers import MariaDbServer

FLUSH = ("ANALYZE TABLE duetime_jobs",)
_SHOWN = ("innodb_flush_log_at_trx_commit", "log_bin", "innodb_buffer_pool_size", "innodb_log_file_size")


def mariadb_limits(url: str) -> ServedLimits:
    """Return what MariaDB can do at best."""
    return ServedLimits(mariadb, url)


def mariadb_facts(server: MariaDbServer) -> dict[str, str]:
    """Return its version, and the settings that figures depend on."""
    settings = ", ".join(f"{name}={server.execute(f'SELECT @@{name}')}" for name in _SHOWN)
    return {"MariaDB": server.execute("SELECT version()"), "settings": settings}


@contextmanager
def mariadb_places(future: int) -> Iterator[Places]:
    """Start a server and make databases in it."""
    with MariaDbServer() as server:
        yield table_places(server, future, flush=FLUSH, limits=mariadb_limits, facts=mariadb_facts(server))
