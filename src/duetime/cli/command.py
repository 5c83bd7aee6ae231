"""What commands share: their options, the scheduler or store that they name, and one way to run and answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import click

from duetime.cli.output import Answer, CommandFailure, exit_code_of
from duetime.errors import InvalidDuration
from duetime.model.text import did_you_mean, shown
from duetime.model.time import parse_duration, to_datetime
from duetime.scheduler.scheduler import DEFAULT_URL, Scheduler
from duetime.stores.base import Store
from duetime.stores.open import open_store

F = TypeVar("F", bound=Callable[..., Any])
PendingAnswer: TypeAlias = Coroutine[Any, Any, Answer]
Answering: TypeAlias = Callable[..., PendingAnswer]
"""Takes a scheduler, and by name the options of its command."""

_OUR_FOLDER = str(Path(__file__).parents[1])


def client_command(function: Answering) -> Callable[..., None]:
    """Make a command of a function that takes a scheduler and returns an answer: by --url, --namespace and --json.

    The scheduler is open while the coroutine runs. What a plain function does before it returns its coroutine, such
    as to ask for a confirmation, comes before anything is opened.
    """
    return database_options(_command(function, lambda args: client(args.pop("url"), args.pop("namespace"))))


def target_command(function: Answering) -> Callable[..., None]:
    """Make a command in the same way, for the scheduler that the argument MODULE:OBJECT names."""
    return target_argument(_command(function, lambda given: load_scheduler(given.pop("target"))))


def app_command(function: Answering) -> Callable[..., None]:
    """Make a command in the same way, with a client, or with the code of --app, which alone can check ARGUMENTS."""

    def choose(given: dict[str, Any]) -> Scheduler:
        url, namespace, app = (given.pop(name) for name in ("url", "namespace", "app"))
        if given["arguments"] and app is None:
            raise CommandFailure("other arguments are checked by the task's code; say --app MODULE:OBJECT")
        return client(url, namespace) if app is None else load_scheduler(app)

    text = "The scheduler whose code checks ARGUMENTS; its database is used."
    return database_options(option("--app", "MODULE:OBJECT", text)(_command(function, choose)))


def _command(function: Answering, choose: Callable[[dict[str, Any]], Scheduler]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*, as_json: bool, **given: Any) -> None:
        scheduler = choose(given)
        run_answer(scheduler, function(scheduler, **given), as_json=as_json)

    return json_option(run)


def answer_command(function: Answering) -> Callable[..., None]:
    """Make a command of a function that takes its options alone and returns an answer."""

    @functools.wraps(function)
    def run(*, as_json: bool, **given: Any) -> None:
        asyncio.run(function(**given)).print(as_json=as_json)

    return json_option(run)


def watch_command(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a command of a function that takes an open scheduler and prints until it ends, or until Ctrl-C."""

    @functools.wraps(function)
    def run(*, url: str | None, namespace: str, **given: Any) -> None:
        async def watch() -> None:
            async with client(url, namespace) as scheduler:
                await function(scheduler, **given)

        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(watch())

    return database_options(json_option(run))


def run_answer(scheduler: Scheduler, work: PendingAnswer, *, as_json: bool) -> None:
    """Open a scheduler, run the work of a command, and print its answer."""

    async def run() -> Answer:
        with contextlib.closing(work):
            async with scheduler:
                return await work

    asyncio.run(run()).print(as_json=as_json)


async def store_time(scheduler: Scheduler) -> datetime:
    """Return the time on the store's clock."""
    return to_datetime(await scheduler.store.now())


def load_scheduler(target: str) -> Scheduler:
    """Import a module, with the current folder on the path, and return the scheduler in it."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or "/" in module_name or module_name.endswith(".py"):
        example = _scheduler_meant(module_name, attribute)
        raise CommandFailure(f"{target!r} does not name a scheduler; write MODULE:OBJECT, such as {example}")
    module = _import(module_name)
    found: object = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            offer = did_you_mean(attribute, vars(module))
            text = f"module {module_name!r} has no {attribute!r}{f'; {offer}' if offer else _schedulers_in(module)}"
            raise CommandFailure(text)
        found = getattr(found, name)
    if not isinstance(found, Scheduler):
        raise CommandFailure(f"{target} is {shown(found)}, not a duetime.Scheduler{_schedulers_in(module)}")
    return found


def _scheduler_meant(module: str, attribute: str) -> str:
    """Return MODULE:OBJECT for what may be the path of a file here, or have a dot in place of the colon."""
    module = module.removeprefix("./").removesuffix(".py").replace("/", ".")
    before, _, last = module.rpartition(".")
    for name, found in (module, attribute or "scheduler"), (before, last):
        parts = name.split(".")
        if all(map(str.isidentifier, parts)) and Path(*parts).with_suffix(".py").is_file():
            return f"{name}:{found}"
    return "myapp.jobs:scheduler"


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109 - what goes on sys.path is text
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a script without a main guard may end itself
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise CommandFailure(f"there is no module {missing!r} in {folder} or on Python's path") from None
        problem = f"{type(error).__name__}: {error}; --debug shows the traceback"
        text = f"importing {name} failed{_failing_line(error)}: {problem}"
        raise CommandFailure(text, exit_code_of(error)) from error


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


def _schedulers_in(module: ModuleType) -> str:
    """Ask whether one of the module's schedulers was meant, if it has any."""
    names = [name for name, value in vars(module).items() if isinstance(value, Scheduler)]
    return f"; did you mean {' or '.join(names)}?" if names else ""


@asynccontextmanager
async def connected_store(
    url: str | None, namespace: str, *, make: bool = False, check: bool = False
) -> AsyncGenerator[Store]:
    """Connect to a database; `check` its tables, else they may be of any version. Without `make`, a file must exist."""
    store = open_store(url or DEFAULT_URL, namespace=namespace, auto_migrate=make)
    await store.open(check=check)
    try:
        yield store
    finally:
        await store.close()


def client(url: str | None, namespace: str) -> Scheduler:
    """Return a client without tasks; it refuses tables that do not fit instead of changing them."""
    return Scheduler(url or DEFAULT_URL, namespace=namespace, auto_migrate=False)


def read_duration(text: str) -> timedelta:
    """Read a length of time: `10s`, `1h30m`, or a number of seconds."""
    given: str | float = text
    with contextlib.suppress(ValueError):
        given = float(text)
    try:
        return timedelta(microseconds=parse_duration(given, what="it"))
    except InvalidDuration:
        message = f"{text!r} is not a duration; write 10s, 1h30m or a number of seconds"
        raise click.BadParameter(message) from None


def read_moment(text: str) -> datetime:
    """Read a point in time in ISO 8601, which must name its zone."""
    example = "2030-01-31T09:00:00+01:00 or 2030-01-31T08:00:00Z"
    read = _read_iso(text, f"not a point in time; write {example}")
    if read.utcoffset() is None:
        raise click.BadParameter(f"{text!r} has no time zone; write {example}")
    return read


def read_moment_or_duration(text: str) -> datetime | timedelta:
    """Read a length of time, or a point in time in ISO 8601, which must name its zone."""
    with contextlib.suppress(click.BadParameter):
        return read_duration(text)
    _read_iso(text, "neither a duration nor a point in time; write 2h, or 2030-01-31T09:00:00+01:00")
    return read_moment(text)


def read_wall_moment(text: str) -> datetime:
    """Read a point in time in ISO 8601, perhaps without a zone."""
    with contextlib.suppress(ValueError):
        date.fromisoformat(text)
        raise click.BadParameter(f"{text!r} is a whole day; say the time, too, such as '{text} 03:00'")
    example = "'2030-01-31 03:00', or with a zone 2030-01-31T03:00:00+01:00"
    return _read_iso(text, f"not a point in time; write {example}")


def _read_iso(text: str, problem: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is {problem}") from None


_TYPES: dict[str | None, Any] = {
    "DURATION": read_duration,
    "MOMENT": read_moment,
    "WHEN": read_moment_or_duration,
    "N": int,
}


def option(name: str, metavar: str | None, text: str, **more: Any) -> Callable[[F], F]:
    """Add an option with a value, by default of the type that its metavar stands for, else text."""
    more.setdefault("type", _TYPES.get(metavar))
    return click.option(name, metavar=metavar, help=text, **more)


def all_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Add several options in the order in which they are to be shown."""
    return lambda command: functools.reduce(lambda inner, add: add(inner), reversed(options), command)


def database_options(command: F) -> F:
    """Add the options that say which database."""
    url = click.option(
        "--url",
        envvar="DUETIME_URL",
        help="The database; else $DUETIME_URL, else sqlite:///duetime.db in this folder. "
        "A password is safer in the variable than in a command that others can list.",
    )
    namespace = click.option(
        "--namespace", default="duetime", help="Which Duetime, if the database has several."
    )
    return url(namespace(command))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
by_option = option("--by", "WHO", "Who asks, kept with the change; else user@host.")


def target_argument(command: F) -> F:
    """Add the argument MODULE:OBJECT; its scheduler names the database, and --url, which other commands take, says so."""

    def refuse(_ctx: click.Context, _parameter: click.Parameter, given: str | None) -> None:
        if given is not None:
            raise click.UsageError(
                "the database is that of the scheduler: write Scheduler(URL), or set $DUETIME_URL for Scheduler()"
            )

    url = click.option("--url", hidden=True, expose_value=False, callback=refuse)
    return click.argument("target", metavar="MODULE:OBJECT")(url(command))


def words_argument(name: str, metavar: str, what: str, *, required: bool = True) -> Callable[[F], F]:
    """Take one word or more; `-` stands for those on standard input, the first word of each line."""

    def read(_ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
        words: list[str] = []
        for word in given:
            words += [line.split()[0] for line in sys.stdin if line.strip()] if word == "-" else [word]
        if given and not words:
            raise click.BadParameter(f"there are no {what} on standard input")
        return tuple(dict.fromkeys(words))

    return click.argument(name, metavar=metavar, nargs=-1, required=required, callback=read)


schedule_names_argument = words_argument("names", "NAME...", "names")
job_ids_argument = words_argument("job_ids", "ID...", "ids")
