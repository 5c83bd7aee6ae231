"""The store on Redis: each verb is one call of a function, which runs alone in the server."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Final, Self

from duetime.errors import SchemaMismatch, StoreError, StoreUnusable
from duetime.model.ids import new_token
from duetime.model.time import Clock, Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.stores.base import Capabilities, DoctorCheck, Hint, SchemaStatus
from duetime.stores.redis.address import RedisAddress
from duetime.stores.redis.checks import check_all, check_settings
from duetime.stores.redis.claims import RedisClaims
from duetime.stores.redis.connection import FunctionCalls
from duetime.stores.redis.copying import RedisCopying
from duetime.stores.redis.hints import RedisHintListener
from duetime.stores.redis.limits import GateWalk, GateWalkKey, RedisLimits
from duetime.stores.redis.queues import RedisQueues
from duetime.stores.redis.reads import RedisReads
from duetime.stores.redis.retention import RedisRetention
from duetime.stores.redis.rows import ANSWER_DECODER
from duetime.stores.redis.schedules import RedisSchedules
from duetime.stores.redis.settling import RedisSettling
from duetime.stores.redis.workers import RedisCommands, RedisWorkers

log = logging.getLogger("duetime.store")

STORED_VERSION: Final = 1
"""The version of what is stored; raised when older code could not read it."""


class RedisStore(
    RedisSchedules,
    RedisClaims,
    RedisSettling,
    RedisWorkers,
    RedisCommands,
    RedisQueues,
    RedisLimits,
    RedisReads,
    RedisRetention,
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
        self._walks: defaultdict[GateWalkKey, GateWalk] = defaultdict(GateWalk)
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
        await self._calls.write(
            "migrate", ANSWER_DECODER, {"version": STORED_VERSION, "store_id": new_token()}
        )
        return await self.schema_status()

    async def schema_status(self) -> SchemaStatus:
        """Compare what is stored with what this code needs."""
        facts, _ = await self._calls.read("meta", ANSWER_DECODER)
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
            facts, _ = await self._calls.read("meta", ANSWER_DECODER)
            self._identity = facts["store_id"] or None
        if self._identity is None:
            raise SchemaMismatch("nothing is stored in this namespace yet; run `duetime migrate`")
        return self._identity

    async def now(self) -> Instant:
        """Return the store's clock."""
        facts, _ = await self._calls.read("meta", ANSWER_DECODER)
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
        facts, _ = await self._calls.read("aside", ANSWER_DECODER)
        if not facts["count"]:
            return DoctorCheck(name="rows", ok=True, detail="all can be read")
        tag, first = self._calls.tag, facts["first"]
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
