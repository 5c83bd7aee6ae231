"""From a URL to a client of Redis: one server, a group watched by Sentinel, or a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from duetime.errors import ConfigError

SCHEMES: Final = frozenset(
    {"redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}
)
OPTIONS: Final = frozenset(
    {
        "pool",
        "strict",
        "timeout",
        "db",
        "ssl_ca_certs",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_cert_reqs",
        "ssl_check_hostname",
    }
)
_LARGEST_POOL: Final = 1_000
_BESIDE: Final = 2
"""Connections beside those for calls: one that listens, and one to ask for settings or to load functions by."""
_SENTINEL_PORT: Final = 26379
_PORT: Final = 6379


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A URL that was read."""

    scheme: str
    netloc: str
    path: str
    username: str | None
    password: str | None
    pool: int
    strict: bool
    timeout: float
    options: dict[str, Any]

    @property
    def watched(self) -> bool:
        """Whether Sentinel tells which server is the primary."""
        return self.scheme.endswith("+sentinel")

    def __str__(self) -> str:
        return f"Redis at {self.netloc.rpartition('@')[2] or self.path}"

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a URL; raises `ConfigError` for what it cannot mean."""
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in SCHEMES:
            raise ConfigError(
                f"{scheme}:// is not a way to reach Redis; use one of {', '.join(sorted(SCHEMES))}"
            )
        if scheme.endswith("+sentinel") and not parts.path.strip("/"):
            raise ConfigError("a URL for Sentinel names the service: redis+sentinel://host1,host2/mymaster")
        options: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
        for name in options:
            if name not in OPTIONS:
                known = ", ".join(sorted(OPTIONS))
                raise ConfigError(f"the URL has the unknown option {name!r}; options are {known}")
        user = None if parts.username is None else unquote(parts.username) or None
        return cls(
            scheme=scheme,
            netloc=parts.netloc,
            path=unquote(parts.path),
            username=user,
            password=None if parts.password is None else unquote(parts.password),
            pool=_number(options, "pool", 10, most=_LARGEST_POOL),
            timeout=float(_number(options, "timeout", 5, most=600)),
            strict=_truth(options, "strict"),
            options=options,
        )

    def client(self) -> Redis | RedisCluster:
        """Return a client that has not connected yet."""
        settings: dict[str, Any] = {
            "username": self.username,
            "password": self.password,
            "socket_timeout": self.timeout,
            "socket_connect_timeout": self.timeout,
            "socket_keepalive": True,
            "health_check_interval": 30,
            # With a later one, redis-py takes what a closed connection says for news, and calls by it all the same.
            "protocol": 2,
            # Whether a call can be made twice is for the store to tell.
            "retry": Retry(NoBackoff(), 0),
            **{name: value for name, value in self.options.items() if name.startswith("ssl_")},
        }
        kind, _, watched = self.scheme.partition("+")
        if kind == "rediss":
            settings["ssl"] = True
        if watched == "sentinel":
            return self._watched(settings)
        if watched == "cluster":
            host, port = _hosts(self.netloc, _PORT)[0]
            return RedisCluster(host=host, port=port, max_connections=self.pool, **settings)
        return self._single(kind, settings)

    def _single(self, kind: str, settings: dict[str, Any]) -> Redis:
        if kind == "unix":
            url = f"unix://{self.path}?db={self.options.get('db', 0)}"
            settings.pop("socket_keepalive")
        else:
            settings.pop("ssl", None)
            url = f"{kind}://{self.netloc.rpartition('@')[2]}{self.path}"
        pools: Any = BlockingConnectionPool
        pool = pools.from_url(url, max_connections=self.pool + _BESIDE, **settings)
        return Redis.from_pool(pool)

    def _watched(self, settings: dict[str, Any]) -> Redis:
        service, _, database = self.path.lstrip("/").partition("/")
        sentinel: Any = Sentinel(_hosts(self.netloc, _SENTINEL_PORT), socket_timeout=self.timeout)
        master: Redis = sentinel.master_for(service, db=int(database or 0), **settings)
        return master


async def close(client: Redis | RedisCluster) -> None:
    """Let go of all connections, those to Sentinels included."""
    watching = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for sentinel in () if watching is None else watching.sentinels:
        await sentinel.aclose()
    await client.aclose()


def _hosts(netloc: str, port: int) -> list[tuple[str, int]]:
    named = [host.partition(":") for host in netloc.rpartition("@")[2].split(",")]
    return [(host or "localhost", int(given or port)) for host, _, given in named]


def _number(options: dict[str, Any], name: str, default: int, *, most: int) -> int:
    given = str(options.pop(name, default))
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise ConfigError(f"{name} must be a number from 1 to {most}, not {given!r}")
    return int(given)


def _truth(options: dict[str, Any], name: str) -> bool:
    given = options.pop(name, "false").lower()
    if given not in {"true", "false"}:
        raise ConfigError(f"{name} must be true or false, not {given!r}")
    return bool(given == "true")
