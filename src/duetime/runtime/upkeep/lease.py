"""Keeps the worker's lease, from a thread of its own, so that a busy event loop cannot fake a death.

The same thread notices that the loop stands still.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.errors import DuetimeError, StoreLost, StoreMoved
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import CommandId, WorkerInfo
from duetime.runtime.pacing import sweep_interval
from duetime.runtime.service import DATABASE_DOWN, Wakeup, WorkerContext
from duetime.runtime.store_clock import boottime, monotonic
from duetime.runtime.upkeep.commands import CommandRunner
from duetime.stores.base import PulseQuery, Store

if TYPE_CHECKING:
    from duetime.runtime.worker import Worker

log = logging.getLogger("duetime.worker")

BLOCK_LIMIT: Micros = 1 * SECOND
HANG_LIMIT: Micros = 300 * SECOND
PERIOD = 1.0
"""Seconds from one look at the loop to the next."""
QUIET_PERIOD = 10.0
"""The same while no job runs that could block it; a heartbeat has the thread awake as often."""
_QUIET_SIGN: Micros = 30 * SECOND
"""How long ago the last sign of life may be while no job runs."""
_SLOWEST_LOOK = 10.0
"""Seconds between heartbeats that look for what hints may have missed; slower ones leave it to the services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """How long a silent worker is believed, and how often it speaks."""

    length: Micros = 30 * SECOND

    @property
    def beat(self) -> float:
        """Seconds between pulses."""
        return self.length / 3 / SECOND

    @property
    def looks(self) -> bool:
        """Whether pulses come often enough to look for what hints may have missed."""
        return self.beat <= _SLOWEST_LOOK

    @property
    def retry(self) -> float:
        """Seconds before a pulse that failed is tried again: some tries must fit in what is left of the lease."""
        return min(0.5, self.beat / 10)

    @property
    def margin(self) -> Micros:
        """How long before the end of its lease a worker gives up on its own."""
        return self.length // 6


class LoopWatch:
    """Asks the loop for a sign of life once a period, and tells when it stands still."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_hang: Callable[[], None]) -> None:
        """Call `on_hang` once the hang limit is passed."""
        self._loop = loop
        self._on_hang = on_hang
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._asked_last: Micros = 0
        self.lag: Micros = 0

    def ask(self, *, quiet: bool = False) -> None:
        """Ask for a sign of life, unless one is being waited for, or no job runs and the last is not long ago."""
        now = monotonic()
        if self._asked_at is not None or (quiet and now < self._asked_last + _QUIET_SIGN):
            return
        self._asked_at = self._asked_last = now
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            self._asked_at = None

    def hanging(self) -> bool:
        """Look once; report a blocked loop with its stack, and tell whether it is past the hang limit."""
        asked_at = self._asked_at
        if asked_at is None:
            return False
        before, self.lag = self.lag, monotonic() - asked_at
        if before < BLOCK_LIMIT <= self.lag:
            self._report()
        if before < HANG_LIMIT <= self.lag:
            self._on_hang()
        return self.lag >= HANG_LIMIT

    def _answer(self) -> None:
        if self.lag >= BLOCK_LIMIT and self._asked_at is not None:
            log.warning("the event loop runs again after %.1f s", (monotonic() - self._asked_at) / SECOND)
        self._asked_at = None
        self.lag = 0

    def _report(self) -> None:
        # Underscore or not, it is the documented way to another thread's stack.
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "  (no stack)\n"
        log.error(
            "the event loop has been blocked for %.1f s: an async task must await, or be a plain function that "
            "runs in a thread. It is at:\n%s",
            self.lag / SECOND,
            stack,
        )


class PulseThread:
    """The thread that registers the worker, renews its lease and watches its loop."""

    def __init__(
        self, context: WorkerContext, *, store: Store, listener: Worker, on_hang: Callable[[], None]
    ) -> None:
        """`store`: one for this thread alone."""
        self._store = store
        self._info = context.identity.info
        self._lease = LeaseTiming(length=context.options.lease)
        self._listener = listener
        self._time = context.time
        self._fleet = context.fleet
        self._look_from: Micros = 0
        self.registered_at: Instant = 0
        """When the worker was registered, by the store's clock."""
        self._main = asyncio.get_running_loop()
        self._watch = LoopWatch(self._main, on_hang=on_hang)
        self._registered: asyncio.Future[None] = self._main.create_future()
        self._ended: asyncio.Future[None] = self._main.create_future()
        self._thread = threading.Thread(target=self._serve, name="duetime-pulse", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = Wakeup()
        self._stopping = False
        self._asked = False
        self._deadline: Micros = 0
        self._commander = CommandRunner(store, listener.whole, in_loop=self._in_main, on_answer=self._poke)

    async def start(self) -> None:
        """Register the worker; raises what the store raises."""
        self._thread.start()
        await self._registered

    def ask(self) -> None:
        """Look for requests at once, because the worker was hinted."""
        self._asked = True
        self._poke()

    async def stop(self) -> None:
        """Retire the worker and end the thread."""
        self._stopping = True
        self._poke()
        await self._ended

    def _poke(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    def _serve(self) -> None:
        try:
            asyncio.run(self._beat_on())
        except BaseException as error:  # noqa: BLE001 - reported to the caller that waits for the start
            self._in_main(self._fail_start, error)
        self._in_main(self._ended.set_result, None)

    def _fail_start(self, error: BaseException) -> None:
        if self._registered.done():
            log.error("the pulse has stopped; the lease will lapse", exc_info=error)
        else:
            self._registered.set_exception(error)

    async def _beat_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        # The worker's own store was checked when it was opened, and what is weak about it is told once.
        await self._store.open(check=False)
        try:
            await self._register()
            self._in_main(self._registered.set_result, None)
            await self._beat_until_stopped()
            await self._obey(commands=False, answered=self._commander.answered)
            await self._retire()
        finally:
            await self._store.close()

    async def _beat_until_stopped(self) -> None:
        # The first at once, since the worker is awake anyway; the second at random, so that workers that were started
        # together beat one after the other, and learn soon how many they are.
        next_beat, share = monotonic(), random.uniform(0.05, 1)
        while not self._stopping and (not self._main.is_closed() or self._listener.busy()):
            # Only this thread can tell a hung loop from a busy one: the lease is let lapse until the loop comes back.
            hanging = self._watch.hanging()
            left = PERIOD if hanging else (next_beat - monotonic()) / SECOND
            # The loop may not go unwatched for long while jobs run in it, or it has not answered yet.
            period = PERIOD if self._listener.whole.stats().running or self._watch.lag else QUIET_PERIOD
            await self._wake.wait(min(period, left))
            self._wake.clear()
            # Before a beat, so that a loop that is well has answered by the time the store has.
            self._watch.ask(quiet=period > PERIOD)
            if hanging:
                continue
            if monotonic() >= next_beat or self._commander.answered:
                beaten = await self._beat()
                pause = share * self._lease.beat if beaten else min(self._lease.retry, self._left())
                next_beat, share = monotonic() + int(pause * SECOND), 1.0
            elif self._asked or self._watch.lag >= BLOCK_LIMIT:
                # A loop that is blocked passes no hints on.
                self._asked = False
                await self._attend()

    async def _register(self) -> None:
        sent, mono = boottime(), monotonic()
        self.registered_at = await self._store.register(self._info, lease=self._lease.length)
        self._in_main(self._time.observe, mono, monotonic(), self.registered_at)
        self._deadline = sent + self._lease.length - self._lease.margin

    async def _beat(self) -> bool:
        """Renew the lease; past the deadline by our own clock everything is stopped, whatever the store would say."""
        sent, mono = boottime(), monotonic()
        if sent >= self._deadline:
            await self._start_over("its lease was not renewed in time")
            return False
        # Before the record is made, and stored after it, so that an answer never contradicts the record.
        answered = self._commander.answered
        stats = replace(self._listener.whole.stats(), loop_lag=self._watch.lag)
        wants, pulse = self._wants(), None
        async with self._trying("the lease could not be renewed"):
            pulse = await self._store.pulse(self._info.id, stats, lease=self._lease.length, wants=wants)
        if pulse is None:
            return False
        if not pulse.alive:
            await self._start_over("it was declared dead")
            # The next beat soon, so that the new record shows how the worker is.
            return False
        self._deadline = sent + self._lease.length - self._lease.margin
        if wants is not None:
            # Heartbeats do not come to the millisecond: the one that is nearest counts.
            pause = self._fleet.share(sweep_interval(self._lease.length / SECOND)) * SECOND
            self._look_from = monotonic() + int(pause) - self._lease.margin
        self._in_main(self._time.observe, mono, monotonic(), pulse.now)
        self._in_main(self._listener.attend, pulse)
        await self._obey(commands=pulse.commands, answered=answered)
        return True

    def _wants(self) -> PulseQuery | None:
        """Return what to look for that hints may have missed; workers of a large fleet look in turn, and find the same."""
        if not self._lease.looks or monotonic() < self._look_from:
            return None
        info = self._info
        return PulseQuery(queues=info.queues, tasks=info.tasks, schedules=info.fires, orphans=True)

    @asynccontextmanager
    async def _trying(self, failure: str, *, expected: int = logging.WARNING) -> AsyncGenerator[None]:
        """Log what fails in the block: the next heartbeat tries again.

        It takes no longer than a heartbeat, and ends when the worker gives up unless its lease is renewed.
        """
        try:
            async with asyncio.timeout(min(self._lease.beat, self._left())):
                yield
        except StoreLost as error:
            self._in_main(self._listener.lose_store, error)
        except Exception as error:  # noqa: BLE001 - a pulse that ends is a worker that dies
            _log_failure(failure, error, expected=expected)

    def _left(self) -> float:
        """Seconds until the worker gives up unless its lease is renewed."""
        return max(0.0, (self._deadline - boottime()) / SECOND)

    async def _attend(self) -> None:
        async with self._trying("requests could not be read", expected=logging.DEBUG):
            pulse = await self._store.attend(self._info.id)
            if pulse.alive:
                self._in_main(self._listener.attend, pulse)
                await self._obey(commands=pulse.commands)

    async def _obey(self, *, commands: bool, answered: Collection[CommandId] = ()) -> None:
        """Begin what the worker was told, and store these answers."""
        if not commands and not answered:
            return
        async with self._trying("commands could not be read or answered", expected=logging.DEBUG):
            if commands:
                await self._commander.attend(self._info.id)
            await self._commander.report(answered)

    async def _start_over(self, why: str) -> None:
        """Drop all claims and go on as another worker."""
        log.error("worker %s stops its jobs and registers anew: %s", self._info.id, why)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[WorkerInfo] = loop.create_future()
        self._in_main(lambda: loop.call_soon_threadsafe(answer.set_result, self._listener.lose_lease()))
        if self._main.is_closed():
            # There is no loop that could go on.
            self._stopping = True
            return
        self._info = await answer
        while not self._stopping:
            self._wake.clear()
            try:
                await self._register()
            except StoreMoved as error:
                log.error("worker %s stops: %s", self._info.id, error)  # noqa: TRY400 -- it says all
                self._in_main(lambda: self._listener.whole.ask_to_stop(now=True))
                await self._wake.wait(self._lease.beat)
            except Exception as error:  # noqa: BLE001 - tried again until the worker is stopped
                _log_failure(f"worker {self._info.id} cannot register anew", error)
                await asyncio.sleep(self._lease.retry)
            else:
                return

    async def _retire(self) -> None:
        try:
            await self._store.retire(self._info.id)
        except DuetimeError as error:
            log.warning("the worker could not sign off, its lease will lapse: %s", error)

    def _in_main(self, call: Callable[..., object], *args: object) -> None:
        # A worker's loop that is closed has no one to tell, but a thread may still be at work.
        with suppress(RuntimeError):
            self._main.call_soon_threadsafe(call, *args)


def _log_failure(failure: str, error: Exception, *, expected: int = logging.WARNING) -> None:
    """Log what failed and is tried again; an error that is not the database's is a defect, and has its traceback."""
    known = isinstance(error, (*DATABASE_DOWN, TimeoutError))
    level = expected if known else logging.WARNING
    why = str(error) or "no answer in time"
    log.log(level, "%s, and it will be tried again: %s", failure, why, exc_info=None if known else error)
