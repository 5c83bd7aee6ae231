"""The one store for all SQL databases: each verb is a script, run by the database's driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Self

from duetime.model.time import Clock
from duetime.stores.base import Capabilities, DoctorCheck, Hint, SchemaStatus
from duetime.stores.sql import checks
from duetime.stores.sql.access import SqlAccess
from duetime.stores.sql.claims import SqlClaims
from duetime.stores.sql.copying import SqlCopying
from duetime.stores.sql.driver import Driver
from duetime.stores.sql.enqueue import SqlEnqueue
from duetime.stores.sql.job_control import SqlJobControl
from duetime.stores.sql.limits import SqlLimits
from duetime.stores.sql.locks import SqlLocks
from duetime.stores.sql.queues import SqlQueues
from duetime.stores.sql.records import SqlRecords
from duetime.stores.sql.retention import SqlRetention
from duetime.stores.sql.schedules import SqlSchedules
from duetime.stores.sql.schema import (
    check_version,
    migrate,
    migrations,
    pending_sql,
    read_status,
    uninstall,
)
from duetime.stores.sql.settling import SqlSettling
from duetime.stores.sql.statements.loader import Dialect
from duetime.stores.sql.statistics import SqlStatistics
from duetime.stores.sql.watching import SqlWatching
from duetime.stores.sql.workers import SqlWorkers


class SqlStore(
    SqlEnqueue,
    SqlClaims,
    SqlLimits,
    SqlSettling,
    SqlWorkers,
    SqlWatching,
    SqlSchedules,
    SqlJobControl,
    SqlQueues,
    SqlRecords,
    SqlRetention,
    SqlCopying,
    SqlLocks,
    SqlAccess,
    SqlStatistics,
):
    """A store on a SQL database, through its driver and its dialect; the verbs are in the classes of their subjects."""

    def __init__(
        self,
        driver: Driver,
        dialect: Dialect,
        *,
        namespace: str,
        clock: Clock | None = None,
        url: str,
        auto_migrate: bool,
    ) -> None:
        """`clock`: the store's, where the database has none of its own."""
        super().__init__(driver, dialect, namespace=namespace, clock=clock)
        self._url = url
        self._auto_migrate = auto_migrate
        self._steps = migrations(dialect, namespace)

    async def open(self, *, check: bool = True) -> None:
        """Connect, and bring the tables to this version or check that they are."""
        await self._driver.open()
        if not check:
            return
        try:
            status = await self.schema_status()
            if status.found < status.wanted and self._auto_migrate:
                status = await self.migrate()
            check_version(status, url=self._url)
        except BaseException:
            await self._driver.close()
            raise

    async def close(self) -> None:
        """Let go of every connection and thread."""
        await self._driver.close()

    async def migrate(self) -> SchemaStatus:
        """Apply what is missing."""
        return await self._driver.write(lambda: migrate(self._sql, self._steps), rows=None)

    async def uninstall(self, *, dry_run: bool = False) -> Mapping[str, int]:
        """Drop all tables, and return how many rows each had."""
        run = self._driver.read if dry_run else self._driver.write
        return await run(lambda: uninstall(self._sql, dry_run=dry_run), rows=None)

    async def schema_status(self) -> SchemaStatus:
        """Compare the tables with what this code needs."""
        status = await self._driver.read(lambda: read_status(self._sql, self._steps))
        self.moved = status.moved
        return status

    async def pending_sql(self) -> str:
        """Return the SQL that `migrate` would run."""
        return pending_sql(self._steps, (await self.schema_status()).found)

    def sibling(self) -> Self:
        """Return a store for another thread's event loop."""
        driver, common = self._driver.sibling(), {"namespace": self._namespace, "url": self._url}
        return type(self)(driver, self._dialect, **common, clock=self._clock, auto_migrate=False)

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled."""
        return self._driver.wakeups()

    @property
    def capabilities(self) -> Capabilities:
        """All that a store can have, but that a database in memory is gone with its process."""
        return Capabilities(persistent=self._driver.persistent)

    @property
    def parts(self) -> Sequence[Self]:
        """Itself."""
        return (self,)

    @property
    def single_writer(self) -> bool:
        """Whether no one else can write while a transaction is open."""
        return self._driver.single_writer

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present."""
        return self._driver.hears_others

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise, and whether changes can be made."""
        status = await self.schema_status()
        found = [checks.check_schema(status, url=self._url), *await self._driver.doctor()]
        if status.found == status.wanted:
            found.append(await checks.check_writes(self._driver, self._sql))
        return found
