"""From MODULE:OBJECT to a scheduler, with an error for each way this can go wrong."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from duetime.cli.failures import ExitCode, Failure, code_of
from duetime.model.shown import shown
from duetime.runtime.handler import Handler
from duetime.scheduler.lookup import closest, no_task
from duetime.scheduler.scheduler import Scheduler

_OURS = str(Path(__file__).parents[1])


def load_scheduler(target: str) -> Scheduler:
    """Import a module, with the current folder on the path, and return the scheduler in it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or "/" in module_name or module_name.endswith(".py"):
        text = f"{target!r} does not name a scheduler; write MODULE:OBJECT, such as myapp.jobs:scheduler"
        raise Failure(text, ExitCode.USAGE)
    module = _import(module_name)
    found: object = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise _missing(module, attribute)
        found = getattr(found, name)
    if not isinstance(found, Scheduler):
        text = f"{target} is {shown(found)}, not a duetime.Scheduler{_offer(_schedulers(module))}"
        raise Failure(text, ExitCode.USAGE)
    return found


def known_task(scheduler: Scheduler, task: str) -> Handler:
    """Return a task by its name, or raise `UnknownTask` with those that may be meant."""
    if task not in scheduler.tasks:
        raise no_task(task, scheduler.tasks)
    return scheduler.tasks[task]


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109 - what goes on sys.path is text
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        text = f"there is no module {error.name!r} in {folder} or on the Python path"
        raise Failure(text, ExitCode.USAGE) from None
    except (Exception, SystemExit) as error:  # a script without a main guard may end itself
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> Failure:
    text = f"importing {name} failed{_place(error)}: {type(error).__name__}: {error}; --debug shows the traceback"
    return Failure(text, code_of(error))


def _place(error: BaseException) -> str:
    """Say where in the user's code an import failed: the last frame that is neither ours nor Python's."""
    if isinstance(error, SyntaxError):
        return ""  # Its own text names file and line.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, "<frozen", importlib.__file__))
    ]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _missing(module: ModuleType, attribute: str) -> Failure:
    offers = closest(attribute, vars(module)) or _schedulers(module)
    text = f"module {module.__name__!r} has no {attribute!r}{_offer(offers)}"
    return Failure(text, ExitCode.USAGE)


def _schedulers(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, Scheduler)]


def _offer(names: list[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""
