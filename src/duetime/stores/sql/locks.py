"""Locks that people take, in a table of their own."""

from __future__ import annotations

from duetime.model.locks import Attempt
from duetime.model.text import clean_text
from duetime.model.time import Micros
from duetime.stores.base import Hint, StoredLock
from duetime.stores.sql.driver import Params, Query, Row, Script, SingleQueryScript, Statement
from duetime.stores.sql.verbs import SqlSubject, read, write


class SqlLocks(SqlSubject):
    """Locks that people take."""

    async def make_locks(self) -> None:
        """Make the table unless it is there; nothing else is needed for locks."""
        if not await self._has_locks():
            await self._make_locks()

    @read()
    def _has_locks(self) -> Script[bool]:
        [(tables,)] = yield Query(self._sql.has_locks, {})
        return bool(tables)

    @write()
    def _make_locks(self) -> Script[None]:
        yield Query(self._sql.migration_lock, {})
        yield Query(self._sql.make_locks, {})

    async def take_lock(
        self, name: str, *, token: str, holder: str, ttl: Micros, instead_of: str | None = None
    ) -> Attempt:
        """Take a lock in one conditional statement."""
        values = {"name": name, "token": token, "holder": clean_text(holder), "ttl": ttl}
        taken = await self._ask(self._sql.take_lock, {**values, "instead_of": instead_of or ""})
        if taken and (fence := taken[0][-1]):
            return Attempt(fence, ttl)
        found = await self.locks(name)
        return Attempt(None, found[0].left if found else 0)

    async def renew_lock(self, name: str, *, token: str, ttl: Micros) -> bool:
        """Put the deadline off."""
        renewed = await self._ask(self._sql.renew_lock, {"name": name, "token": token, "ttl": ttl})
        return bool(renewed and renewed[0][0])

    async def release_lock(self, name: str, *, token: str) -> bool:
        """Give a lock back, and tell those who wait for it."""
        released = await self._ask(self._sql.release_lock, {"name": name, "token": token})
        done = bool(released and released[0][0])
        if done:
            self._driver.hint(Hint("lock", name))
        return done

    @read()
    def locks(self, name: str | None = None) -> Script[list[StoredLock]]:
        """Return the locks that are held."""
        found = yield Query(self._sql.locks, {"name": name})
        return [StoredLock(*row) for row in found]

    @write(atomic=False, rows=None)
    def forget_locks(self) -> Script[int]:
        """Remove what no one holds."""
        gone = yield Query(self._sql.forget_locks, {})
        return gone[0][0] if gone and isinstance(gone[0][0], int) else len(gone)

    async def _ask(self, statement: Statement, values: Params) -> list[Row]:
        """Run one statement by itself."""
        query = Query(statement, values)
        return await self._driver.write(SingleQueryScript(statement.name, query, list), atomic=False)
