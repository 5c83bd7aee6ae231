"""Which functions can be tasks, and what they are called."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from duetime.errors import InvalidTask
from duetime.model.names import check_name


def check_function(function: Callable[..., Any], name: str | None) -> str:
    """Return the name of a function as a task, or raise `InvalidTask` saying why it cannot be one."""
    if isinstance(function, functools.partial):
        _refuse("a partial", "write a function that calls it")
    if not inspect.isfunction(function):
        kind = "a class" if inspect.isclass(function) else f"{type(function).__name__} {function!r}"
        _refuse(kind, "write a plain or async function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse(f"{function.__qualname__}, a generator function,", "return a value instead of yielding")
    if name is not None:
        return check_name(name, what="task name")
    if function.__name__ == "<lambda>":
        _refuse("a lambda", "write a named function, or give it a name: scheduler.task(name=...)")
    if "<locals>" in function.__qualname__:
        _refuse(
            f"{function.__qualname__}, defined inside a function,",
            "move it to module level, or give it a stable name with name='...'",
        )
    return check_name(f"{_module(function)}.{function.__qualname__}", what="task name")


def check_cpu_function(function: Callable[..., Any]) -> None:
    """Raise `InvalidTask` for a function that a child process could not run, or not find."""
    name = function.__qualname__
    if inspect.iscoroutinefunction(function):
        _refuse(
            f"{name}, an async function,",
            "cpu=True is for plain functions; leave out async, or cpu=True",
            cpu=True,
        )
    if "<" in name:
        _refuse(
            f"{name}, defined inside a function,",
            "a child process imports its module and looks for its name there; move it to the top level",
            cpu=True,
        )


def _module(function: Callable[..., Any]) -> str:
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


def _refuse(what: str, fix: str, *, cpu: bool = False) -> NoReturn:
    text = f"{what} cannot be a {'cpu ' if cpu else ''}task: {fix}"
    raise InvalidTask(text)
