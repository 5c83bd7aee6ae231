"""From a URL to a client of Redis: one server, a group watched by Sentinel, or a cluster."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any, Final, cast

from redis import __version__
from redis.asyncio import (
    BlockingConnectionPool,
    Connection,
    Redis,
    RedisCluster,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ClusterError, SlotNotCoveredError

from duetime.errors import ConfigError
from duetime.model.text import shown
from duetime.model.urls import UrlHost, parse_url, scheme_of, take_choice, take_number
from duetime.stores.base.timeouts import (
    CONNECT_TIMEOUT,
    DEFAULT_TIMEOUT,
    LONGEST_TIMEOUT,
    MOST_CONNECTIONS,
    SOCKET_OPTIONS,
    call_deadline,
)
from duetime.version import VERSION

_FORMS: Final = "", "+cluster", "+sentinel"
SCHEMES: Final = (*(f"redis{form}" for form in _FORMS), *(f"rediss{form}" for form in _FORMS), "unix")
OPTIONS: Final = frozenset({
    "pool", "strict", "timeout", "db",
    "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname",
})  # fmt: skip
MOST_JOBS: Final = 20_000
"""How many jobs are stored in one go: about a second, in which the server does nothing else."""
_EXTRA_CONNECTIONS: Final = 2
"""More connections than those for calls: one that listens, and one to ask for settings or to load functions by."""
_DEFAULT_SENTINEL_PORT: Final = 26379
_DEFAULT_PORT: Final = 6379


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """A URL that was read."""

    scheme: str
    hosts: tuple[UrlHost, ...]
    path: str
    username: str | None
    password: str | None = field(repr=False)
    pool: int
    strict: bool
    timeout: float
    database: int
    tls: dict[str, Any]
    """What the client is told of TLS; empty without."""

    @property
    def watched(self) -> bool:
        """Whether Sentinel tells which server is the primary."""
        return self.scheme.endswith("+sentinel")

    def __str__(self) -> str:
        return f"Redis{' (TLS)' if self.tls else ''} at {','.join(map(str, self.hosts)) or self.path}"

    @classmethod
    def of(cls, url: str) -> RedisAddress:
        """Read a URL; raises `ConfigError` for what it cannot mean."""
        scheme = scheme_of(url)
        if scheme not in SCHEMES:
            raise ConfigError(f"{scheme}:// is not a way to reach Redis; use one of {', '.join(SCHEMES)}")
        parsed = parse_url(url, options=OPTIONS)
        options = parsed.options
        if scheme.endswith("+sentinel") and not parsed.path.strip("/"):
            raise ConfigError("a URL for Sentinel names the service: redis+sentinel://host1,host2/mymaster")
        if scheme == "unix" and parsed.hosts:
            raise ConfigError("unix:// leads to a socket and names no host: unix:///run/redis.sock")
        if "+" not in scheme and len(parsed.hosts) > 1:
            raise ConfigError(
                "several hosts are for Sentinel or a cluster: redis+sentinel:// or redis+cluster://"
            )
        return cls(
            scheme=scheme,
            hosts=parsed.hosts,
            path=parsed.path,
            username=parsed.user,
            password=parsed.password,
            pool=take_number(options, "pool", 10, most=MOST_CONNECTIONS),
            timeout=float(take_number(options, "timeout", int(DEFAULT_TIMEOUT), most=LONGEST_TIMEOUT)),
            strict=take_choice(options, "strict", ("false", "true")) == "true",
            database=_database(scheme, parsed.path, options.get("db", "0")),
            tls=_tls(scheme, options),
        )

    def client(self) -> Redis | RedisCluster:
        """Return a client that has not connected yet."""
        common: dict[str, Any] = {
            "socket_timeout": self.timeout,
            "socket_connect_timeout": min(self.timeout, CONNECT_TIMEOUT),
            # With protocol 3, redis-py takes what a closed connection says for news, and sends the call all the same.
            "protocol": 2,
            # The store knows whether a call can be repeated.
            "retry": Retry(NoBackoff(), 0),
            **_driver_info(),
        }
        settings: dict[str, Any] = common | {
            "username": self.username,
            "password": self.password,
            "socket_keepalive": True,
            "socket_keepalive_options": SOCKET_OPTIONS,
            "health_check_interval": 30,
            # Each call has a shorter limit of its own.
            "socket_timeout": call_deadline(MOST_JOBS, answer=self.timeout).first,
        }
        if self.scheme.endswith("+cluster"):
            nodes = [ClusterNode(*host) for host in _hosts_and_ports(self.hosts, _DEFAULT_PORT)]
            # Only the slot of our keys must be served.
            return _Cluster(nodes, pool=self.pool, require_full_coverage=False, **settings, **self.tls)
        settings |= {"db": self.database, "max_connections": self.pool + _EXTRA_CONNECTIONS}
        if self.watched:
            hosts = _hosts_and_ports(self.hosts, _DEFAULT_SENTINEL_PORT)
            sentinel: Any = Sentinel(hosts, sentinel_kwargs=common | self.tls)
            service = self.path.lstrip("/").partition("/")[0]
            primary: Redis = sentinel.master_for(
                service, connection_pool_class=_SentinelPool, **settings, **self.tls
            )
            return primary
        if self.scheme == "unix":
            del settings["socket_keepalive"], settings["socket_keepalive_options"]
            settings |= {"connection_class": UnixDomainSocketConnection, "path": self.path}
        else:
            [(host, port)] = _hosts_and_ports(self.hosts, _DEFAULT_PORT)
            kind = SSLConnection if self.tls else Connection
            settings |= {name: value for name, value in self.tls.items() if name != "ssl"}
            settings |= {"connection_class": kind, "host": host, "port": port}
        return Redis.from_pool(BlockingConnectionPool(**settings))


class _SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the present primary; a call that finds none free waits."""


class _Cluster(RedisCluster):
    """A cluster; a call that finds no connection free waits."""

    RedisClusterRequestTTL = 1
    """No call follows its keys on their way to another server: it would find some of them there, and not the rest."""

    def __init__(self, nodes: list[ClusterNode], *, pool: int, **settings: Any) -> None:
        most = pool + _EXTRA_CONNECTIONS
        super().__init__(startup_nodes=nodes, max_connections=most, **settings)  # pyright: ignore[reportUnknownMemberType]
        self._turns = asyncio.Semaphore(pool)

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call when it is its turn."""
        async with self._turns:
            if args[0].startswith("FCALL"):
                return await self._call(*args)
            return await super().execute_command(*args, **kwargs)

    async def _call(self, *words: Any) -> Any:
        node = await self._keeper(words[3])
        while True:
            try:
                return await super().execute_command(*words, target_nodes=node)
            except ClusterDownError:
                raise
            except ClusterError:
                # Where the keys have arrived at another server, that is known by now.
                before, node = node, await self._keeper(words[3])
                if node == before:
                    raise

    async def _keeper(self, key: str) -> ClusterNode:
        """Return the primary that keeps a key.

        The client would ask a server which words of a call are keys, each time, and one that has died for ever.
        """
        await self.initialize()
        try:
            return cast(ClusterNode, self.get_node_from_key(key))
        except SlotNotCoveredError:
            # Look again the next time.
            await self.aclose()
            raise


async def close_client(client: Redis | RedisCluster) -> None:
    """Let go of all connections, those to Sentinels included."""
    watching = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for sentinel in () if watching is None else watching.sentinels:
        await sentinel.aclose()
    await client.aclose()


def _driver_info() -> dict[str, Any]:
    """Return what the server is told of who connects.

    By itself, the driver looks its own version up for each connection, in a file that takes half a megabyte to read.
    """
    try:
        from redis.driver_info import DriverInfo
    except ImportError:
        return {}  # An earlier one looks it up once.
    return {"driver_info": DriverInfo(lib_version=__version__).add_upstream_driver("duetime", VERSION)}


def _hosts_and_ports(hosts: tuple[UrlHost, ...], port: int) -> list[tuple[str, int]]:
    return [(host.name, host.port or port) for host in hosts] or [("localhost", port)]


def _database(scheme: str, path: str, option: str) -> int:
    """Return the number of the database, which stands behind the host or the service, or else in an option."""
    behind = path.strip("/")
    if scheme == "unix":
        behind = ""
    elif scheme.endswith("+sentinel"):
        behind = behind.partition("/")[2]
    given = behind or option
    if not (given.isascii() and given.isdecimal()):
        raise ConfigError(f"a database of Redis is a number, not {shown(given)}: redis://host:6379/0")
    return int(given)


def _tls(scheme: str, options: dict[str, str]) -> dict[str, Any]:
    """Read what the URL tells of certificates; raises `ConfigError` for files that cannot be used."""
    if not scheme.startswith("rediss"):
        for name in options:
            if name.startswith("ssl_"):
                raise ConfigError(f"{name} is for TLS: begin the URL with rediss")
        return {}
    demand = take_choice(options, "ssl_cert_reqs", ("required", "optional", "none"))
    checked = take_choice(options, "ssl_check_hostname", ("true", "false")) == "true"
    files = {name: options.get(name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")}
    try:
        context = ssl.create_default_context(cafile=files["ssl_ca_certs"])
        if files["ssl_certfile"] or files["ssl_keyfile"]:
            context.load_cert_chain(files["ssl_certfile"] or "", files["ssl_keyfile"])
    except OSError as error:
        named = ", ".join(f"{name}={path}" for name, path in files.items() if path)
        raise ConfigError(f"the files for TLS cannot be used ({named}): {error}") from error
    return {"ssl": True, "ssl_cert_reqs": demand, "ssl_check_hostname": checked, **files}
