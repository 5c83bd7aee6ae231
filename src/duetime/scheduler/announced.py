"""Tasks that workers have announced, as a client without their code sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from duetime.errors import UnknownTask
from duetime.model.job import OnCrash
from duetime.model.stored.announced import StoredTask, read_options
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import did_you_mean
from duetime.model.time import to_datetime
from duetime.runtime.running.announced import announced_handler
from duetime.runtime.running.handler import Handler
from duetime.scheduler.records import json_or_text
from duetime.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as workers have announced it."""

    name: str
    queue: str
    priority: int
    on_crash: OnCrash
    retries: int
    timeout: timedelta | None
    cpu: bool
    tags: tuple[str, ...]
    doc: str | None
    """What the function says of itself."""
    schema: Mapping[str, Any]
    """The JSON Schema of its arguments, by parameter name."""
    workers: int
    """How many living workers know it."""
    announced_at: datetime

    @classmethod
    def from_stored(cls, task: StoredTask, *, workers: int) -> TaskRecord:
        """Read what was announced."""
        read, schema = read_options(task), json_or_text(task.schema)
        options = read.task
        return cls(
            name=task.name,
            queue=task.queue,
            priority=options.priority,
            on_crash=options.on_crash,
            retries=read.retries,
            timeout=None if options.timeout is None else timedelta(microseconds=options.timeout),
            cpu=options.cpu,
            tags=options.terms.tags,
            doc=read.doc,
            schema=cast("Mapping[str, Any]", schema) if isinstance(schema, dict) else {},
            workers=workers,
            announced_at=to_datetime(task.announced_at),
        )


class AnnouncedTasks:
    """Reads the tasks that workers have announced."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    async def list(self) -> Sequence[TaskRecord]:
        """Return all of them by name; those that no worker has announced for long are forgotten."""
        return await self._records(await self._store().announced())

    async def get(self, name: str) -> TaskRecord:
        """Return one; raises `UnknownTask`."""
        (record,) = await self._records([await find_announced(self._store(), name)])
        return record

    async def _records(self, tasks: Sequence[StoredTask]) -> Sequence[TaskRecord]:
        fleet = LiveWorkers.of(await self._store().workers()) if tasks else LiveWorkers()
        return [TaskRecord.from_stored(task, workers=len(fleet.knowing(task.name))) for task in tasks]


async def find_handler(store: Store, tasks: Mapping[str, Handler], name: str) -> Handler:
    """Return a task that is registered here, else one that workers have announced; raises `UnknownTask`."""
    return (
        tasks[name] if name in tasks else announced_handler(await find_announced(store, name, others=tasks))
    )


async def find_announced(store: Store, name: str, *, others: Iterable[str] = ()) -> StoredTask:
    """Return an announced task; raises `UnknownTask` with those that may be meant."""
    if found := await store.announced([name]):
        return found[0]
    known = [*others, *(task.name for task in await store.announced())]
    offer = did_you_mean(name, known) or "`duetime tasks list` shows those there are"
    raise UnknownTask(f"no worker has announced a task {name!r}, and none is registered here; {offer}")
