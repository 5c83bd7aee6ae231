"""What the code declares: tasks, schedules and middleware, and which functions and triggers are refused."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from duetime.errors import DuplicateTask, InvalidName, InvalidTask, InvalidTrigger
from duetime.model.job import join_tags, split_tags
from duetime.model.schedule.actions import declaration
from duetime.model.schedule.firing import check_turns
from duetime.model.schedule.occurrences import next_look_after
from duetime.model.schedule.options import ScheduleOptions
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.task import TaskOptions
from duetime.model.text import check_name, shown
from duetime.model.time import EARLIEST, Instant, Micros
from duetime.model.triggers.base import Trigger, check_comes, check_pace
from duetime.model.triggers.specs import trigger_from_text, trigger_to_text
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.codec.results import check_result_type
from duetime.runtime.dependencies import Overrides, TaskDependencies, read_dependencies
from duetime.runtime.running.executor import Middleware
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.surroundings import Surrounding
from duetime.scheduler.enqueue_hooks import EnqueueHook


@dataclass(frozen=True, slots=True)
class ScheduleDefinition:
    """A schedule as the code has it; its times are known only when it meets the store's clock."""

    name: str
    handler: Handler
    trigger: Trigger
    payload: str
    options: ScheduleOptions

    def __post_init__(self) -> None:
        own, gate = self.options, self.handler.options.gate
        check_turns(own.overlap, own.misfire, task=self.handler.name, limited=gate is not None)

    @property
    def queue(self) -> str:
        """Where its jobs wait."""
        return self.options.job.queue or self.handler.options.queue

    def at(self, now: Instant) -> StoredSchedule:
        """Return what to store when the store's clock shows `now`."""
        seeded = self.trigger.seeded(self.name)
        anchored = seeded.anchored(now)
        task, own = self.handler.options, self.options
        new = StoredSchedule(
            name=self.name,
            task=self.handler.name,
            payload=self.payload,
            trigger=trigger_to_text(anchored),
            declared="",
            queue=self.queue,
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
            next_at=next_look_after(anchored, now, made=0),
        )
        return replace(new, declared=declaration(new, trigger=trigger_to_text(seeded)))


class SchedulerRegistry:
    """All tasks and schedules of one scheduler."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.schedules: dict[str, ScheduleDefinition] = {}
        self.middleware: list[Middleware] = []
        self.enqueue_hooks: list[EnqueueHook] = []
        self.around: list[Surrounding] = []
        self.overrides = Overrides()

    def add_task(self, function: Callable[..., Any], name: str | None, options: TaskOptions) -> Handler:
        """Register a function under its name, or raise saying why it cannot be."""
        task = check_function(function, name)
        if next(iter(inspect.signature(function).parameters), None) in {"self", "cls"}:
            fix = "move it out of its class, or derive the class from duetime.Job"
            _refuse_function(f"{function.__qualname__}, a method,", fix)
        if options.cpu:
            check_cpu_function(function)
        if task in self.handlers:
            first = self.handlers[task].function
            where = f"{first.__qualname__} in {first.__module__}"
            raise DuplicateTask(f"task name {task!r} is taken by {where}; name one of them with name='...'")
        needs = read_dependencies(function, task=task)
        if needs and options.cpu:
            named = f"{function.__qualname__}, which depends on {next(iter(needs))!r},"
            _refuse_function(
                named, "a child process has no dependencies; make it an argument", kind="cpu task"
            )
        arguments = Arguments(function, task=task, without=needs)
        arguments.hide(split_tags(options.terms.secret))
        if secret := join_tags(tuple(sorted(arguments.secrets))):
            options = replace(options, terms=replace(options.terms, secret=secret))
        if options.terms.result_ttl != 0:
            check_result_type(function, task=task)
        if options.gate is not None and options.gate.by is not None:
            arguments.check_named(options.gate.by, by=f"by={options.gate.by!r}")
        if (lock := options.lock) is not None:
            for parameter in lock.parameters:
                arguments.check_named(parameter, by=f"{parameter!r} in lock={lock.text!r}")
        is_async = inspect.iscoroutinefunction(function)
        handler = Handler(
            name=task,
            function=function,
            is_async=is_async,
            options=options,
            arguments=arguments,
            around=self.around,
            dependencies=TaskDependencies(needs, inspect.signature(function), self.overrides)
            if needs
            else None,
        )
        self.handlers[task] = handler
        return handler

    def add_schedule(self, declared: ScheduleDefinition) -> None:
        """Register a schedule under its name."""
        if declared.name in self.schedules:
            raise InvalidName(f"schedule name {declared.name!r} is taken; give this one its own: name='...'")
        self.schedules[declared.name] = declared


def check_function(function: Callable[..., Any], name: str | None) -> str:
    """Return the name of a function as a task, or raise `InvalidTask` saying why it cannot be one."""
    if isinstance(function, functools.partial):
        _refuse_function("a partial", "write a function that calls it")
    if not inspect.isfunction(function):
        kind = "a class" if inspect.isclass(function) else f"{type(function).__name__} {function!r}"
        _refuse_function(kind, "write a plain or async function")
    called = function.__qualname__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse_function(f"{called}, a generator function,", "return a value instead of yielding")
    if name is not None:
        return check_name(name, what="task name")
    if function.__name__ == "<lambda>":
        _refuse_function("a lambda", "write a named function, or give it a name: scheduler.task(name=...)")
    if "<locals>" in called:
        fix = "move it to module level, or give it a stable name with name='...'"
        _refuse_function(f"{called}, defined inside a function,", fix)
    return check_name(f"{_module_name(function)}.{called}", what="task name")


def check_cpu_function(function: Callable[..., Any]) -> None:
    """Raise `InvalidTask` for a function that a child process could not run, or not find."""
    name = function.__qualname__
    if inspect.iscoroutinefunction(function):
        _refuse_function(f"{name}, an async function,", "cpu=True is for plain functions", kind="cpu task")
    if "<" in name:
        fix = "a child process imports its module and looks for its name there; move it to the top level"
        _refuse_function(f"{name}, defined inside a function,", fix, kind="cpu task")


def _module_name(function: Callable[..., Any]) -> str:
    """Name a script as if it were imported, so that every process finds the task under one name."""
    module = function.__module__
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    if (spec := getattr(main, "__spec__", None)) is not None:
        name: str = spec.name
        return name.removesuffix(".__main__")
    path = getattr(main, "__file__", None)
    return "__main__" if path is None else os.path.splitext(os.path.basename(path))[0]


def _refuse_function(what: str, fix: str, *, kind: str = "task") -> NoReturn:
    raise InvalidTask(f"{what} cannot be a {kind}: {fix}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPolicy:
    """Refuses triggers that are none, never come, or come too often."""

    shortest: Micros

    def check(self, trigger: Trigger, *, name: str, now: Instant) -> Trigger:
        """Return a trigger, spread by the schedule's name, unless it comes too often or never did or will.

        It may be over: what was put or declared once is put and declared again.
        """
        if not isinstance(trigger, Trigger):
            raise InvalidTrigger(
                f"a schedule needs a trigger such as cron('*/5 * * * *') or every('15m'), not {shown(trigger)}"
            )
        seeded = trigger.seeded(name)
        anchored = seeded.anchored(now)
        if anchored.after(now) is None:
            check_comes(anchored, EARLIEST)
        check_pace(anchored, now, self.shortest)
        return seeded

    @staticmethod
    def checked(change: ScheduleUpdate | None, *, now: Instant) -> ScheduleUpdate | None:
        """Return a change, unless it brings a trigger that will not come any more."""
        if change is not None and (change.before is None or change.before.trigger != change.after.trigger):
            check_comes(trigger_from_text(change.after.trigger), now)
        return change
