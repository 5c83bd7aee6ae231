"""What the code declares: tasks and schedules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duetime.errors import DuplicateTask, InvalidName
from duetime.model.instants import Instant
from duetime.model.schedule import StoredSchedule
from duetime.model.task import TaskOptions
from duetime.runtime.arguments import Arguments
from duetime.runtime.handler import Handler
from duetime.runtime.middleware import Middleware, check_middleware
from duetime.scheduler.lookup import no_task
from duetime.scheduler.naming import check_cpu_function, check_function

if TYPE_CHECKING:
    from duetime.model.schedule_options import ScheduleOptions
    from duetime.model.triggers.base import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A schedule as the code has it; its times are known only when it meets the store's clock."""

    name: str
    handler: Handler
    trigger: Trigger
    payload: str
    options: ScheduleOptions

    def __post_init__(self) -> None:
        from duetime.model.overlap import check_turns

        own, gate = self.options, self.handler.options.gate
        check_turns(own.overlap, own.misfire, task=self.handler.name, limited=gate is not None)

    @property
    def seeded(self) -> Trigger:
        """The trigger as it was written, spread by the name of the schedule."""
        return self.trigger.seeded(self.name)

    def at(self, now: Instant) -> StoredSchedule:
        """Return what to store when the store's clock shows `now`."""
        from duetime.model.declaring import declaration
        from duetime.model.remaining import next_after
        from duetime.model.triggers.text import to_text

        seeded = self.seeded
        anchored = seeded.anchored(now)
        task, own = self.handler.options, self.options
        new = StoredSchedule(
            name=self.name,
            task=self.handler.name,
            payload=self.payload,
            trigger=to_text(anchored),
            declared="",
            queue=own.job.queue or task.queue,
            priority=task.priority if own.job.priority is None else own.job.priority,
            on_crash=task.on_crash,
            retries=own.job.retries,
            timeout=own.job.timeout,
            terms=self.handler.terms_of(self.payload, own.job.over(task.terms)).to_text(),
            overlap=own.overlap,
            overlap_limit=own.overlap_limit,
            misfire=own.misfire,
            misfire_window=own.misfire_window,
            misfire_limit=own.misfire_limit,
            pause_after=own.pause_after,
            fired_through=now,
            next_at=next_after(anchored, now, made=0),
        )
        return replace(new, declared=declaration(new, trigger=to_text(seeded)))


class Registry:
    """All tasks and schedules of one scheduler."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.schedules: dict[str, Declared] = {}
        self.middleware: list[Middleware] = []

    def add_task(self, function: Callable[..., Any], name: str | None, options: TaskOptions) -> Handler:
        """Register a function under its name, or raise saying why it cannot be."""
        task = check_function(function, name)
        if options.cpu:
            check_cpu_function(function)
        if task in self.handlers:
            first = self.handlers[task].function
            text = (
                f"task name {task!r} is taken by {first.__qualname__} in {first.__module__}; "
                "give one of them another with name='...'"
            )
            raise DuplicateTask(text)
        arguments = Arguments(function, task=task)
        if options.gate is not None and options.gate.by is not None:
            arguments.check_by(options.gate.by)
        handler = Handler(
            name=task,
            function=function,
            is_async=inspect.iscoroutinefunction(function),
            options=options,
            arguments=arguments,
        )
        self.handlers[task] = handler
        return handler

    def add_middleware(self, function: Middleware) -> None:
        """Register middleware, inside of what there is."""
        check_middleware(function)
        self.middleware.append(function)

    def add_schedule(self, declared: Declared) -> None:
        """Register a schedule under its name."""
        if declared.name in self.schedules:
            text = (
                f"schedule name {declared.name!r} is taken; "
                "a second schedule on one task needs its own: @scheduler.schedule(..., name='...')"
            )
            raise InvalidName(text)
        self.schedules[declared.name] = declared

    def handler(self, task: str) -> Handler:
        """Return a registered task, or raise `UnknownTask` naming those that may be meant."""
        if task not in self.handlers:
            raise no_task(task, self.handlers)
        return self.handlers[task]
