"""Announces the tasks that a worker can run, so that others can make jobs of them without the code, and its release."""

from __future__ import annotations

import inspect

import msgspec

from duetime.model.stored.announced import ANNOUNCED_FOR, TaskAnnouncement, options_to_text
from duetime.model.stored.audit import deployment
from duetime.model.time import SECOND
from duetime.runtime.running.handler import Handler
from duetime.runtime.service import Service, WorkerContext

_LONGEST_DOC = 500


class TaskAnnouncer(Service):
    """Stores what has changed, at the start and twice a day: an idle worker has nothing to write."""

    name = "task announcer"

    def __init__(self, context: WorkerContext, *, release: str | None = None) -> None:
        super().__init__(context.store, context.health)
        self._handlers = context.handlers
        self._time = context.time
        self._announced = False
        self._identity = context.identity
        self._release = release
        """The version of the application, until it is noted."""

    async def round(self) -> float | None:
        """Announce, unless that was done before the service began."""
        if not self._announced:
            await self.announce()
        self._announced = False
        return ANNOUNCED_FOR / SECOND

    async def announce(self) -> None:
        """Store what differs from what is stored, or was stored long ago."""
        now = self._time.now()
        known = {task.name: task for task in await self._store.announced([*self._handlers])}
        own = map(announcement, self._handlers.values())
        fresh = [
            task for task in own if task.name not in known or not known[task.name].stands_for(task, now=now)
        ]
        if fresh:
            await self._store.announce(fresh)
        if self._release is not None:
            await self._store.enqueue([], entries=[deployment(self._release, worker=self._identity.info.id)])
            self._release = None
        self._announced = True


def announcement(handler: Handler) -> TaskAnnouncement:
    """Return what is to be known of a task."""
    doc = inspect.getdoc(handler.function)
    return TaskAnnouncement(
        name=handler.name,
        queue=handler.options.queue,
        options=options_to_text(handler.options, doc=doc and doc[:_LONGEST_DOC]),
        schema=msgspec.json.encode(handler.arguments.schema()).decode(),
    )
