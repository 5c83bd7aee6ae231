"""What a worker needs to run a task, and where another process finds it."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from duetime.errors import InvalidTask
from duetime.model.job import JobTerms
from duetime.model.limits import gate_name
from duetime.model.schedule.record import StoredSchedule
from duetime.model.task import TaskOptions
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.dependencies import TaskDependencies, without_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A registered function."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    options: TaskOptions
    arguments: Arguments
    around: Sequence[Callable[..., Any]] = ()
    """What makes context managers to call it in, the first outermost; more may be added later."""
    dependencies: TaskDependencies | None = None
    """What each run calls it with that no caller gives."""

    @property
    def signature(self) -> inspect.Signature:
        """What callers give it."""
        signature = inspect.signature(self.function)
        return without_parameters(signature, self.dependencies.needs) if self.dependencies else signature

    def gate_of(self, payload: str) -> str | None:
        """Return the name of the gate that a call with these arguments passes; `None` when nothing limits it."""
        gate = self.options.gate
        if gate is None:
            return None
        value = "" if gate.by is None else self.arguments.value_of(payload, gate.by)
        return gate_name(self.name, gate.by, value)

    def lock_name(self, payload: str) -> str:
        """Return the name of the lock that a call with these arguments holds; raise `InvalidName` if there can be none."""
        lock = self.options.lock
        return "" if lock is None else lock.fill(partial(self.arguments.value_of, payload))

    def terms_of(self, payload: str, terms: JobTerms) -> JobTerms:
        """Return the terms of a call with these arguments."""
        gate = self.gate_of(payload)
        return terms if gate is None else replace(terms, gate=gate)


def with_current_gate(schedule: StoredSchedule, handlers: Mapping[str, Handler]) -> StoredSchedule:
    """Return a schedule whose jobs pass the gate of their task as it is known here; the stored one may be of old."""
    handler = handlers.get(schedule.task)
    if handler is None or (schedule.terms is None and handler.options.gate is None):
        return schedule
    terms = JobTerms.from_text(schedule.terms)
    try:
        gate = handler.gate_of(schedule.payload)
    except msgspec.MsgspecError:
        # The arguments do not fit the task any more: the job will say so.
        return schedule
    return schedule if gate == terms.gate else replace(schedule, terms=replace(terms, gate=gate).to_text())


_modules_being_imported: set[str] = set()


@dataclass(frozen=True, slots=True)
class TaskModule:
    """A module that another process can import."""

    module: str
    path: str | None = None
    """The file of a script, which no import would find under its name."""


@dataclass(frozen=True, slots=True)
class TaskLocation:
    """A name in a module."""

    home: TaskModule
    name: str


def locate_task(handler: Handler) -> TaskLocation:
    """Return where a task is found, having looked that it leads back to this very function; else `InvalidTask`."""
    function = handler.function
    module = sys.modules.get(function.__module__)
    if module is None or (home := _module_of(module)) is None:
        raise _unreachable(handler, f"{function.__module__} is not a module with a file")
    found = find_handler(module, function.__qualname__, task=handler.name)
    if found is None or found.function is not function:
        raise _unreachable(handler, f"{function.__module__}.{function.__qualname__} is not that function")
    return TaskLocation(home, function.__qualname__)


def find_handler(module: ModuleType, name: str, *, task: str) -> Handler | None:
    """Return what runs a task, from a module in which it, or its plain function, has this name."""
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    # A task, a class that has one, or a function that was registered elsewhere.
    for holder in (found, getattr(found, "task", None)):
        if isinstance(handler := getattr(holder, "handler", None), Handler):
            return handler
    if not inspect.isfunction(found):
        return None
    return Handler(
        name=task,
        function=found,
        is_async=inspect.iscoroutinefunction(found),
        options=TaskOptions(),
        arguments=Arguments(found, task=task),
    )


def load_module(home: TaskModule) -> ModuleType:
    """Import a module; a script under the name it would have if it were imported, so that it does not start again."""
    if (module := sys.modules.get(home.module)) is not None:
        return module
    _modules_being_imported.add(home.module)
    try:
        return importlib.import_module(home.module) if home.path is None else _load_script(home)
    finally:
        _modules_being_imported.discard(home.module)


def module_being_imported() -> str | None:
    """Return a module that is being imported for its tasks."""
    return next(iter(_modules_being_imported), None)


def _load_script(home: TaskModule) -> ModuleType:
    spec = importlib.util.spec_from_file_location(home.module, home.path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{home.path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[home.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[home.module]
        raise
    return module


def _module_of(module: ModuleType) -> TaskModule | None:
    if module.__name__ != "__main__":
        return TaskModule(module.__name__)
    # As `python -m package.module`, or else as `python script.py`.
    if module.__spec__ is not None and module.__spec__.name != "__main__":
        return TaskModule(module.__spec__.name)
    path = getattr(module, "__file__", None)
    return None if path is None else TaskModule(Path(path).stem, str(Path(path).resolve()))


def _unreachable(handler: Handler, why: str) -> InvalidTask:
    return InvalidTask(
        f"cpu task {handler.name} cannot be found by a child process: {why}. "
        "Define it at the top level of a module, under its own name"
    )
