"""One lifecycle for every background loop: its wake-ups, how often it looks, its back-off after a failure, its health."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from duetime.errors import SchemaMismatch, StoreLost, StoreUnavailable, StoreUnusable
from duetime.model.text import counted
from duetime.runtime.error_text import describe_error
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.running.handler import Handler
from duetime.runtime.store_clock import StoreClock
from duetime.stores.base import Store
from duetime.stores.base.backoff import backoff

log = logging.getLogger("duetime.worker")

_LAST_ROUND_TIMEOUT = 5.0
"""Seconds a service that is stopped may take to finish its round."""

DATABASE_DOWN: Final = (StoreUnavailable, StoreUnusable, SchemaMismatch)
"""Errors of the database as a whole, whatever was asked of it: the same is tried again until it is mended."""


class ServiceHealth:
    """Remembers which services are failing and the last error."""

    def __init__(self, on_lost: Callable[[StoreLost], object] | None = None) -> None:
        """Call `on_lost` when a service finds that its store is lost."""
        self._on_lost = on_lost
        self.failing: dict[str, str] = {}
        self.last_error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether every service is well."""
        return not self.failing

    def failed(self, service: str, error: BaseException) -> None:
        """Note that a round failed."""
        self.last_error = self.failing[service] = f"{service}: {describe_error(error)}"
        if isinstance(error, StoreLost) and self._on_lost is not None:
            self._on_lost(error)

    def recovered(self, service: str) -> None:
        """Note that a round went well after failures."""
        self.failing.pop(service, None)


class Service:
    """Repeats `round()` until stopped; each round returns how many seconds to sleep, or `None` for a hint.

    A round that raises is reported and tried again with growing, jittered pauses: a service never dies.
    """

    name = "service"
    finishes_round = True
    """Whether a round is let finish when the service is stopped, so that no answer of the store is lost."""

    def __init__(self, store: Store, health: ServiceHealth) -> None:
        self.wakeup = Wakeup()
        self.stopping = False
        self.rounds_done = 0
        """How many rounds have gone well."""
        self._store = store
        self._health = health
        self._failing_pause = Wakeup()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._told: str | None = None

    async def round(self) -> float | None:
        """Do what there is to do and tell how long to sleep."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin; starting twice is harmless."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"duetime-{self.name}")

    async def stop(self) -> None:
        """End and wait for the end; stopping twice, or before the start, is harmless."""
        task, self._task = self._task, None
        if task is None:
            return
        self.stopping = True
        self.wakeup.set()
        self._failing_pause.set()
        if self.finishes_round:
            await asyncio.wait({task}, timeout=_LAST_ROUND_TIMEOUT)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _run(self) -> None:
        while not self.stopping:
            self.wakeup.clear()
            try:
                pause = await self.round()
            except Exception as error:  # noqa: BLE001 - a service outlives whatever its round raises
                # Hints do not cut this pause short: they would turn it into a busy loop.
                self._note_failure(error)
                self._failing_pause.clear()
                if not self.stopping:
                    await self._failing_pause.wait(backoff(self._failures))
                continue
            self.rounds_done += 1
            if self._failures:
                log.info("%s goes on after %s", self.name, counted(self._failures, "failure"))
                self._failures, self._told = 0, None
                self._health.recovered(self.name)
            if not self.stopping and (pause is None or pause > 0):
                await self.wakeup.wait(pause)

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        self._health.failed(self.name, error)
        # What the database says of itself is told when it changes, and its loss by the worker, which stops; anything
        # else is a defect and told with its traceback.
        if not isinstance(error, DATABASE_DOWN):
            log.error("%s failed; it will be tried again", self.name, exc_info=error)
        elif str(error) != self._told and not isinstance(error, StoreLost):
            log.warning("%s waits for the database: %s", self.name, error)
        self._told = str(error)


class Wakeup:
    """Lets one loop sleep until it is hinted or its time has come.

    Clear before looking, then wait: a hint that lands during the look is not lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set: Callable[[], None] = self._event.set
        """Wakes the sleeper."""
        self._later: asyncio.TimerHandle | None = None

    def set_after(self, seconds: float) -> None:
        """Wake the sleeper after these seconds, or sooner if an earlier call said so."""
        if seconds <= 0:
            self.set()
            return
        loop = asyncio.get_running_loop()
        if self._later is not None:
            if self._later.when() <= loop.time() + seconds:
                return
            self._later.cancel()
        self._later = loop.call_later(seconds, self.set)

    def clear(self) -> None:
        """Forget earlier hints, also those that have not woken the sleeper yet."""
        self._event.clear()
        if self._later is not None:
            self._later.cancel()
            self._later = None

    async def wait(self, seconds: float | None) -> None:
        """Sleep until hinted, or for these seconds; `None` waits for a hint alone."""
        if seconds is not None:
            self.set_after(seconds)
        await self._event.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What the services of a worker share."""

    store: Store
    options: WorkerOptions
    handlers: Mapping[str, Handler]
    identity: WorkerIdentity
    time: StoreClock
    health: ServiceHealth
    fleet: FleetPacing
