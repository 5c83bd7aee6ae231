"""A dispatcher without a worker."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, cast

from duetime.model.instants import SECOND
from duetime.model.outcome import Settlement
from duetime.model.task import TaskOptions
from duetime.runtime.arguments import Arguments
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.events import Events
from duetime.runtime.executor import Executor
from duetime.runtime.handler import Handler
from duetime.runtime.herald import Herald
from duetime.runtime.identity import Identity
from duetime.runtime.job_log import JobLog
from duetime.runtime.reporter import Reporter
from duetime.runtime.settler import Settler
from duetime.runtime.slots import Slots
from duetime.runtime.start_marker import StartMarker
from duetime.runtime.threads import ThreadRunner
from duetime.stores.base import JobStore
from tests.unit.runtime.kit import NoHealth, SettlingStore, StillTime

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
        self.settler = Settler(cast("JobStore", store), NoHealth())
        self.freed = 0
        self.reporter = Reporter(cast("JobStore", store), NoHealth(), captures_logs=True)
        self.store = store
        self.events = Events()
        identity = Identity(queues=("default",), slots=10, tasks=handlers)
        self.time = StillTime(NOW)
        self.dispatcher = Dispatcher(
            herald=Herald(self.events, identity, self.time),
            job_log=JobLog(identity, quiet=logging.DEBUG, loop=asyncio.get_running_loop()),
            handlers=handlers,
            executor=Executor(handlers, ThreadRunner()),
            settler=self.settler,
            marker=StartMarker(cast("JobStore", store), NoHealth()),
            ears=self.reporter,
            slots=self.slots,
            time=self.time,
            lending=cast("Any", None),
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
