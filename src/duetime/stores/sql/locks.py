"""Locks that people take, in a table of their own."""

from __future__ import annotations

from duetime.model.text import clean_text
from duetime.model.time import Micros
from duetime.stores.base import Hint, LockAnswer, StoredLock
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write


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

    @write(atomic=False)
    def take_lock(
        self, name: str, *, token: str, holder: str, ttl: Micros, instead_of: str | None = None
    ) -> Script[LockAnswer]:
        """Take a lock in one conditional statement."""
        values: dict[str, object] = {"name": name, "token": token, "holder": clean_text(holder), "ttl": ttl}
        values["instead_of"] = instead_of or ""
        taken = yield Query(self._sql.take_lock, values)
        if taken and (fence := taken[0][-1]):
            return LockAnswer(fence, ttl)
        found = yield Query(self._sql.locks, {"name": name})
        return LockAnswer(None, found[0][-1] if found else 0)

    @write(atomic=False)
    def renew_lock(self, name: str, *, token: str, ttl: Micros) -> Script[bool]:
        """Put the deadline off."""
        renewed = yield Query(self._sql.renew_lock, {"name": name, "token": token, "ttl": ttl})
        return bool(renewed and renewed[0][0])

    @write(atomic=False)
    def release_lock(self, name: str, *, token: str) -> HintingScript[bool]:
        """Give a lock back, and tell those who wait for it."""
        released = yield Query(self._sql.release_lock, {"name": name, "token": token})
        done = bool(released and released[0][0])
        if done:
            yield Hint("lock", name)
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
