"""Locks that people take."""

from __future__ import annotations

from duetime.model.locks import Attempt
from duetime.model.text import clean_text
from duetime.model.time import Micros
from duetime.stores.base import Hint, StoredLock
from duetime.stores.redis.connection import RedisStorePart


class RedisLocks(RedisStorePart):
    """A part of `RedisStore`."""

    async def make_locks(self) -> None:
        """Nothing has to be there before the first lock."""

    async def take_lock(
        self, name: str, *, token: str, holder: str, ttl: Micros, instead_of: str | None = None
    ) -> Attempt:
        """Take a lock that is free or past its deadline, or that `instead_of` owns."""
        request = {
            "name": name,
            "token": token,
            "holder": clean_text(holder),
            "ttl": ttl,
            "instead_of": instead_of,
        }
        facts, _ = await self._calls.write("take_lock", request)
        return Attempt(facts.get("fence"), facts["left"])

    async def renew_lock(self, name: str, *, token: str, ttl: Micros) -> bool:
        """Put the deadline off."""
        facts, _ = await self._calls.write("renew_lock", {"name": name, "token": token, "ttl": ttl})
        return bool(facts.get("done"))

    async def release_lock(self, name: str, *, token: str) -> bool:
        """Give a lock back, and tell those who wait for it."""
        hints = [Hint("lock", name)]
        facts, _ = await self._calls.write("release_lock", {"name": name, "token": token}, hints=hints)
        return bool(facts.get("done"))

    async def locks(self, name: str | None = None) -> list[StoredLock]:
        """Return the locks that are held."""
        return [StoredLock(*row) for row in (await self._calls.read("locks", {"name": name})).rows]

    async def forget_locks(self) -> int:
        """Remove what no one holds."""
        facts, _ = await self._calls.write("forget_locks", {})
        return int(facts["count"])
