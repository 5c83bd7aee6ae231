"""One lifecycle for every background loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import Protocol

from duetime.errors import StoreLost
from duetime.runtime.health import DATABASE_DOWN
from duetime.runtime.wakeup import Wakeup

log = logging.getLogger("duetime.worker")

_FIRST_BACKOFF = 0.1
_LAST_BACKOFF = 5.0
_LAST_ROUND = 5.0
"""Seconds a service that is stopped may take to finish its round."""


class Health(Protocol):
    """Told how a service fares."""

    def failed(self, service: str, error: BaseException) -> None:
        """Note that a round failed."""
        ...

    def recovered(self, service: str) -> None:
        """Note that a round went well after failures."""
        ...


class Service:
    """Repeats `round()` until stopped; each round returns how many seconds to sleep, or `None` for a hint.

    A round that raises is reported and tried again with growing, jittered pauses: a service never dies.
    """

    name = "service"
    finishes_round = True
    """Whether a round is let finish when the service is stopped, so that no answer of the store is lost."""

    def __init__(self, health: Health) -> None:
        self.wakeup = Wakeup()
        self.stopping = False
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
            await asyncio.wait({task}, timeout=_LAST_ROUND)
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
                pause = self._after_failure(error)
                self._failing_pause.clear()
                if not self.stopping:
                    await self._failing_pause.wait(pause)
                continue
            if self._failures:
                log.info("%s goes on after %d failures", self.name, self._failures)
                self._failures, self._told = 0, None
                self._health.recovered(self.name)
            if not self.stopping and (pause is None or pause > 0):
                await self.wakeup.wait(pause)

    def _after_failure(self, error: Exception) -> float:
        self._failures += 1
        self._health.failed(self.name, error)
        # What the database says of itself is told when it changes, and its loss by the worker, which stops; anything
        # else is a defect and told with its traceback.
        if not isinstance(error, DATABASE_DOWN):
            log.error("%s failed; it will be tried again", self.name, exc_info=error)
        elif str(error) != self._told and not isinstance(error, StoreLost):
            log.warning("%s waits for the database: %s", self.name, error)
        self._told = str(error)
        bound = min(_LAST_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._failures, 10))
        return random.uniform(bound / 2, bound)
