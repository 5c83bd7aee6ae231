"""Database servers that tests and benchmarks start for themselves, in a folder and on a port of their own."""

from __future__ import annotations

from tools.servers.binaries import ServerMissing
from tools.servers.etcd import EtcdServer
from tools.servers.mariadb import MariaDb, MariaDbServer
from tools.servers.pgbouncer import PgBouncer
from tools.servers.postgres import Postgres, PostgresServer
from tools.servers.redis import RedisServer

__all__ = [
    "EtcdServer",
    "MariaDb",
    "MariaDbServer",
    "PgBouncer",
    "Postgres",
    "PostgresServer",
    "RedisServer",
    "ServerMissing",
]
