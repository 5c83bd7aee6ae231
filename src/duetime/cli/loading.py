"""From MODULE:OBJECT or a URL to a scheduler or a store, with an error for each way this can go wrong."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

from duetime.cli.output import CommandFailure, ExitCode, exit_code_of
from duetime.model.text import shown
from duetime.runtime.running.handler import Handler
from duetime.scheduler.lookup import close_names, task_not_found
from duetime.scheduler.scheduler import DEFAULT_URL, Scheduler
from duetime.stores.base import Store
from duetime.stores.open import open_store

_OUR_FOLDER = str(Path(__file__).parents[1])


def load_scheduler(target: str) -> Scheduler:
    """Import a module, with the current folder on the path, and return the scheduler in it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or "/" in module_name or module_name.endswith(".py"):
        text = f"{target!r} does not name a scheduler; write MODULE:OBJECT, such as myapp.jobs:scheduler"
        raise CommandFailure(text, ExitCode.USAGE)
    module = _import(module_name)
    found: object = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise _no_attribute(module, attribute)
        found = getattr(found, name)
    if not isinstance(found, Scheduler):
        text = f"{target} is {shown(found)}, not a duetime.Scheduler{_did_you_mean(_schedulers_in(module))}"
        raise CommandFailure(text, ExitCode.USAGE)
    return found


def known_task(scheduler: Scheduler, task: str) -> Handler:
    """Return a task by its name, or raise `UnknownTask` with those that may be meant."""
    if task not in scheduler.tasks:
        raise task_not_found(task, scheduler.tasks)
    return scheduler.tasks[task]


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109 - what goes on sys.path is text
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_failed(name, error) from error
        text = f"there is no module {error.name!r} in {folder} or on the Python path"
        raise CommandFailure(text, ExitCode.USAGE) from None
    except (Exception, SystemExit) as error:  # a script without a main guard may end itself
        raise _import_failed(name, error) from error


def _import_failed(name: str, error: BaseException) -> CommandFailure:
    text = f"importing {name} failed{_failing_line(error)}: {type(error).__name__}: {error}; --debug shows the traceback"
    return CommandFailure(text, exit_code_of(error))


def _failing_line(error: BaseException) -> str:
    """Say where in the user's code an import failed: the last frame that is neither ours nor Python's."""
    if isinstance(error, SyntaxError):
        return ""  # Its own text names file and line.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OUR_FOLDER, "<frozen", importlib.__file__))
    ]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _no_attribute(module: ModuleType, attribute: str) -> CommandFailure:
    offers = close_names(attribute, vars(module)) or _schedulers_in(module)
    text = f"module {module.__name__!r} has no {attribute!r}{_did_you_mean(offers)}"
    return CommandFailure(text, ExitCode.USAGE)


def _schedulers_in(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, Scheduler)]


def _did_you_mean(names: list[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""


@asynccontextmanager
async def connected_store(
    url: str | None, namespace: str, *, make: bool = False
) -> AsyncGenerator[Store, None]:
    """Connect to a database whatever its tables are like; unless `make`, a SQLite file must be there."""
    store = open_store(url or DEFAULT_URL, namespace=namespace, auto_migrate=make)
    await store.open(check=False)
    try:
        yield store
    finally:
        await store.close()


def client(url: str | None, namespace: str) -> Scheduler:
    """Return a client without tasks; it refuses tables that do not fit instead of changing them."""
    return Scheduler(url or DEFAULT_URL, namespace=namespace, auto_migrate=False)


def check_arguments_need_code(arguments: tuple[str, ...], app: str | None) -> None:
    """Refuse arguments that no code is there to check."""
    if arguments and app is None:
        text = "other arguments are checked by the code of the task; say --app MODULE:OBJECT"
        raise CommandFailure(text, ExitCode.USAGE)
