"""Where another process finds a task: the module and the name that lead to its function here."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from duetime.errors import InvalidTask
from duetime.model.task import TaskOptions
from duetime.runtime.running.arguments import Arguments
from duetime.runtime.running.handler import Handler

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
    home = None if module is None else _module_of(module)
    if module is None or home is None:
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
        text = f"{home.path} is not a Python file"
        raise ImportError(text)
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
