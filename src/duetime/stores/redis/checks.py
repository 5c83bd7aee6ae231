"""Settings of the server that weaken a promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redis.exceptions import ResponseError

from duetime.stores.base import Check
from duetime.stores.redis.calls import Calls

_OLDEST: Final = 7


async def look(calls: Calls) -> list[Check]:
    """Return one finding for each setting that counts."""
    server = await calls.info("server")
    memory = await calls.info("memory")
    replication = await calls.info("replication")
    settings = await _settings(calls)
    return [_version(server), _persistence(settings), _eviction(memory, settings), _role(replication)]


async def _settings(calls: Calls) -> Mapping[str, str]:
    """Read what `CONFIG` tells, which many providers do not allow."""
    try:
        return await calls.config("appendonly", "save", "maxmemory-policy")
    except ResponseError:
        return {}


def _version(server: Mapping[str, object]) -> Check:
    version = str(server.get("redis_version", "0"))
    ok = int(version.partition(".")[0]) >= _OLDEST
    fix = None if ok else f"upgrade to Redis {_OLDEST} or later"
    return Check(name="version", ok=ok, detail=f"the server is Redis {version}", fix=fix)


def _persistence(settings: Mapping[str, str]) -> Check:
    if "appendonly" not in settings:
        return Check(name="persistence", ok=True, detail="the server does not tell how it keeps its data")
    if settings["appendonly"] == "yes":
        return Check(name="persistence", ok=True, detail="every change is written to the append-only file")
    saves = settings.get("save")
    detail = f"only snapshots are kept ({saves})" if saves else "nothing is kept on disk"
    return Check(
        name="persistence",
        ok=False,
        detail=f"{detail}: a restart of the server loses jobs",
        fix="redis-cli CONFIG SET appendonly yes, and the same in redis.conf",
    )


def _eviction(memory: Mapping[str, object], settings: Mapping[str, str]) -> Check:
    policy = str(memory.get("maxmemory_policy") or settings.get("maxmemory-policy") or "noeviction")
    ok = policy == "noeviction"
    detail = f"maxmemory-policy is {policy}" + ("" if ok else ": when memory is full, the server drops jobs")
    fix = None if ok else "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
    return Check(name="eviction", ok=ok, detail=detail, fix=fix)


def _role(replication: Mapping[str, object]) -> Check:
    role = str(replication.get("role", "master"))
    ok = role == "master"
    detail = "the server is a primary" if ok else "the server is a replica, which takes no changes"
    return Check(name="role", ok=ok, detail=detail, fix=None if ok else "point the URL at the primary")
