"""Locks that are kept in a store: PostgreSQL, MariaDB, SQLite or Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from weakref import WeakKeyDictionary, WeakValueDictionary

from duetime.errors import StoreError
from duetime.locks.base import DEFAULT_TTL, DistributedLock, LockOwner
from duetime.model.locks import Attempt
from duetime.model.time import Duration, to_datetime
from duetime.stores.base import Store, StoredLock

_PAUSE_AFTER_FAILURE = 1.0
_PAUSE_AFTER_VAGUE_HINT = 0.02


class StoredLocks:
    """The locks of one store, which is opened once for each event loop that uses them."""

    def __init__(self, place: str, make_store: Callable[[], Store]) -> None:
        """`place` names the store, so that its locks can be told from those of another one."""
        self.place = place
        self._make_store = make_store
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[_OpenStore]] = (
            WeakKeyDictionary()
        )

    def lock(self, name: str, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None) -> StoreLock:
        """Return a lock of this store."""
        return StoreLock(name, self, ttl=ttl, timeout=timeout)

    async def list(self) -> list[LockOwner]:
        """Return who holds which lock."""
        return [lock_owner(found) for found in await (await self.reach()).store.locks()]

    async def release(self, name: str) -> bool:
        """Release a lock that another process holds, which loses it; False if no one does."""
        store = (await self.reach()).store
        return bool([await store.release_lock(name, token=found.token) for found in await store.locks(name)])

    async def cleanup(self) -> int:
        """Remove what is kept of locks that no one holds, and return how many that were."""
        return await (await self.reach()).store.forget_locks()

    async def reach(self) -> _OpenStore:
        """Return the store that is open in this event loop; it is closed with the loop."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            opened = self._opened[loop] = loop.create_task(_OpenStore.open(self._make_store()))
        if opened.done() and opened.exception() is None:
            return opened.result()
        try:
            return await asyncio.shield(opened)
        except BaseException:
            if opened.done() and self._opened.get(loop) is opened:
                del self._opened[loop]
            raise

    async def close(self) -> None:
        """Close the store, wherever it is open."""
        here = asyncio.get_running_loop()
        for loop, opened in list(self._opened.items()):
            del self._opened[loop]
            if loop is here:
                await _close(opened)
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_close(opened), loop))


async def _close(opened: asyncio.Task[_OpenStore]) -> None:
    await (await opened).close()


class _OpenStore:
    """A store that is open in one event loop, with those who wait there for a lock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._listener: asyncio.Task[None] | None = None
        self._releases: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """The next release of each lock that is waited for; who waits keeps it."""
        self._life = self._live()

    @classmethod
    async def open(cls, store: Store) -> _OpenStore:
        """Open a store for its locks alone, until the loop ends."""
        await store.open(check=False)
        try:
            await store.make_locks()
        except BaseException:
            await store.close()
            raise
        opened = cls(store)
        # Loops close the async generators that were begun in them when they end.
        await anext(opened._life)
        return opened

    async def close(self) -> None:
        await self._life.aclose()

    async def _live(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self._listener is not None:
                self._listener.cancel()
            await self.store.close()

    async def released(self, name: str, *, longest: float) -> None:
        """Wait until a lock was released, as far as the store tells, but no longer than this."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="duetime-locks-listen")
        release = self._releases.setdefault(name, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(longest):
                await release.wait()

    async def _listen(self) -> None:
        while True:
            # Without hints, the pauses between tries decide.
            with suppress(StoreError):
                async for hint in self.store.wakeups():
                    one = [hint.name] if hint.kind == "lock" else []
                    for name in list(self._releases) if hint.kind == "any" else one:
                        if (release := self._releases.pop(name, None)) is not None:
                            release.set()
                    if hint.kind == "any":
                        # There may be one with every commit.
                        await asyncio.sleep(_PAUSE_AFTER_VAGUE_HINT)
            await asyncio.sleep(_PAUSE_AFTER_FAILURE)


class StoreLock(DistributedLock):
    """A lock in a store; its time is the store's."""

    def __init__(
        self, name: str, locks: StoredLocks, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None
    ) -> None:
        super().__init__(name, ttl=ttl, timeout=timeout)
        self._locks = locks

    @property
    def place(self) -> str:
        """The store."""
        return self._locks.place

    async def try_take(self, *, token: str, holder: str, instead_of: str | None = None) -> Attempt:
        """Take it in one conditional statement."""
        store = (await self._locks.reach()).store
        return await store.take_lock(
            self.name, token=token, holder=holder, ttl=self.ttl, instead_of=instead_of
        )

    async def try_extend(self, *, token: str) -> bool:
        """Put the deadline off."""
        return await (await self._locks.reach()).store.renew_lock(self.name, token=token, ttl=self.ttl)

    async def try_release(self, *, token: str) -> bool:
        """Give it back, and hint those who wait."""
        return await (await self._locks.reach()).store.release_lock(self.name, token=token)

    async def owner(self) -> LockOwner | None:
        """Return who holds it."""
        found = await (await self._locks.reach()).store.locks(self.name)
        return lock_owner(found[0]) if found else None

    async def cleanup(self) -> int:
        """Remove what no one holds."""
        return await self._locks.cleanup()

    async def await_release(self, *, longest: float) -> None:
        """Wait for a hint."""
        await (await self._locks.reach()).released(self.name, longest=longest)


def lock_owner(found: StoredLock) -> LockOwner:
    """Return who holds a lock, for people."""
    return LockOwner(
        name=found.name,
        holder=found.holder,
        fence=found.fence,
        since=to_datetime(found.since),
        deadline=to_datetime(found.deadline),
        token=found.token,
    )
