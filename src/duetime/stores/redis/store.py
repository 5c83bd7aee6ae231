"""The store on Redis: each verb is one call of a function, which runs alone in the server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Self, TypeAlias

from redis.exceptions import NoPermissionError

from duetime.errors import SchemaMismatch, StoreError, StoreUnusable
from duetime.model.ids import new_token
from duetime.model.time import Clock, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.stores.base import Capabilities, DoctorCheck, Hint, SchemaStatus
from duetime.stores.base.encryption import examine_tls
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import FunctionCalls
from duetime.stores.redis.control import RedisControl
from duetime.stores.redis.copying import RedisCopying
from duetime.stores.redis.hints import RedisHintListener
from duetime.stores.redis.limits import RedisLimits
from duetime.stores.redis.reads import RedisReads
from duetime.stores.redis.runs import RedisRuns
from duetime.stores.redis.schedules import RedisSchedules
from duetime.stores.redis.workers import RedisWorkers

log = logging.getLogger("duetime.store")

STORED_VERSION: Final = 1
"""The version of what is stored; raised when older code could not read it."""
ServerInfo: TypeAlias = Mapping[str, Any]
_OLDEST_VERSION: Final = 7


class RedisStore(
    RedisSchedules,
    RedisRuns,
    RedisWorkers,
    RedisControl,
    RedisLimits,
    RedisReads,
    RedisCopying,
):
    """A store on a Redis server, a group of them, or a cluster."""

    def __init__(
        self,
        address: RedisAddress,
        *,
        namespace: str,
        clock: Clock | None,
        url: str,
        auto_migrate: bool,
        calls: FunctionCalls | None = None,
    ) -> None:
        self._calls = calls or FunctionCalls(address, namespace=namespace, clock=clock)
        self._listener = RedisHintListener(self._calls)
        self._clock = clock
        self._namespace = namespace
        self._url = url
        self._auto_migrate = auto_migrate
        self._identity: str | None = None
        self.moved: str | None = None

    async def open(self, *, check: bool = True) -> None:
        """Connect, check the server, and claim the namespace or check that it is ours."""
        await self._calls.open()
        if not check:
            return
        try:
            await self._check()
        except BaseException:
            await self._calls.close()
            raise

    async def _check(self) -> None:
        status = await self.schema_status()
        if status.found < status.wanted and self._auto_migrate:
            status = await self.migrate()
        if status.found != status.wanted:
            older = status.found < status.wanted
            remedy = f"run `duetime migrate --url {self._url}`" if older else "use a newer version of duetime"
            raise SchemaMismatch(
                f"what is stored under {self._namespace!r} has version {status.found}, and this code needs "
                f"{status.wanted}; {remedy}"
            )
        for weak in [found for found in await check_settings(self._calls) if not found.ok]:
            text = f"{self._calls.address}: {weak.detail}; {weak.fix}"
            if self._calls.address.strict:
                raise StoreUnusable(text)
            log.warning("%s", text)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._listener.close()
        await self._calls.close()

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker, also where everything is gone: then say so, and begin anew."""
        now = await super().register(worker, lease=lease)
        if not (await self.schema_status()).found:
            log.error(
                "%s was emptied: all that was stored under %r is lost; what comes now is kept again",
                self._calls.address,
                self._namespace,
            )
            await self.migrate()
        return now

    async def migrate(self) -> SchemaStatus:
        """Note in the namespace that it is ours; there are no tables to make."""
        await self._calls.write("migrate", {"version": STORED_VERSION, "store_id": new_token()})
        return await self.schema_status()

    async def schema_status(self) -> SchemaStatus:
        """Compare what is stored with what this code needs."""
        facts, _ = await self._calls.read("meta")
        found = facts["version"]
        self.moved = facts.get("moved")
        pending = () if found >= STORED_VERSION else ("first",)
        return SchemaStatus(found=found, wanted=STORED_VERSION, pending=pending, moved=self.moved)

    async def pending_sql(self) -> str:
        """Return nothing: there is no SQL here."""
        return ""

    def sibling(self) -> Self:
        """Return a store for another thread's event loop."""
        return type(self)(
            self._calls.address,
            namespace=self._namespace,
            clock=self._clock,
            url=self._url,
            auto_migrate=False,
            calls=self._calls.sibling(),
        )

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled."""
        return self._listener.hints()

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present."""
        return self._listener.up

    @property
    def capabilities(self) -> Capabilities:
        """Redis has no transactions that span several calls."""
        return Capabilities(transactions=False)

    @property
    def single_writer(self) -> bool:
        """No transaction is ever open."""
        return False

    async def identity(self) -> str:
        """Return what tells this store from every other; asked once."""
        if self._identity is None:
            facts, _ = await self._calls.read("meta")
            self._identity = facts["store_id"] or None
        if self._identity is None:
            raise SchemaMismatch("nothing is stored in this namespace yet; run `duetime migrate`")
        return self._identity

    async def now(self) -> Instant:
        """Return the store's clock."""
        facts, _ = await self._calls.read("meta")
        now: Instant = facts["now"]
        return now

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise."""
        status = await self.schema_status()
        fits = status.found == status.wanted
        schema = DoctorCheck(
            name="schema",
            ok=fits,
            detail=f"what is stored has version {status.found}, this code needs {status.wanted}",
            fix=None if fits else f"duetime migrate --url {self._url}",
        )
        found = [schema, await self._rows(), *await check_all(self._calls)]
        return [*found, await self._try_to_write()] if fits else found

    async def _rows(self) -> DoctorCheck:
        """Tell of jobs that cannot be read, and how to see what is wrong with the first."""
        facts, _ = await self._calls.read("aside")
        if not facts["count"]:
            return DoctorCheck(name="rows", ok=True, detail="all can be read")
        tag, first = self._calls.key_prefix, facts["first"]
        return DoctorCheck(
            name="rows",
            ok=False,
            detail=f"{facts['count']} jobs cannot be read, because somebody has edited them",
            fix=f"look at them: ZRANGE {tag}:aside 0 -1, HGETALL {tag}:job:{first}; a minute after one is mended or "
            "deleted, workers see it",
        )

    async def _try_to_write(self) -> DoctorCheck:
        """Tell whether a change can be made, by one that changes nothing."""
        try:
            await self.migrate()
        except StoreError as error:
            return DoctorCheck.refused("writes", error)
        return DoctorCheck(name="writes", ok=True, detail="the server takes changes")


async def check_settings(calls: FunctionCalls) -> list[DoctorCheck]:
    """Return one finding for each setting that counts."""
    return [
        *_first_failed(await calls.servers(), _version, _persistence, _eviction, _role),
        await _hint_channel(calls),
    ]


async def check_all(calls: FunctionCalls) -> list[DoctorCheck]:
    """Return the same with what may be in a bad way at present."""
    tls = examine_tls(
        await calls.transport(),
        encrypt="set tls-port on the server, and begin the URL with rediss",
        verify="leave ssl_cert_reqs out of the URL, and name who signed the certificate: ?ssl_ca_certs=ca.pem",
    )
    return [*await check_settings(calls), *_first_failed(await calls.servers(), _disk, _memory), tls]


def _first_failed(
    servers: Mapping[str, ServerInfo], *examinations: Callable[[ServerInfo], DoctorCheck]
) -> list[DoctorCheck]:
    """Examine all servers; for each examination tell of the first where something is wrong."""
    return [
        next((check for check in found if not check.ok), found[0])
        for examine in examinations
        if (found := [_with_server(server, examine(info)) for server, info in servers.items()])
    ]


def _with_server(server: str, check: DoctorCheck) -> DoctorCheck:
    return replace(check, detail=f"{server}: {check.detail}") if server else check


def _version(info: ServerInfo) -> DoctorCheck:
    if "redis_version" not in info:
        return DoctorCheck(name="version", ok=True, detail="the server does not tell its version")
    version = str(info["redis_version"])
    ok = int(version.partition(".")[0]) >= _OLDEST_VERSION
    fix = None if ok else f"upgrade to Redis {_OLDEST_VERSION} or later"
    return DoctorCheck(name="version", ok=ok, detail=f"the server is Redis {version}", fix=fix)


def _persistence(info: ServerInfo) -> DoctorCheck:
    if "aof_enabled" not in info:
        return DoctorCheck(
            name="persistence", ok=True, detail="the server does not tell how it keeps its data"
        )
    if not info["aof_enabled"]:
        return DoctorCheck(
            name="persistence",
            ok=False,
            detail="no append-only file is kept: a restart of the server loses jobs",
            fix="redis-cli CONFIG SET appendonly yes, and the same in redis.conf",
        )
    if info.get("appendfsync") == "no":
        return DoctorCheck(
            name="persistence",
            ok=False,
            detail="appendfsync is no: if its machine fails, the server loses half a minute",
            fix="redis-cli CONFIG SET appendfsync everysec, and the same in redis.conf",
        )
    return DoctorCheck(name="persistence", ok=True, detail="every change is written to the append-only file")


def _disk(info: ServerInfo) -> DoctorCheck:
    troubles = [
        what
        for what, status in (
            ("the append-only file", "aof_last_write_status"),
            ("a snapshot", "rdb_last_bgsave_status"),
        )
        if info.get(status, "ok") != "ok"
    ]
    if not troubles:
        return DoctorCheck(name="disk", ok=True, detail="the server can write to its disk")
    return DoctorCheck(
        name="disk",
        ok=False,
        detail=f"the server could not write {' and '.join(troubles)}: until it can, it may refuse changes",
        fix="make room on its disk and look into its log; it goes on by itself",
    )


def _eviction(info: ServerInfo) -> DoctorCheck:
    if "maxmemory_policy" not in info:
        return DoctorCheck(name="eviction", ok=True, detail="the server does not tell its maxmemory-policy")
    policy = str(info["maxmemory_policy"])
    ok = policy == "noeviction"
    detail = f"maxmemory-policy is {policy}" + ("" if ok else ": when memory is full, the server drops jobs")
    fix = None if ok else "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
    return DoctorCheck(name="eviction", ok=ok, detail=detail, fix=fix)


def _memory(info: ServerInfo) -> DoctorCheck:
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not most or used < most:
        bound = f"of {most:,} bytes" if most else "and has no bound"
        return DoctorCheck(name="memory", ok=True, detail=f"the data takes {used:,} {bound}")
    return DoctorCheck(
        name="memory",
        ok=False,
        detail=f"the data takes {used:,} bytes, and maxmemory is {most:,}: new jobs are refused",
        fix="raise maxmemory, keep less (`retention`), or purge what has ended",
    )


def _role(info: ServerInfo) -> DoctorCheck:
    ok = info.get("role", "master") == "master"
    detail = "the server is a primary" if ok else "the server is a replica, which takes no changes"
    return DoctorCheck(name="role", ok=ok, detail=detail, fix=None if ok else "point the URL at the primary")


async def _hint_channel(calls: FunctionCalls) -> DoctorCheck:
    channel = f"{calls.key_prefix}:hints"
    try:
        with calls.translated():
            # To a worker that does not exist.
            await calls.client.publish(channel, "* worker -")
    except StoreUnusable as error:
        if not isinstance(error.__cause__, NoPermissionError):
            raise
        return DoctorCheck(
            name="hints",
            ok=False,
            detail="the user has no right to the channel for hints: workers look for jobs at intervals instead",
            fix=f"redis-cli ACL SETUSER {calls.address.username or 'default'} '&{channel}'",
        )
    return DoctorCheck(name="hints", ok=True, detail="workers tell each other of new jobs")
