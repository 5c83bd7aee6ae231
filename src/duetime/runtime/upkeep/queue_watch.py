"""Tells in the log of a worker which jobs wait for a worker that there is not."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from duetime.model.queues import MOST_COUNTED, unserved
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import short_list
from duetime.runtime.pacing import WATCH_QUEUES
from duetime.runtime.service import Service, WorkerContext

log = logging.getLogger("duetime.worker")


class QueueWatch(Service):
    """Warns once of each queue and task whose due jobs no worker takes, and at first of what this worker leaves out."""

    name = "queue watch"

    def __init__(self, context: WorkerContext, *, left_out: Mapping[str, Sequence[str]]) -> None:
        """`left_out`: the queues that this worker does not serve, with the tasks and schedules of its code that name them."""
        super().__init__(context.store, context.health)
        self._queues = context.options.queues
        self._handlers = context.handlers
        self._fleet = context.fleet
        self._left_out: Mapping[str, Sequence[str]] = left_out
        self._known = frozenset[str]()

    async def round(self) -> float | None:
        """Look at some of the due jobs, and at the workers only if there are jobs that this one does not take."""
        due = await self._store.due_jobs(most=MOST_COUNTED)
        others = [one for one in due if one.queue not in self._queues or one.task not in self._handlers]
        workers = await self._store.workers() if others or self._left_out else ()
        fleet = LiveWorkers.of(workers)
        for queue, names in self._left_out.items():
            if fleet.serving(queue):
                log.info("this worker leaves queue %s to others: %s", queue, short_list(names))
            else:
                log.warning(
                    "no worker serves queue %s, which this one leaves out: %s", queue, short_list(names)
                )
        self._left_out = {}
        found = unserved(others, fleet)
        for one in found:
            if one.why not in self._known:
                log.warning("%s", one)
        self._known = frozenset(one.why for one in found)
        return self._fleet.pause(WATCH_QUEUES)
