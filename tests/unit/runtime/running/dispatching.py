"""A dispatcher without a worker."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

from duetime.model.outcome import Settlement
from duetime.model.task import TaskOptions
from duetime.model.time import SECOND
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.events import Events
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.job_locks import JobLocks
from duetime.runtime.running.slots import Slots
from duetime.runtime.running.threads import ThreadRunner
from duetime.runtime.settling.settler import Outcomes
from tests.unit.runtime.kit import SettlingStore, StillTime, context_of

NOW = 50 * SECOND


class Bench:
    """A dispatcher with one task and a settler that writes when asked."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        store = SettlingStore()
        handler = Handler(
            name="task",
            function=function,
            is_async=inspect.iscoroutinefunction(function),
            options=TaskOptions(**options),
            arguments=Arguments(function, task="task"),
        )
        handlers = {"task": handler}
        self.slots = Slots(10, {"default": None})
        self.freed = 0
        self.store = store
        self.events = Events()
        identity = WorkerIdentity(queues=("default",), slots=10, tasks=handlers)
        self.time = StillTime(NOW)
        context = context_of(store, handlers=handlers, identity=identity, time=self.time)
        self.outcomes = Outcomes(context, self.events, statistics_store=context.store)
        self.settler, self.reporter = self.outcomes.settler, self.outcomes.output
        self.dispatcher = Dispatcher(
            context,
            executor=Executor(handlers, ThreadRunner()),
            outcomes=self.outcomes,
            slots=self.slots,
            lender=cast("Any", None),
            locks=JobLocks(context, cast("Any", None), self.settler),
        )
        self.dispatcher.on_free = self._free

    @property
    def settled(self) -> list[Settlement]:
        """What waits to be written."""
        return self.settler._waiting

    async def drained(self) -> None:
        """Wait for the end of all runs."""
        await asyncio.wait_for(self.dispatcher.drained(), 5)

    def _free(self) -> None:
        self.freed += 1


async def nothing() -> None:
    """Be a handler with nothing to do."""
