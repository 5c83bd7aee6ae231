"""The store on Redis: each verb one call of a function, which runs alone in the server."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Final, Self

from duetime.errors import SchemaMismatch, StoreError, StoreUnusable
from duetime.model.clock import Clock
from duetime.model.ids import new_token
from duetime.model.instants import Instant, Micros
from duetime.model.worker import WorkerInfo
from duetime.stores.base import Capabilities, Check, Hint, SchemaStatus
from duetime.stores.redis.calls import Calls
from duetime.stores.redis.checks import look, look_closely
from duetime.stores.redis.claiming import Claiming
from duetime.stores.redis.commanding import Commanding
from duetime.stores.redis.connect import Address
from duetime.stores.redis.limiting import Limiting, Round, Walk
from duetime.stores.redis.listen import Listener
from duetime.stores.redis.moving import Moving
from duetime.stores.redis.queueing import Queueing
from duetime.stores.redis.reading import Reading
from duetime.stores.redis.retaining import Retaining
from duetime.stores.redis.rows import FACTS
from duetime.stores.redis.scheduling import Scheduling
from duetime.stores.redis.settling import Settling
from duetime.stores.redis.working import Working

log = logging.getLogger("duetime.store")

VERSION: Final = 1
"""The version of what is stored; raised when older code could not read it."""


class RedisStore(
    Scheduling, Claiming, Settling, Working, Commanding, Queueing, Limiting, Reading, Retaining, Moving
):
    """A store on a Redis server, a group of them, or a cluster."""

    def __init__(
        self,
        address: Address,
        *,
        namespace: str,
        clock: Clock | None,
        url: str,
        auto_migrate: bool,
        calls: Calls | None = None,
    ) -> None:
        self._calls = calls or Calls(address, namespace=namespace, clock=clock)
        self._listener = Listener(self._calls)
        self._clock = clock
        self._namespace = namespace
        self._url = url
        self._auto_migrate = auto_migrate
        self._walks: defaultdict[Round, Walk] = defaultdict(Walk)
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
        for weak in [found for found in await look(self._calls) if not found.ok]:
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
        await self._calls.write("migrate", FACTS, {"version": VERSION, "store_id": new_token()})
        return await self.schema_status()

    async def schema_status(self) -> SchemaStatus:
        """Compare what is stored with what this code needs."""
        facts, _ = await self._calls.read("meta", FACTS)
        found = facts["version"]
        self.moved = facts.get("moved")
        pending = () if found >= VERSION else ("first",)
        return SchemaStatus(found=found, wanted=VERSION, pending=pending, moved=self.moved)

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
            facts, _ = await self._calls.read("meta", FACTS)
            self._identity = facts["store_id"] or None
        if self._identity is None:
            raise SchemaMismatch("nothing is stored in this namespace yet; run `duetime migrate`")
        return self._identity

    async def now(self) -> Instant:
        """Return the store's clock."""
        facts, _ = await self._calls.read("meta", FACTS)
        now: Instant = facts["now"]
        return now

    async def doctor(self) -> list[Check]:
        """Look for settings that weaken a promise."""
        status = await self.schema_status()
        fits = status.found == status.wanted
        schema = Check(
            name="schema",
            ok=fits,
            detail=f"what is stored has version {status.found}, this code needs {status.wanted}",
            fix=None if fits else f"duetime migrate --url {self._url}",
        )
        found = [schema, await self._rows(), *await look_closely(self._calls)]
        return [*found, await self._try_to_write()] if fits else found

    async def _rows(self) -> Check:
        """Tell of jobs that cannot be read, and how to see what is wrong with the first."""
        facts, _ = await self._calls.read("aside", FACTS)
        if not facts["count"]:
            return Check(name="rows", ok=True, detail="all can be read")
        tag, first = self._calls.tag, facts["first"]
        return Check(
            name="rows",
            ok=False,
            detail=f"{facts['count']} jobs cannot be read, because somebody has edited them",
            fix=f"look at them: ZRANGE {tag}:aside 0 -1, HGETALL {tag}:job:{first}; a minute after one is mended or "
            "deleted, workers see it",
        )

    async def _try_to_write(self) -> Check:
        """Tell whether a change can be made, by one that changes nothing."""
        try:
            await self.migrate()
        except StoreError as error:
            return Check.refused("writes", error)
        return Check(name="writes", ok=True, detail="the server takes changes")
