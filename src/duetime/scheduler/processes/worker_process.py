"""Runs workers: inside a program, or in a process of their own that works until signals stop it, and logs."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypedDict

from duetime.errors import ConfigError
from duetime.model.text import Size, counted, printable
from duetime.model.time import Duration
from duetime.model.urls import redact, redact_text
from duetime.runtime.loop_thread import check_no_loop
from duetime.runtime.options import QueueLimits, WorkerOptions
from duetime.runtime.settling.job_log import RECORD_FIELDS, log as job_log
from duetime.runtime.worker import Worker
from duetime.runtime.worker_group import WorkerGroup
from duetime.scheduler.lookup import check_not_moved
from duetime.scheduler.processes.supervisor import (
    EXIT_CODE_OF_SIGNAL,
    START_ANOTHER,
    STOP_SIGNALS,
    heed_supervisor,
    is_supervised,
)

if TYPE_CHECKING:
    from duetime.scheduler.scheduler import Scheduler

log = logging.getLogger("duetime.cli")

LogFormat: TypeAlias = Literal["console", "json"]

_SIGNALS_TO_EXIT_AT_ONCE = 3
_UNFINISHED = 1
"""The exit code of a process with jobs that would not end."""


class WorkerSettings(TypedDict, total=False):
    """What users may write in `scheduler.worker(...)`."""

    concurrency: int
    queues: QueueLimits | None
    schedules: bool
    jobs: bool
    grace: Duration
    lease: Duration
    window: Duration
    retention: Duration | None
    capture_logs: bool
    cpu_children: int | None
    cpu_max_jobs: int | None
    cpu_max_memory: Size | None
    keep_per_schedule: int
    name: str | None
    burst: bool
    max_jobs: int | None
    dedicated: bool


@asynccontextmanager
async def open_worker(scheduler: Scheduler, options: WorkerOptions) -> AsyncGenerator[Worker | WorkerGroup]:
    """Run a worker, and keep the scheduler open until the last of its threads has ended."""
    await scheduler.open()
    lingering: asyncio.Future[Any] | None = None
    try:
        check_not_moved(scheduler.store)
        if options.schedules:
            await scheduler.put_declared()
        worker = _make_worker(scheduler, options)
        await worker.start()
        try:
            yield worker
        finally:
            # A stop goes on, with the store open, if the caller gives up waiting for it.
            lingering = stopping = asyncio.ensure_future(worker.stop())
            lingering = await asyncio.shield(stopping)
    finally:
        if lingering is None:
            await scheduler.close()
        else:
            scheduler.close_after(lingering)


def _make_worker(scheduler: Scheduler, options: WorkerOptions) -> Worker | WorkerGroup:
    """Return a worker for all parts of the store; one that only fires schedules needs no more than the last."""
    parts = scheduler.store.parts if options.jobs else scheduler.store.parts[-1:]
    make = partial(
        scheduler.make_worker,
        handlers=scheduler.tasks,
        make_lock=scheduler.lock,
        middleware=scheduler.wrapping,
        events=scheduler.events,
        release=scheduler.release,
    )
    declared, where = scheduler.declared, partial(redact, scheduler.url)
    if len(parts) == 1:
        return make(parts[0], options=options, declared=declared, where=where)
    return WorkerGroup(parts, make, options, declared=declared, where=where)


class HealthAddress(NamedTuple):
    """Where a process tells whether it is well."""

    host: str
    port: int


def check_can_run() -> None:
    """Raise where a program cannot work until it is stopped: inside a running loop, or in an import, which would never end."""
    instead = "scheduler.run() has a loop of its own; in one that runs, write: async with scheduler, scheduler.worker(): ..."
    check_no_loop(instead)
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    module: dict[str, Any] = {} if frame is None else frame.f_globals
    if getattr(module.get("__spec__"), "_initializing", False):
        raise ConfigError(
            f"scheduler.run() is called while {module['__name__']} is imported, which would never end; "
            'write it below: if __name__ == "__main__":'
        )


def run_until_stopped(
    scheduler: Scheduler, settings: WorkerSettings, *, health: HealthAddress | None = None
) -> None:
    """Work until SIGINT or SIGTERM; raises what made the worker give up, such as `StoreLost`.

    A second signal cancels what still runs, a third one leaves everything as it is. Jobs that do not end would keep
    the process up, so it ends without them, and another worker takes them over.
    """
    if not scheduler.tasks:
        log.warning("this scheduler has no tasks; import the modules that define them where it is made")
    settings = {"dedicated": True, **settings}
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        worker = runner.run(_work(scheduler, settings, health))
        if unfinished := worker.stats().running:
            log.error("%s did not end; this process ends all the same", counted(unfinished, "job"))
            logging.shutdown()
            os._exit(_UNFINISHED)
    if worker.used_up and is_supervised():
        sys.exit(START_ANOTHER)


async def _work(
    scheduler: Scheduler, settings: WorkerSettings, health: HealthAddress | None
) -> Worker | WorkerGroup:
    """Run a worker until it is stopped."""
    with StopSignals() as signals:
        async with scheduler.worker(**settings) as running, _telling_health(scheduler, running, health):
            log.info(
                "working on %s: %s; stop with Ctrl-C or SIGTERM", _place(scheduler.url), _doing(settings)
            )
            signals.stop(running)
            heed_supervisor(lambda: running.ask_to_stop(now=False))
            await running.asked_to_stop()
    if running.lost is not None:
        raise running.lost
    return running


@asynccontextmanager
async def _telling_health(
    scheduler: Scheduler, worker: Worker | WorkerGroup, address: HealthAddress | None
) -> AsyncGenerator[None]:
    """Answer questions about the health of a worker, if it has an address for that."""
    if address is None:
        yield
        return
    from duetime.scheduler.processes.health import HealthReports, serve_health

    reports = HealthReports(worker, lambda: scheduler.store, scheduler.schedules)
    async with serve_health(reports, *address):
        yield


def _place(url: str) -> str:
    """Say where the jobs are: a file that is named from here is another one in another folder."""
    relative = re.match(r"sqlite:///[^/?]", url)
    return f"{redact(url)} in {Path.cwd()}" if relative else redact(url)


def _doing(settings: WorkerSettings) -> str:
    if not settings.get("jobs", True):
        return "firing schedules and running no jobs"
    return f"running jobs and {'firing schedules' if settings.get('schedules', True) else 'leaving schedules to others'}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop where it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return factory


class StopSignals:
    """Catches SIGINT and SIGTERM while it is entered, in the main thread of a running event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._worker: Worker | WorkerGroup | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        # Not loop.add_signal_handler, which Windows lacks and which a blocked loop would never call.
        self._before = {number: signal.signal(number, self._caught) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop(self, worker: Worker | WorkerGroup) -> None:
        """Have a worker stop at the first signal, which may have come already, and at once at the second."""
        self._worker = worker
        if self._count:
            worker.ask_to_stop(now=self._count > 1)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._count += 1
        if self._count >= _SIGNALS_TO_EXIT_AT_ONCE:
            os._exit(EXIT_CODE_OF_SIGNAL + number)
        self._loop.call_soon_threadsafe(self._act, self._count, signal.Signals(number).name)

    def _act(self, count: int, name: str) -> None:
        text = "%s: stopping; a second signal cancels what still runs"
        log.info(text if count == 1 else "%s again: cancelling what still runs", name)
        if self._worker is not None:
            self._worker.ask_to_stop(now=count > 1)


class ConsoleFormatter(logging.Formatter):
    """One line per record, and the lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text that no terminal obeys."""
        time = datetime.fromtimestamp(record.created).astimezone().isoformat(" ", "milliseconds")
        line = f"{time} {record.levelname:<8} {record.name}: {record.getMessage()}"
        return "\n".join([printable(redact_text(line)), *_indented(_traceback_text(record).splitlines())])


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_text(record.getMessage()),
            "pid": record.process,
        }
        if record.name == job_log.name:
            values |= {name: getattr(record, name, None) for name in RECORD_FIELDS}
        if details := _traceback_text(record):
            values["exception"] = details
        return json.dumps(values)


def configure_logging(level: str, style: LogFormat = "console") -> None:
    """Send every log line of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ConsoleFormatter() if style == "console" else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _traceback_text(record: logging.LogRecord) -> str:
    # Records of jobs and of child processes bring their traceback as text.
    parts = [record.exc_text] if record.exc_text else []
    parts += [logging.Formatter().formatException(record.exc_info)] if record.exc_info and not parts else []
    parts += [record.stack_info] if record.stack_info else []
    return redact_text("\n".join(parts))


def _indented(lines: list[str]) -> list[str]:
    """Return lines that cannot be taken for records."""
    indent = "" if all(line.startswith("  ") for line in lines) else "  "
    return [f"{indent}{printable(line.expandtabs())}" for line in lines]
