"""Resolves the dependencies of a run before its handler is called, and cleans up behind it, whatever came of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

from duetime.errors import InvalidTask
from duetime.runtime.dependencies import Dependency, Kind, Overrides, TaskDependencies, dependency_name
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import Run, current_run
from duetime.runtime.running.surroundings import surrounded
from duetime.runtime.running.threads import ThreadRunner

log = logging.getLogger("duetime.worker")

_Leave: TypeAlias = Callable[
    [type[BaseException] | None, BaseException | None, TracebackType | None], Awaitable[bool | None]
]


def prepared(handler: Handler, threads: ThreadRunner) -> Handler:
    """Return a handler whose function is called within all that was put around it, its dependencies outermost."""
    if handler.around:
        handler = surrounded(handler)
    if handler.dependencies is not None:
        handler = _with_dependencies(handler, handler.dependencies, threads)
    return handler


def _with_dependencies(handler: Handler, wanted: TaskDependencies, threads: ThreadRunner) -> Handler:
    """Return a coroutine handler that resolves what a function needs, calls it and cleans up."""

    async def call(*args: Any, **kwargs: Any) -> object:
        run = current_run.get()
        async with AsyncExitStack() as stack:
            values = await _Resolver(stack, threads, wanted.overrides).values(wanted.needs)
            given = wanted.join(args, kwargs, values)
            function = partial(handler.function, *given.args, **given.kwargs)
            run.returned = await (function() if handler.is_async else _in_thread(run, threads, function))
            return run.returned

    return replace(handler, function=call, is_async=True, dependencies=None)


async def _in_thread(run: Run, threads: ThreadRunner, function: Callable[[], object]) -> object:
    """Call a plain handler, which a stop only asks to end: nothing can kill its thread."""
    run.interruptible = False
    try:
        return await threads.call(function, on_timeout=partial(warn_of_timeout, run))
    finally:
        run.interruptible = True


def warn_of_timeout(run: Run) -> None:
    """Log why a slot stays taken."""
    log.warning(
        "%s (job %s) runs past its timeout; a thread cannot be killed, so its slot stays taken until it ends",
        run.claim.task,
        run.claim.job_id,
    )


class _Resolver:
    """Makes the values of one run, each once unless it is not to be cached."""

    def __init__(self, stack: AsyncExitStack, threads: ThreadRunner, overrides: Overrides) -> None:
        self._stack = stack
        self._threads = threads
        self._overrides = overrides
        self._made: dict[Hashable, object] = {}

    async def values(self, needs: Mapping[str, Dependency]) -> dict[str, object]:
        """Return a value for each parameter."""
        return {name: await self._value(dependency) for name, dependency in needs.items()}

    async def _value(self, dependency: Dependency) -> object:
        if dependency.cached and dependency.key in self._made:
            return self._made[dependency.key]
        called = self._overrides.of(dependency)
        value = await self._make(called, await self.values(called.needs))
        self._made.setdefault(dependency.key, value)
        return value

    async def _make(self, dependency: Dependency, values: Mapping[str, object]) -> object:
        call = partial(dependency.call, **values)
        match dependency.kind:
            case Kind.PLAIN:
                return await self._threads.call(call)
            case Kind.COROUTINE:
                return await call()
            case Kind.ASYNC_GENERATOR:
                manager = asynccontextmanager(call)()
                with _yielding_once(dependency):
                    value = await manager.__aenter__()
                self._clean_up(dependency, manager.__aexit__)
            case Kind.GENERATOR:
                blocking = contextmanager(call)()

                async def leave(*error: Any) -> bool | None:
                    return await self._threads.call(partial(blocking.__exit__, *error))

                # Before it is entered: a cancellation may come while its thread goes on, to be left then.
                self._clean_up(dependency, leave)
                with _yielding_once(dependency):
                    value = await self._threads.call(blocking.__enter__)
        return value

    def _clean_up(self, dependency: Dependency, leave: _Leave) -> None:
        """Leave it when the run has ended; it sees an error of the run, but cannot make it a success."""

        async def clean_up(*error: Any) -> None:
            with _yielding_once(dependency):
                await leave(*error)

        self._stack.push_async_exit(clean_up)


@contextmanager
def _yielding_once(dependency: Dependency) -> Generator[None]:
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("generator didn't"):
            raise
        text = f"dependency {dependency_name(dependency)} must yield exactly once, but its {error}"
        raise InvalidTask(text) from error.__context__
