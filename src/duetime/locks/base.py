"""What every lock promises, whatever it is kept in: one owner at a time, a deadline, and a fence.

Locks are taken and released in the event loop of the caller, and renewed in that of a thread of their own: a blocked loop
does not lose them. That thread also works for callers without a loop.
"""
# The blocking twin, the renewals and the lock itself are one thing.
# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from duetime.errors import InvalidDuration, LockLost, LockMisused, LockNotAcquired
from duetime.model.ids import new_token
from duetime.model.job import Token
from duetime.model.locks import Attempt, check_lock_name
from duetime.model.time import DAY, MILLISECOND, SECOND, Duration, Micros, parse_duration
from duetime.runtime.loop_thread import LoopThread
from duetime.runtime.running.run import current_run
from duetime.runtime.store_clock import boottime

T = TypeVar("T")

DEFAULT_TTL: Final = 30.0
_SHORTEST_TTL: Final[Micros] = 100 * MILLISECOND
_LONGEST_TTL: Final[Micros] = 366 * DAY
_FIRST_PAUSE: Final = 0.02
_LONGEST_RETRY: Final = 0.5

log = logging.getLogger("duetime.locks")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOwner:
    """Who holds a lock."""

    name: str
    holder: str
    """The process, for people: host, process id."""
    fence: int
    since: datetime
    deadline: datetime
    """When the lock is free if it is not renewed."""
    token: str = field(repr=False)
    """The secret of this acquisition."""


class DistributedLock(ABC):
    """A lock that one owner at a time holds, until it releases it or does not renew it in time.

    `async with lock:` waits for it, renews it in the background while the block runs, and releases it. If it is lost all the
    same, the block is cancelled and `LockLost` raised. Code that was stopped may run on before it notices: what it
    writes to must compare `lock.fence`. Who waits longest is not served first.
    """

    longest_pause: ClassVar[float] = 1.0
    """Seconds between two tries while the lock is held by another one."""

    def __init__(self, name: str, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None) -> None:
        """`ttl`: how long it stays locked if its owner falls silent; `timeout`: how long `with` waits, `None` for ever."""
        self.name = check_lock_name(name)
        self.ttl = _check_ttl(ttl)
        self._timeout = timeout
        self._hold: _Hold | None = None
        self._guarded: _Hold | None = None
        """That of the block which a loss ends."""
        self._fence: int | None = None
        self.lost = threading.Event()
        """Set when it was lost, until it is acquired again."""

    # What an implementation gives; called in any event loop, also in two at once.

    @property
    @abstractmethod
    def place(self) -> str:
        """Where locks of this name are the same lock."""

    @abstractmethod
    async def try_take(self, *, token: str, holder: str, instead_of: str | None = None) -> Attempt:
        """Take the lock in one atomic step if it is free or past its deadline, or the token `instead_of` owns it.

        The fence must be larger than any before, also if the lock was forgotten meanwhile.
        """

    @abstractmethod
    async def try_extend(self, *, token: str) -> bool:
        """Put the deadline off to the time to live from now; False unless the token owns the lock, and in time."""

    @abstractmethod
    async def try_release(self, *, token: str) -> bool:
        """Give the lock back; False unless the token owns it, and in time."""

    @abstractmethod
    async def owner(self) -> LockOwner | None:
        """Return who holds the lock, here or elsewhere."""

    @abstractmethod
    async def cleanup(self) -> int:
        """Remove what is kept of locks in the same place that no one holds, and return how many that were."""

    async def await_release(self, *, longest: float) -> None:
        """Wait until the lock was released, where that can be known, but no longer than this."""
        await asyncio.sleep(longest)

    # What users call.

    async def acquire(self, timeout: Duration | None = None, *, renew: bool = True) -> bool:
        """Wait for the lock, and keep it by renewing it; False if it is not free in time, and 0 does not wait.

        Without `renew` it ends by itself at its deadline.
        """
        return await self._acquire(timeout, caller=asyncio.current_task(), renew=renew)

    async def acquire_for_job(self, claim: Token, *, caller: object, on_loss: Callable[[], object]) -> Micros:
        """Take the lock without waiting, also from an earlier claim of the same job; return how long another one has it yet.

        The worker of that claim is dead or has lost its lease. `on_loss` is called in a thread of ours.
        """
        token, holder = ":".join(map(str, claim)), f"{_holder()} job {claim.job_id}"
        hold, left = await self._try(token, holder)
        if hold is None and (owner := await self.owner()) and _is_earlier(owner.token, claim):
            hold, left = await self._try(token, holder, instead_of=owner.token)
        if hold is None:
            return max(1, left)
        hold.on_loss = on_loss
        self._begin(hold, caller)
        return 0

    async def release(self) -> bool:
        """Give the lock back; False if it is not held, or was lost."""
        hold = self._held()
        if hold is None or not _holds.end(self, hold):
            return False
        try:
            return await self.try_release(token=hold.token)
        except asyncio.CancelledError:
            # Elsewhere, since this loop may be about to end.
            asyncio.run_coroutine_threadsafe(self.try_release(token=hold.token), _holds.thread.loop())
            raise

    async def renew(self) -> bool:
        """Put the deadline off now; False if the lock is not held, or was lost."""
        return (hold := self._held()) is not None and await self._extend(hold)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, as far as it knows."""
        return self._held() is not None

    @property
    def fence(self) -> int:
        """A number that rises with every owner: pass it to what you write to, which refuses smaller ones."""
        if self._fence is None:
            raise LockMisused(f"lock {self.name!r} has not been acquired, so that it has no fence")
        return self._fence

    @property
    def sync(self) -> BlockingLock:
        """The same lock for code without an event loop."""
        return BlockingLock(self)

    async def __aenter__(self) -> Self:
        if not await self.acquire(self._timeout):
            raise self._contention()
        self._guarded = self._hold
        if self._guarded is not None and (task := asyncio.current_task()) is not None:
            self._guarded.guard(task)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, self._guarded = self._guarded, None
        released = await self.release()
        if hold is not None and hold.ended_block() and kind is asyncio.CancelledError:
            raise self._loss() from error
        if not released and error is None:
            raise self._loss()

    async def _acquire(self, timeout: Duration | None, *, caller: object, renew: bool) -> bool:
        waits = None if timeout is None else parse_duration(timeout, what="timeout")
        holder = _holds.by_key.get(self._key)
        if waits != 0 and holder is not None and holder.caller in (caller, current_run.get(None)):
            raise LockMisused(
                f"this task, thread or job holds lock {self.name!r} already, and would wait for itself"
            )
        token = new_token()
        try:
            taken = await self._take(token, until=None if waits is None else boottime() + waits)
        except BaseException:
            # It may be ours by now.
            with suppress(Exception):
                await self.try_release(token=token)
            raise
        if taken is not None:
            self._begin(taken, caller, renew=renew)
        return taken is not None

    async def _try(
        self, token: str, holder: str, *, instead_of: str | None = None
    ) -> tuple[_Hold | None, Micros]:
        began = boottime()
        fence, left = await self.try_take(token=token, holder=holder, instead_of=instead_of)
        return (None if fence is None else _Hold(token=token, fence=fence, deadline=began + self.ttl)), left

    async def _take(self, token: str, *, until: Micros | None) -> _Hold | None:
        pause = _FIRST_PAUSE
        while True:
            hold, left = await self._try(token, _holder())
            if hold is not None:
                return hold
            waits = [left / SECOND, pause * random.uniform(0.5, 1)]
            if until is not None:
                if boottime() >= until:
                    return None
                waits.append((until - boottime()) / SECOND)
            await self.await_release(longest=max(0.0, min(waits)))
            pause = min(self.longest_pause, pause * 2)

    def _begin(self, hold: _Hold, caller: object, *, renew: bool = True) -> None:
        self.lost.clear()
        self._fence, self._hold, hold.caller = hold.fence, hold, caller
        if renew:
            _holds.add(self, hold)

    async def _extend(self, hold: _Hold) -> bool:
        """Renew, and try again until the deadline if there is no answer; lose the lock where that fails."""
        problem = "another one may have it"
        while boottime() < hold.deadline:
            began = boottime()
            try:
                async with asyncio.timeout((hold.deadline - began) / SECOND):
                    if await self.try_extend(token=hold.token):
                        hold.deadline = began + self.ttl
                        return True
                    break
            except Exception as error:  # noqa: BLE001 -- logged if the lock is lost by it
                problem = str(error) or type(error).__name__
                await asyncio.sleep(min(_LONGEST_RETRY, self.ttl / SECOND / 30))
        if _holds.end(self, hold):
            log.warning("lock %s was lost: it was not renewed in time (%s)", self.name, problem)
            self.lost.set()
            # The loop may be closed by now.
            with suppress(RuntimeError):
                hold.on_loss()
        return False

    def _held(self) -> _Hold | None:
        # A forked child holds nothing that its parent does.
        hold = self._hold
        return hold if hold is not None and hold.pid == os.getpid() else None

    @property
    def _key(self) -> tuple[str, str]:
        return self.place, self.name

    def _contention(self) -> LockNotAcquired:
        return LockNotAcquired(f"lock {self.name!r} was not free within {self._timeout}")

    def _loss(self) -> LockLost:
        return LockLost(
            f"lock {self.name!r} was lost while it was held; what was written with its fence may be refused"
        )


class BlockingLock:
    """A lock for code without an event loop; `with lock:` as `async with`, but that a loss is told by `lost` alone."""

    def __init__(self, lock: DistributedLock) -> None:
        self._lock = lock
        self.name = lock.name
        self.lost = lock.lost

    @property
    def fence(self) -> int:
        """As that of the lock."""
        return self._lock.fence

    @property
    def held(self) -> bool:
        """As that of the lock."""
        return self._lock.held

    def acquire(self, timeout: Duration | None = None, *, renew: bool = True) -> bool:
        """As that of the lock."""
        return self._run(self._lock._acquire(timeout, caller=threading.current_thread(), renew=renew))

    def release(self) -> bool:
        """As that of the lock."""
        return self._run(self._lock.release())

    def renew(self) -> bool:
        """As that of the lock."""
        return self._run(self._lock.renew())

    def owner(self) -> LockOwner | None:
        """As that of the lock."""
        return self._run(self._lock.owner())

    def cleanup(self) -> int:
        """As that of the lock."""
        return self._run(self._lock.cleanup())

    def __enter__(self) -> Self:
        if not self.acquire(self._lock._timeout):
            raise self._lock._contention()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.release() and error is None:
            raise self._lock._loss()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return _holds.thread.run(work)


@dataclass(slots=True, kw_only=True, eq=False)
class _Hold:
    """One acquisition."""

    token: str
    fence: int
    deadline: Micros
    """By this process's clock: the owner gives up no later than others may take over."""
    caller: object = None
    """The task, thread or job that holds it, and must not wait for it."""
    pid: int = field(default_factory=os.getpid)
    on_loss: Callable[[], object] = lambda: None
    """Called in the thread that renews."""
    _task: asyncio.Task[Any] | None = None
    _cancelling: int = 0
    _ended: bool = False

    def guard(self, task: asyncio.Task[Any]) -> None:
        """Cancel this task's block if the lock is lost."""
        self._task, self._cancelling = task, task.cancelling()
        self.on_loss = partial(task.get_loop().call_soon_threadsafe, self._cancel)

    def ended_block(self) -> bool:
        """Whether the block was cancelled by the loss alone; asked once, by the task itself."""
        task, self._task = self._task, None
        return self._ended and task is not None and task.uncancel() <= self._cancelling

    def _cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._ended = True
            self._task.cancel()


class _Holds:
    """What this process holds; each is renewed at a third of its time to live."""

    def __init__(self) -> None:
        self.thread = LoopThread("duetime-locks")
        self._lock = threading.Lock()
        self.by_key: dict[tuple[str, str], _Hold] = {}
        self._due: dict[_Hold, tuple[DistributedLock, Micros]] = {}
        self._alarm: float = math.inf
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, lock: DistributedLock, hold: _Hold) -> None:
        """Renew a lock, unless it was released; the thread is woken only if it would sleep for too long."""
        due = boottime() + lock.ttl // 3
        with self._lock:
            if lock._hold is not hold:
                return
            self.by_key[lock._key] = hold
            self._due[hold] = lock, due
            if due >= self._alarm:
                return
            self._alarm = due
        self.thread.loop().call_soon_threadsafe(self._look)

    def end(self, lock: DistributedLock, hold: _Hold) -> bool:
        """Hold a lock no more; False if that was so already."""
        with self._lock:
            if lock._hold is not hold:
                return False
            lock._hold = None
            self._due.pop(hold, None)
            if self.by_key.get(lock._key) is hold:
                del self.by_key[lock._key]
        return True

    def forget(self) -> None:
        """Hold nothing, in a forked child: its parent does."""
        self._lock = threading.Lock()
        self.by_key.clear()
        self._due.clear()
        self._alarm = math.inf

    def _look(self) -> None:
        loop, now = asyncio.get_running_loop(), boottime()
        with self._lock:
            ready = [(hold, lock) for hold, (lock, due) in self._due.items() if due <= now]
            for hold, _ in ready:
                del self._due[hold]
            self._alarm = min((due for _, due in self._due.values()), default=math.inf)
            if self._due:
                loop.call_later((self._alarm - now) / SECOND, self._look)
        for hold, lock in ready:
            task = loop.create_task(self._renew(lock, hold), name=f"duetime-lock {lock.name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _renew(self, lock: DistributedLock, hold: _Hold) -> None:
        if await lock._extend(hold):
            self.add(lock, hold)


_holds: Final = _Holds()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holds.forget)


def _holder() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_earlier(token: str, claim: Token) -> bool:
    """Whether a token is that of an earlier claim of the same job; those of others have no job in them."""
    job, *rest = token.split(":")
    return job == claim.job_id and int(rest[0]) < claim.fence


def _check_ttl(ttl: Duration) -> Micros:
    micros = parse_duration(ttl, what="ttl")
    if not _SHORTEST_TTL <= micros <= _LONGEST_TTL:
        raise InvalidDuration(f"ttl must be from 0.1 seconds to a year, not {ttl!r}")
    return micros
