"""The store on Redis: each verb is one call of a function, which runs alone in the server."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeAlias

from redis.exceptions import NoPermissionError

from duetime.errors import SchemaMismatch, StoreError, StoreUnusable
from duetime.model.ids import new_token
from duetime.model.text import counted
from duetime.model.time import Clock, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.stores.base import Capabilities, DoctorCheck, Hint, SchemaStatus
from duetime.stores.base.encryption import examine_tls
from duetime.stores.redis.access import RedisAccess
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.connection import FunctionCalls
from duetime.stores.redis.control import RedisControl
from duetime.stores.redis.copying import RedisCopying
from duetime.stores.redis.hints import RedisHintListener
from duetime.stores.redis.locks import RedisLocks
from duetime.stores.redis.reads import RedisReads
from duetime.stores.redis.runs import RedisRuns
from duetime.stores.redis.schedules import RedisSchedules
from duetime.stores.redis.statistics import RedisStatistics
from duetime.stores.redis.watching import RedisWatching
from duetime.stores.redis.workers import RedisWorkers

log = logging.getLogger("duetime.store")

STORED_VERSION: Final = 1
"""The version of what is stored; raised when older code could not read it."""
ServerInfo: TypeAlias = Mapping[str, Any]
_OLDEST_VERSION: Final = 7
_KEYS_PER_CALL: Final = 1_000
"""How many keys of the server one call looks at, and removes at most, or little more."""


class RedisStore(
    RedisSchedules,
    RedisRuns,
    RedisWorkers,
    RedisWatching,
    RedisControl,
    RedisReads,
    RedisCopying,
    RedisLocks,
    RedisAccess,
    RedisStatistics,
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
        self._persistent = False
        """Whether the server keeps an append-only file, as far as it has told."""
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
            found = f"what is stored under {self._namespace!r} has version {status.found}"
            raise SchemaMismatch(f"{found}, and this code needs {status.wanted}; {remedy}")
        settings = await self._check_settings()
        self._persistent = all(found.ok for found in settings if found.name == "persistence")
        for weak in [found for found in settings if not found.ok]:
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

    async def uninstall(self, *, dry_run: bool = False) -> Mapping[str, int]:
        """Remove all keys of the namespace, the one with the version last, and return how many there were of each kind."""
        version, keys = f"{self._calls.key_prefix}:meta", Counter[str]()
        async for facts, _ in self._walk("key_names", {"after": "0", "most": _KEYS_PER_CALL}):
            names: list[str] = facts["names"] or []
            keys.update(_kind_of_key(name) for name in names)
            if not dry_run:
                await self._calls.write("drop_keys", {"names": [name for name in names if name != version]})
        if not dry_run:
            await self._calls.write("drop_keys", {"names": [version]})
        return keys

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
        address, calls, clock = self._calls.address, self._calls.sibling(), self._clock
        common = {"namespace": self._namespace, "url": self._url}
        return type(self)(address, clock=clock, auto_migrate=False, calls=calls, **common)

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
        return Capabilities(transactions=False, loans=False, persistent=self._persistent)

    @property
    def parts(self) -> Sequence[Self]:
        """Itself."""
        return (self,)

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
        return (await self._calls.read("meta")).now

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise, and whether changes can be made."""
        status = await self.schema_status()
        fits = status.found == status.wanted
        versions = f"what is stored has version {status.found}, this code needs {status.wanted}"
        servers = (await self._calls.servers()).items()
        encrypt = "set tls-port on the server, and begin the URL with rediss"
        verify = "leave ssl_cert_reqs out of the URL, and name who signed it: ?ssl_ca_certs=ca.pem"
        tls = examine_tls(await self._calls.transport(), encrypt=encrypt, verify=verify)
        filled = [_named(server, (_check_disk(info), _check_memory(info))) for server, info in servers]
        found = [
            DoctorCheck.of("schema", fits, versions, f"duetime migrate --url {self._url}"),
            await self._check_rows(),
            *await self._check_settings(),
            *_first_wrong(filled),
            tls,
        ]
        return [*found, await self._check_writes()] if fits else found

    async def _check_settings(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise, whatever the server does at present."""
        servers = (await self._calls.servers()).items()
        found = [_named(server, _check_server_settings(info)) for server, info in servers]
        return [*_first_wrong(found), await self._check_hints()]

    async def _check_hints(self) -> DoctorCheck:
        channel, user = f"{self._calls.key_prefix}:hints", self._calls.address.username or "default"
        try:
            with self._calls.translation:
                # To a worker that does not exist.
                await self._calls.client.publish(channel, "* worker -")
        except StoreUnusable as error:
            if not isinstance(error.__cause__, NoPermissionError):
                raise
            detail = "the user has no right to the channel for hints: workers look at intervals instead"
            fix = f"redis-cli ACL SETUSER {user} '&{channel}'"
            return DoctorCheck.of("hints", ok=False, detail=detail, fix=fix)
        return DoctorCheck.of("hints", ok=True, detail="workers tell each other of new jobs")

    async def _check_rows(self) -> DoctorCheck:
        """Look for jobs that cannot be read, and tell how to see what is wrong with the first."""
        facts, _ = await self._calls.read("aside")
        if not facts["count"]:
            return DoctorCheck.of("rows", ok=True, detail="all can be read")
        keys, first = self._calls.key_prefix, facts["first"]
        look = f"look at them: ZRANGE {keys}:aside 0 -1, HGETALL {keys}:job:{first}"
        fix = f"{look}; a minute after one is mended or deleted, workers see it"
        detail = f"{counted(facts['count'], 'job')} cannot be read, because of an edit by hand"
        return DoctorCheck.of("rows", ok=False, detail=detail, fix=fix)

    async def _check_writes(self) -> DoctorCheck:
        """Tell whether a change can be made, by one that changes nothing."""
        try:
            await self.migrate()
        except StoreError as error:
            return DoctorCheck.refused("writes", error)
        return DoctorCheck.of("writes", ok=True, detail="the server takes changes")


def _kind_of_key(name: str) -> str:
    """Return a key with what tells it from others of its kind left out: `{duetime}:job:*`."""
    prefix, kind, *more = name.split(":", 2)
    return f"{prefix}:{kind}:*" if more else name


def _named(server: str, checks: Iterable[DoctorCheck]) -> list[DoctorCheck]:
    return [replace(check, detail=f"{server}: {check.detail}") if server else check for check in checks]


def _first_wrong(found: Iterable[Iterable[DoctorCheck]]) -> list[DoctorCheck]:
    """Return each check once, for the first server where something is wrong, if there is one."""
    return [next((one for one in same if not one.ok), same[0]) for same in zip(*found, strict=True)]


def _check_server_settings(info: ServerInfo) -> list[DoctorCheck]:
    version = str(info.get("redis_version", ""))
    recent = not version or int(version.partition(".")[0]) >= _OLDEST_VERSION
    says = f"the server is Redis {version}" if version else "the server does not tell its version"
    policy = str(info.get("maxmemory_policy", ""))
    keeps = policy in {"", "noeviction"}
    evicts = f"maxmemory-policy is {policy}" if policy else "the server does not tell its maxmemory-policy"
    evicts += "" if keeps else ": when memory is full, the server drops jobs"
    no_eviction = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
    primary = info.get("role", "master") == "master"
    role = "the server is a primary" if primary else "the server is a replica, which takes no changes"
    return [
        DoctorCheck.of("version", recent, says, f"upgrade to Redis {_OLDEST_VERSION} or later"),
        _check_persistence(info),
        DoctorCheck.of("eviction", keeps, evicts, no_eviction),
        DoctorCheck.of("role", primary, role, "point the URL at the primary"),
    ]


def _check_persistence(info: ServerInfo) -> DoctorCheck:
    detail, setting = "every change is written to the append-only file", None
    if "aof_enabled" not in info:
        detail = "the server does not tell how it keeps its data"
    elif not info["aof_enabled"]:
        detail, setting = "no append-only file is kept: a restart of the server loses jobs", "appendonly yes"
    elif info.get("appendfsync") == "no":
        detail = "appendfsync is no: if its machine fails, the server loses half a minute"
        setting = "appendfsync everysec"
    fix = f"redis-cli CONFIG SET {setting}, and the same in redis.conf"
    return DoctorCheck.of("persistence", setting is None, detail, fix)


def _check_disk(info: ServerInfo) -> DoctorCheck:
    writes = {"aof_last_write_status": "the append-only file", "rdb_last_bgsave_status": "a snapshot"}
    failed = [what for status, what in writes.items() if info.get(status, "ok") != "ok"]
    detail = f"the server could not write {' and '.join(failed)}: until it can, it may refuse changes"
    fix = "make room on its disk and look into its log; it goes on by itself"
    return DoctorCheck.of("disk", not failed, detail if failed else "the server can write to its disk", fix)


def _check_memory(info: ServerInfo) -> DoctorCheck:
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not most or used < most:
        bound = f"of {most:,} bytes" if most else "and has no bound"
        return DoctorCheck.of("memory", ok=True, detail=f"the data takes {used:,} {bound}")
    detail = f"the data takes {used:,} bytes, and maxmemory is {most:,}: new jobs are refused"
    fix = "raise maxmemory, keep less (`retention`), or purge what has ended"
    return DoctorCheck.of("memory", ok=False, detail=detail, fix=fix)
