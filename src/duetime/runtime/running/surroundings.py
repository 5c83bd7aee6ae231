"""Code around a handler in its own thread: context managers that are entered where the handler is called."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeAlias

from duetime.errors import InvalidTask
from duetime.runtime.running.context import JobContext
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import current_run

Surrounding: TypeAlias = Callable[[JobContext], AbstractContextManager[object]]
GivenSurrounding: TypeAlias = Surrounding | Callable[[JobContext], Iterator[Any]]


def as_surrounding(function: GivenSurrounding) -> Surrounding:
    """Return what makes a context manager for a job; raise `InvalidTask` for what cannot be called so."""
    try:
        inspect.signature(function).bind(None)
        fits = not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function))
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidTask(
            "around takes a generator function such as `def session(job): ... yield ...`, or a function that returns "
            f"a context manager, and not an async one; {function!r:.100} is not that"
        )
    if inspect.isgeneratorfunction(function):
        return contextlib.contextmanager(function)
    return function  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def surrounded(handler: Handler) -> Handler:
    """Return a handler whose function is called within its surroundings."""
    function, around = handler.function, handler.around

    def call(*args: Any, **kwargs: Any) -> object:
        with _entered(around):
            return function(*args, **kwargs)

    async def call_async(*args: Any, **kwargs: Any) -> object:
        with _entered(around):
            return await function(*args, **kwargs)

    return replace(handler, function=call_async if handler.is_async else call)


@contextlib.contextmanager
def _entered(around: Sequence[Surrounding]) -> Generator[None]:
    """Enter them, the first outermost, for the job that runs here."""
    job = JobContext(current_run.get())
    with contextlib.ExitStack() as stack:
        for surrounding in around:
            stack.enter_context(surrounding(job))
        yield
