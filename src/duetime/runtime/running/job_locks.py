"""Runs jobs under the lock that their task names; where it is held, the claim goes back, and the job comes again.

The job is due again at the deadline of the lock's owner. It is brought back sooner when the lock is released: one of
those that this worker has given back, so that a release does not wake all of them.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from duetime.errors import ConfigError, InvalidValue, LockLost, StoreError
from duetime.model.job import Claim, JobEdit, JobId, Token
from duetime.model.locks import lock_held
from duetime.model.outcome import Interrupted, Outcome, Released, Succeeded
from duetime.model.text import one_line
from duetime.model.time import MINUTE, SECOND, Instant, Micros
from duetime.runtime.running.call_outcome import outcome_of_error, undecodable_outcome
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run
from duetime.runtime.service import WorkerContext
from duetime.runtime.settling.settler import Settler
from duetime.stores.base import EditAnswer

log = logging.getLogger("duetime.worker")

_PAUSE_AFTER_FAILURE: Final[Micros] = SECOND
_LONGEST_WAIT: Final[Micros] = MINUTE
"""After which a job is due again in any case: this worker, which waits for the release, may be gone by then."""
_LONGEST_RELEASE: Final = 5.0
"""Seconds that a release may take before it is left to the deadline."""


class JobLock(Protocol):
    """A lock that a job may hold."""

    longest_pause: ClassVar[float]
    """Seconds between two looks while another one holds it."""

    @property
    def fence(self) -> int:
        """Rises with every owner."""
        ...

    async def acquire_for_job(self, claim: Token, *, caller: object, on_loss: Callable[[], object]) -> Micros:
        """Take it without waiting, also from an earlier claim of the same job; return how long another one has it yet.

        `on_loss` is called, in any thread, if it is lost before it is released.
        """
        ...

    async def release(self) -> bool:
        """Give it back; False if it was lost."""
        ...

    async def owner(self) -> object | None:
        """Return who holds it."""
        ...

    async def await_release(self, *, longest: float) -> None:
        """Wait until it was released, where that can be known, but no longer than this."""


MakeJobLock: TypeAlias = Callable[[str], JobLock]


class _Waiting(NamedTuple):
    """A job that was given back because its lock was held."""

    until: Instant
    """When it is due again."""
    due_at: Instant
    """When it was due."""


class JobLocks:
    """Takes and releases the locks of the jobs of a worker."""

    def __init__(self, context: WorkerContext, make: MakeJobLock, settler: Settler) -> None:
        self._store = context.store
        self._time = context.time
        self._make = make
        self._settler = settler
        self._waiting: dict[str, dict[JobId, _Waiting]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._bringing = asyncio.Lock()
        self.brought = 0
        """How many jobs were brought back."""

    async def execute(self, run: Run, handler: Handler, call: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Make the call while the lock is held, or give the claim back."""
        claim, lost = run.claim, Interrupted(reason="its lock was lost")
        loop = asyncio.get_running_loop()
        try:
            name = handler.lock_name(claim.payload)
            lock = self._make(name)
            left = await lock.acquire_for_job(
                claim.token, caller=run, on_loss=lambda: loop.call_soon_threadsafe(run.stop, lost)
            )
        except (InvalidValue, msgspec.MsgspecError, RecursionError) as error:
            return undecodable_outcome(str(error))
        except (StoreError, ConfigError) as error:
            log.warning("job %s of %s waits, as its lock cannot be had: %s", claim.job_id, claim.task, error)
            return Released(wait=_PAUSE_AFTER_FAILURE, reason="its lock cannot be had")
        if left:
            return self._give_back(claim, name, left)
        run.lock_fence = lock.fence
        try:
            outcome = run.stopping or await call()
        finally:
            kept = await self._release(lock, claim)
        if run.stopping is lost or (not kept and isinstance(outcome, Succeeded)):
            return outcome_of_error(
                LockLost(f"lock {name!r} was lost while the job ran; another one may have it")
            )
        return outcome

    async def look(self) -> None:
        """Bring the first job back of those that wait for a lock which is free now."""
        for name in list(self._waiting):
            await self._look(name)
        # Also those that a watch is bringing back.
        async with self._bringing:
            pass

    async def close(self) -> None:
        """Leave the jobs that were given back to other workers, which take up the waiting."""
        for watch in self._watches.values():
            watch.cancel()
        for name in list(self._waiting):
            while await self._bring_back(name):
                pass

    async def _release(self, lock: JobLock, claim: Claim) -> bool:
        """Give a lock back; False if it was lost. What came of the run does not depend on whether it can be reached."""
        try:
            async with asyncio.timeout(_LONGEST_RELEASE):
                return await lock.release()
        except (StoreError, TimeoutError) as error:
            log.warning(
                "the lock of job %s is free only at its deadline: %s", claim.job_id, one_line(str(error))
            )
            return True

    def _give_back(self, claim: Claim, name: str, left: Micros) -> Released:
        until = self._time.now() + min(left, _LONGEST_WAIT)
        self._waiting.setdefault(name, {})[claim.job_id] = _Waiting(until, claim.due_at)
        if name not in self._watches:
            self._watches[name] = asyncio.create_task(self._watch(name), name=f"duetime-lock {name}")
        return Released(until=until, reason=lock_held(name))

    async def _watch(self, name: str) -> None:
        """Look whenever the lock is released, until no job waits for it."""
        lock = self._make(name)
        try:
            while self._still_waiting(name):
                try:
                    await self._look(name)
                    await lock.await_release(longest=lock.longest_pause * random.uniform(0.5, 1))
                except StoreError:
                    # The jobs come back by themselves.
                    await asyncio.sleep(_PAUSE_AFTER_FAILURE / SECOND)
        finally:
            del self._watches[name]

    def _still_waiting(self, name: str) -> dict[JobId, _Waiting]:
        """Return the jobs that are not due yet."""
        now = self._time.now()
        waiting = {job: entry for job, entry in self._waiting.pop(name, {}).items() if entry.until > now}
        if waiting:
            self._waiting[name] = waiting
        return waiting

    async def _look(self, name: str) -> None:
        if self._still_waiting(name) and await self._make(name).owner() is None:
            await self._bring_back(name)

    async def _bring_back(self, name: str) -> bool:
        """Have the first job that waits for a lock fall due again; False if there is none."""
        async with self._bringing:
            # What was given back a moment ago may not be written yet.
            await self._settler.flush()
            while waiting := self._still_waiting(name):
                job_id = next(iter(waiting))
                until, due_at = waiting.pop(job_id)
                answers = await self._store.edit([job_id], JobEdit(due_at=due_at, if_due_at=until))
                if answers[job_id] is EditAnswer.CHANGED:
                    self.brought += 1
                    return True
        return False
