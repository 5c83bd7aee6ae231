"""What `doctor` looks at: settings and troubles of the server that weaken a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from redis.exceptions import NoPermissionError

from duetime.stores.base import DoctorCheck
from duetime.stores.base.encryption import examine_tls
from duetime.stores.redis.connection import FunctionCalls
from duetime.stores.redis.errors import translate

ServerInfo: TypeAlias = Mapping[str, Any]

_OLDEST_VERSION: Final = 7


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
    client: Any = calls.client
    channel = f"{calls.tag}:hints"
    try:
        # To a worker that there is not.
        await client.publish(channel, "* worker -")
    except NoPermissionError:
        return DoctorCheck(
            name="hints",
            ok=False,
            detail="the user has no right to the channel for hints: workers look for jobs at intervals instead",
            fix=f"redis-cli ACL SETUSER {calls.address.username or 'default'} '&{channel}'",
        )
    except Exception as error:
        raise translate(error, str(calls.address)) from error
    return DoctorCheck(name="hints", ok=True, detail="workers tell each other of new jobs")
